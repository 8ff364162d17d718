package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
)

// forEach is a function that is called once an hour for each customer, who is before the "/" of the input, and remembers its calls.
func forEach(calls *[]string) *builder.FuncRef[string, string] {
	var mu sync.Mutex
	customer := func(s string) string { return strings.Split(s, "/")[0] }
	return builder.MustFunc("f", func(_ context.Context, s string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		*calls = append(*calls, s)
		return s, nil
	}, builder.Limits(builder.TakesBy(limit.Rate("customers", 1, time.Hour, limit.SlidingWindow), 1, customer)))
}

// One customer gets more of a limit, another one less, a third nothing, and the others what they had; it holds over restarts.
func TestOneKeyOfALimitIsSet(t *testing.T) {
	var calls []string
	f := forEach(&calls)
	e := enginetest.New(t, f)
	set := func(c workflow.Command) {
		t.Helper()
		_, err := e.Do(t.Context(), c)
		require.NoError(t, err)
	}
	set(workflow.SetLimitOf("customers", "ada", 3, workflow.By("ann")))
	set(workflow.SetLimitOf("customers", "eve", 0))
	at := e.Now()
	e.Crash(f)
	var paused builder.Run[string]
	for i := range 4 {
		for _, customer := range []string{"ada", "bob", "eve"} {
			r, err := f.Run(t.Context(), e, fmt.Sprint(customer, "/", i))
			require.NoError(t, err)
			if customer == "eve" {
				paused = r
			}
		}
	}
	began := func() (list []string) {
		e.Drain()
		list, calls = calls, nil
		slices.Sort(list)
		return list
	}
	require.Equal(t, []string{"ada/0", "ada/1", "ada/2", "bob/0"}, began())
	says(t, e, paused.ID, "waits for 1 of rate customers, which is paused (of eve)")

	result, err := e.Do(t.Context(), workflow.Limits())
	require.NoError(t, err)
	require.Equal(t, []workflow.KeyLimit{{Key: "ada", N: 3, At: at, By: "ann"}, {Key: "eve", At: at}}, result.Limits[0].Set)
	require.Equal(t, int64(1), result.Limits[0].Limit.N)
	require.NotEqual(t, limit.Unknown, result.Limits[0].Next, "a key that is paused says nothing of the others")

	e.Advance(time.Hour)
	require.Equal(t, []string{"ada/3", "bob/1"}, began())
	set(workflow.SetLimit("customers", 2))
	set(workflow.SetLimitOf("customers", "eve", 3))
	require.Equal(t, []string{"bob/2", "eve/0", "eve/1", "eve/2"}, began(), "the number of all is not that of ada and eve")
	set(workflow.SetLimitOf("customers", "eve", 2))
	set(workflow.SetLimitOf("customers", "ada", 2))
	result, err = e.Do(t.Context(), workflow.Limits())
	require.NoError(t, err)
	require.Empty(t, result.Limits[0].Set, "the number of the others is no number of their own")
	set(workflow.SetLimit("customers", 4))
	require.Equal(t, []string{"bob/3", "eve/3"}, began())
}

