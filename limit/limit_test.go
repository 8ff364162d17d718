package limit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
)

func TestALimitIsData(t *testing.T) {
	for _, l := range []limit.Limit{
		limit.Resource("db", 5),
		limit.Rate("openai", 60, time.Minute, limit.GCRA),
		limit.Calls(10, time.Second),
		limit.Breaker("openai", 0.5, time.Minute, 30*time.Second),
	} {
		require.NoError(t, l.Validate())
		text, err := json.Marshal(l)
		require.NoError(t, err)
		var back limit.Limit
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, l, back, "%s", text)
	}
	text, err := json.Marshal(limit.Rate("openai", 60, time.Minute, limit.GCRA))
	require.NoError(t, err)
	require.JSONEq(t, `{"name": "openai", "n": 60, "per": 60000000000, "algorithm": "gcra"}`, string(text))
	var a limit.Algorithm
	require.ErrorContains(t, a.UnmarshalText([]byte("gcr")), `no algorithm is called "gcr": use one of sliding-window, gcra`)
}

func TestALimitDescribesItself(t *testing.T) {
	require.Equal(t, "5 slots of db", limit.Resource("db", 5).String())
	require.Equal(t, "60 of rate openai in 1m0s (gcra)", limit.Rate("openai", 60, time.Minute, limit.GCRA).String())
	require.Equal(t, "breaker openai: open for 30s at 50% failures in 1m0s",
		limit.Breaker("openai", 0.5, time.Minute, 30*time.Second).String())
	require.Equal(t, "algorithm(99)", limit.Algorithm(99).String())
}

func TestInvalidLimits(t *testing.T) {
	breaker := limit.Breaker("b", 0.5, time.Minute, time.Second)
	change := func(l limit.Limit, f func(*limit.Limit)) limit.Limit { f(&l); return l }
	for want, l := range map[string]limit.Limit{
		`invalid limit "": it has no name`:           limit.Resource("", 5),
		`its name has 201 bytes: use at most 200`:    limit.Resource(strings.Repeat("n", 201), 5),
		`invalid limit "a": N is -1`:                 {Name: "a", N: -1, Algorithm: limit.Slots},
		`Per is 0s: use a time above 0`:              limit.Rate("a", 5, 0, limit.GCRA),
		`Per is 1s: slots have none`:                 change(limit.Resource("a", 5), func(l *limit.Limit) { l.Per = time.Second }),
		`Each is 6: use 0 to N, which is 5`:          change(limit.Calls(5, 1), func(l *limit.Limit) { l.Each = 6 }),
		`gcra admits up to 50 a microsecond`:         limit.Rate("a", 1e6, time.Millisecond, limit.GCRA),
		`Algorithm is algorithm(99)`:                 limit.Rate("a", 1, time.Second, 99),
		`Share is 1.5: use a share above 0`:          change(breaker, func(l *limit.Limit) { l.Share = 1.5 }),
		`Least is 0: use at least 1 result`:          change(breaker, func(l *limit.Limit) { l.Least = 0 }),
		`Pause is 0s`:                                change(breaker, func(l *limit.Limit) { l.Pause = 0 }),
		`Each is 0: a breaker is asked once`:         change(breaker, func(l *limit.Limit) { l.Each = 0 }),
		`Share, Least or Pause is set, which only a`: change(limit.Calls(1, 1), func(l *limit.Limit) { l.Least = 1 }),
	} {
		err := l.Validate()
		require.ErrorIs(t, err, limit.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		_, err = limit.NewSet(l)
		require.ErrorIs(t, err, limit.ErrInvalid)
		_, err = limit.NewKeys(l)
		require.ErrorIs(t, err, limit.ErrInvalid)
	}
	_, err := limit.NewSet(limit.Calls(1, 1), limit.Calls(2, 2))
	require.ErrorContains(t, err, "the set has two limits of that name")
	require.Panics(t, func() { limit.Must(limit.NewSet(limit.Resource("", 1))) })
}

// Limits that can never be admitted end a retry at once.
func TestRefusalsArePermanent(t *testing.T) {
	s := limit.Must(limit.NewSet(limit.Resource("db", 5), limit.Rate("tokens", 10, time.Second, limit.GCRA)))
	for want, c := range map[string]struct {
		is      error
		amounts []limit.Amount
	}{
		`11 of rate tokens were asked for, and it admits 10 at once: ask for less, or raise it`: {limit.ErrTooMuch,
			[]limit.Amount{limit.Take("tokens", 11)}},
		`the set has no limit "tokns": did you mean "tokens"?`: {limit.ErrUnknownLimit,
			[]limit.Amount{limit.Take("tokens", 1), limit.Take("tokns", 1)}},
		`the set has no limit "xyz", it has ["db" "tokens"]`: {limit.ErrUnknownLimit,
			[]limit.Amount{limit.Take("tokens", 1), limit.Take("xyz", 1)}},
		`the amount of tokens is missing: acquire with Take("tokens", n), or set its Each`: {limit.ErrAmount, nil},
		`the amount of tokens is -1: use 0 to leave it out, or more`:                       {limit.ErrAmount, []limit.Amount{limit.Take("tokens", -1)}},
	} {
		calls := 0
		_, err := retry.Do(t.Context(), retry.Constant(5, time.Hour), func(ctx context.Context, _ int) (int, error) {
			calls++
			return limit.Do(ctx, s, func(context.Context, limit.Lease) (int, error) { return 1, nil }, c.amounts...)
		})
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, calls)
		require.Equal(t, limit.Unknown, s.Wait(c.amounts...))
		lease, err := s.TryAcquire(c.amounts...)
		require.Nil(t, lease)
		require.ErrorIs(t, err, c.is)
	}
	require.Zero(t, s.Usage()[0].Used)
	require.False(t, errors.Is(limit.ErrAmount, limit.ErrTooMuch))
}