func TestAKeyOfALimitThatCannotBeSet(t *testing.T) {
	t.Parallel()
	var calls []string
	e := enginetest.New(t, forEach(&calls), builder.MustFunc("all", func(context.Context, int) (int, error) { return 0, nil },
		builder.Limits(builder.Takes(limit.Resource("all", 1), 1))))
	for want, c := range map[string]workflow.Command{
		"it contains a NUL":                   workflow.SetLimitOf("customers", "a\x00", 1),
		"not UTF-8":                           workflow.SetLimitOf("customers", "a\xff", 1),
		"limit all has no keys":               workflow.SetLimitOf("all", "ada", 2),
		"the key of limit customers is empty": workflow.SetLimitOf("customers", "", 1),
		"has 1001 bytes":                      workflow.SetLimitOf("customers", strings.Repeat("x", 1001), 1),
		"N is -1":                             workflow.SetLimitOf("customers", "ada", -1),
		"there are":                           workflow.SetLimitOf("custmers", "ada", 1),
		`takes no "limitKey"`:                 workflow.With(workflow.Command{Kind: workflow.KindPause, LimitKey: "ada"}),
	} {
		_, err := e.Do(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
	for i := range workflow.MaxLimitKeys {
		_, err := e.Do(t.Context(), workflow.SetLimitOf("customers", fmt.Sprint(i), 5))
		require.NoError(t, err)
	}
	_, err := e.Do(t.Context(), workflow.SetLimitOf("customers", "ada", 5))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.ErrorContains(t, err, `1000 keys of limit customers have a number of their own, which is as many as can: set one of them to 1, the number of the others, and then "ada"`)
	_, err = e.Do(t.Context(), workflow.SetLimitOf("customers", "7", 1))
	require.NoError(t, err)
	_, err = e.Do(t.Context(), workflow.SetLimitOf("customers", "ada", 5))
	require.NoError(t, err)
}

// Another engine goes by what is set for a key, of a limit that all share.
func TestEnginesLearnWhatIsSetForAKey(t *testing.T) {
	f := newFleet(t)
	w := func() *builder.FuncRef[string, string] {
		return builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil },
			builder.Limits(builder.TakesBy(limit.Resource("customers", 0).Shared(), 1, func(s string) string { return s })))
	}
	one, two := w(), w()
	a, b := f.open(engine.Config{}, one), f.open(engine.Config{}, two)
	eve, err := two.Run(t.Context(), b, "eve")
	require.NoError(t, err)
	ada, err := two.Run(t.Context(), b, "ada")
	require.NoError(t, err)
	_, err = a.Do(t.Context(), workflow.SetLimitOf("customers", "ada", 1))
	require.NoError(t, err)
	_, err = ada.Result(t.Context(), b)
	require.NoError(t, err)
	answer, err := b.Why(t.Context(), eve.ID)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "waits for 1 of slots customers")
}

// A job and a step can take more than the others of a key that is set to more.
func TestAKeyThatHasMoreAdmitsMoreAtOnce(t *testing.T) {
	tokens := limit.Rate("tokens", 5, time.Minute, limit.SlidingWindow)
	f := builder.MustFunc("f", func(ctx context.Context, s string) (string, error) {
		return step.Do(ctx, "ask", func(context.Context) (string, error) { return s, nil }, step.Limits(step.TakesBy(tokens, 10, s)))
	}, builder.Limits(builder.TakenBySteps(tokens)))
	e := enginetest.New(t, f)
	_, err := e.Do(t.Context(), workflow.SetLimitOf("tokens", "ada", 20))
	require.NoError(t, err)
	for _, customer := range []string{"ada", "bob"} {
		r, err := f.Run(t.Context(), e, customer)
		require.NoError(t, err)
		e.Drain()
		_, err = r.Result(t.Context(), e)
		if customer == "ada" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "the step takes 10 of")
		}
	}
}

// The doctor names the key that is set to 0, and not the others.
func TestTheDoctorFindsAKeyAtZero(t *testing.T) {
	var calls []string
	f := forEach(&calls)
	e := enginetest.New(t, f)
	found := func() (list []string) {
		e.Drain()
		e.Advance(2 * time.Hour)
		for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now()}) {
			require.NoError(t, err)
			require.Equal(t, why.CauseLimited, s.Cause)
			list = append(list, s.Repair)
		}
		return list
	}
	for name, n := range map[string]int64{"ada": 1, "-eve": 0} {
		_, err := e.Do(t.Context(), workflow.SetLimitOf("customers", name, n))
		require.NoError(t, err)
		_, err = f.Run(t.Context(), e, name+"/0")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"tasq limit set --key -eve customers 1"}, found())
	require.Equal(t, []string{"ada/0"}, calls)
	_, err := e.Do(t.Context(), workflow.SetLimitOf("customers", "-eve", 1))
	require.NoError(t, err)
	_, err = e.Do(t.Context(), workflow.SetLimit("customers", 0))
	require.NoError(t, err)
	require.Empty(t, found(), "a key with a number of its own goes on")
	require.Equal(t, []string{"ada/0", "-eve/0"}, calls)
}
