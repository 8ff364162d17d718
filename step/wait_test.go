package step_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

func TestASleepEndsAtItsTimeAndNotBefore(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"an hour": time.Hour, "30 days": 30 * 24 * time.Hour, "100 years": 36525 * 24 * time.Hour,
		"the longest": math.MaxInt64, "the shortest": 1,
	} {
		t.Run(name, func(t *testing.T) {
			job, count := steptest.New(), calls{}
			fn := func(ctx context.Context) error {
				if err := step.Sleep(ctx, "sleep", d); err != nil {
					return err
				}
				_, err := count.do(ctx, "after", 1)
				return err
			}
			begin := job.Now()
			require.True(t, job.Run(t.Context(), fn).Suspended)
			require.Equal(t, begin.Add(d), job.Step("sleep").Due)
			job.Advance(d - 1)
			require.False(t, job.Ready())
			job.Advance(1)
			require.True(t, job.Ready())
			require.NoError(t, job.Run(t.Context(), fn).Err)
			require.Equal(t, calls{"after": 1}, count)
			require.Equal(t, begin.Add(d), job.Now())
			require.Equal(t, 1, job.Step("after").Run, "the attempts are unchanged")
		})
	}
}

func TestAZeroSleepGoesOnAtOnce(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		if err := step.Sleep(ctx, "nothing", 0); err != nil {
			return err
		}
		return step.SleepUntil(ctx, "the past", job.Now().Add(-time.Hour))
	})
	require.NoError(t, out.Err)
	require.Equal(t, 1, job.Writes(), "recorded with the end of the job")
	require.Equal(t, "nothing sleep done\nthe past sleep done\n", job.String())
}

func TestSillySleepsAreErrors(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		err := step.Sleep(ctx, "back", -1)
		require.ErrorIs(t, err, step.ErrUsage)
		require.Regexp(t, `^step "back", at wait_test.go:\d+: -1ns is negative$`, err.Error())
		err = step.SleepUntil(ctx, "when", time.Time{})
		require.ErrorIs(t, err, step.ErrUsage)
		err = step.SleepUntil(ctx, "never", time.Date(workitem.LastYear+1, 1, 1, 0, 0, 0, 0, time.UTC))
		require.ErrorIs(t, err, step.ErrUsage)
		require.ErrorContains(t, err, "the year 290001 is too far")
		return nil
	})
	require.ErrorIs(t, out.Err, step.ErrUsage, "though the function hides it")
}

// The code has changed while the job slept; the job wakes at the recorded time.
func TestTheFirstWakeTimeHolds(t *testing.T) {
	job, d := steptest.New(), time.Hour
	fn := func(ctx context.Context) error { return step.Sleep(ctx, "sleep", d) }
	require.True(t, job.Run(t.Context(), fn).Suspended)
	for _, d = range []time.Duration{time.Minute, 0, 1000 * time.Hour} {
		require.True(t, job.Run(t.Context(), fn).Suspended)
	}
	job.Advance(time.Hour)
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

func TestAnEventWakesTheJob(t *testing.T) {
	job := steptest.New()
	type payment struct {
		Amount int `json:"amount" validate:"gt=0"`
	}
	var got payment
	fn := func(ctx context.Context) (err error) {
		got, err = step.Await[payment](ctx, "paid")
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, 1, job.Writes())
	require.NoError(t, job.Send("refunded", payment{1}))
	require.False(t, job.Ready(), "another event")
	require.NoError(t, job.Send("paid", payment{100}))
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, payment{100}, got)
}

func TestAnEventThatComesEarlyIsKept(t *testing.T) {
	job := steptest.New()
	require.NoError(t, job.Send("n", 1))
	require.NoError(t, job.Send("n", 2))
	var got [3]int
	fn := func(ctx context.Context) (err error) {
		for i, name := range []string{"first", "second", "third"} {
			if got[i], err = step.Await[int](ctx, "n", step.Named(name)); err != nil {
				return err
			}
		}
		return nil
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, [3]int{1, 2, 0}, got, "first in, first out, and once each")
	require.NoError(t, job.Send("n", 3))
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, [3]int{1, 2, 3}, got)
}

func TestAnEventWithoutAValueIsNull(t *testing.T) {
	type strict struct {
		Text string `json:"text" validate:"required"`
	}
	job := steptest.New()
	require.NoError(t, job.Send("go", nil))
	require.NoError(t, job.Send("on", nil))
	out := job.Run(t.Context(), func(ctx context.Context) error {
		n, err := step.Await[int](ctx, "go")
		require.NoError(t, err)
		require.Zero(t, n)
		s, err := step.Await[strict](ctx, "on")
		require.NoError(t, err)
		require.Zero(t, s)
		return nil
	})
	require.NoError(t, out.Err)
}

func TestAnEventThatBreaksTheRulesIsAFailure(t *testing.T) {
	type payment struct {
		Amount int `json:"amount" validate:"gt=0"`
	}
	for name, value := range map[string]any{"rule": payment{-1}, "type": "a hundred"} {
		t.Run(name, func(t *testing.T) {
			job := steptest.New()
			if name == "rule" { // the sender knows no rules
				require.NoError(t, job.Send("paid", map[string]int{"amount": -1}))
			} else {
				require.NoError(t, job.Send("paid", value))
			}
			out := job.Run(t.Context(), func(ctx context.Context) error {
				_, err := step.Await[payment](ctx, "paid")
				return err
			})
			f := workitem.FailureOf(out.Err)
			require.Equal(t, workitem.CodeInvalid, f.Code)
			require.False(t, f.Retryable)
		})
	}
}

func TestAnEventInTime(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, sent time.Duration
		ok            bool
	}{
		"before":          {time.Hour, time.Hour - 1, true},
		"at the deadline": {time.Hour, time.Hour, false},
		"after":           {time.Hour, time.Hour + 1, false},
		"no time":         {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := steptest.New()
			outcomes := map[string]bool{}
			fn := func(ctx context.Context) error {
				v, err := step.Await[int](ctx, "e", step.Timeout(c.timeout))
				switch {
				case err == nil:
					require.Equal(t, 5, v)
					outcomes["event"] = true
				case errors.Is(err, step.ErrTimeout):
					outcomes["timeout"] = true
				default:
					return err
				}
				return step.Sleep(ctx, "then", time.Hour)
			}
			require.True(t, job.Run(t.Context(), fn).Suspended)
			job.Advance(c.sent)
			require.NoError(t, job.Send("e", 5))
			require.NoError(t, job.Drive(t.Context(), fn).Err)
			require.Equal(t, map[string]bool{map[bool]string{true: "event", false: "timeout"}[c.ok]: true}, outcomes,
				"one outcome, on every replay")
		})
	}
}

// An event of which nothing is known yet can be asked for without waiting.
func TestATimeoutOfZeroPolls(t *testing.T) {
	job := steptest.New()
	require.NoError(t, job.Send("e", 5))
	out := job.Run(t.Context(), func(ctx context.Context) error {
		v, err := step.Await[int](ctx, "e", step.Timeout(0))
		require.NoError(t, err)
		require.Equal(t, 5, v)
		_, err = step.Await[int](ctx, "e", step.Timeout(0), step.Named("again"))
		require.ErrorIs(t, err, step.ErrTimeout)
		return nil
	})
	require.Equal(t, step.Outcome{}, out)
}

func TestALateEventIsKeptForTheNextWait(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		_, err := step.Await[int](ctx, "e", step.Timeout(time.Hour))
		if !errors.Is(err, step.ErrTimeout) {
			return err
		}
		v, err := step.Await[int](ctx, "e", step.Named("again"))
		if err == nil {
			require.Equal(t, 5, v)
		}
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(time.Hour)
	require.NoError(t, job.Send("e", 5))
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

func TestTheFirstDeadlineHolds(t *testing.T) {
	job, d := steptest.New(), time.Hour
	fn := func(ctx context.Context) error {
		_, err := step.Await[int](ctx, "e", step.Timeout(d))
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(time.Minute)
	d = 10 * time.Hour
	require.True(t, job.Run(t.Context(), fn).Suspended, "as after a crash")
	job.Advance(59 * time.Minute)
	require.ErrorIs(t, job.Run(t.Context(), fn).Err, step.ErrTimeout)
}

func TestABroadcastIsDeliveredToWaitingCases(t *testing.T) {
	job := steptest.New()
	require.NoError(t, job.Broadcast("prices", 1), "nobody waits, and none is kept")
	fn := func(ctx context.Context) error {
		v, err := step.Await[int](ctx, "prices", step.Topic())
		if err == nil {
			require.Equal(t, 2, v)
		}
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.NoError(t, job.Send("prices", 7))
	require.False(t, job.Ready(), "an event of the same name is not the topic")
	require.NoError(t, job.Broadcast("prices", 2))
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

func TestOptionsThatDoNothingAreRefused(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		n := calls{}
		for _, c := range []struct {
			text string
			err  error
		}{
			{"Named does nothing here: it takes Retry, Timeout, Input, Loose", n.fails(ctx, "a", nil, step.Named("b"))},
			{"Retry: invalid retry policy: Attempts is -1", n.fails(ctx, "a", nil, step.Retry(policyOf(-1)))},
			{"Loose is given twice", n.fails(ctx, "a", nil, step.Loose(), step.Loose())},
			{"an option is empty", n.fails(ctx, "a", nil, step.Option{})},
			{"Input: invalid func(): write func() as JSON", n.fails(ctx, "a", nil, step.Input(func() {}))},
			{"Timeout: -1ns is negative", n.fails(ctx, "a", nil, step.Timeout(-1))},
			{"a Timeout of 0 leaves no time", n.fails(ctx, "b", nil, step.Timeout(0))},
			{"Retry does nothing here", second(step.Tx(ctx, "a", noTx, step.Retry(policyOf(2))))},
			{"After does nothing here", second(step.Await[int](ctx, "a", step.After(1)))},
			{"After: -1ns is negative", second(step.Call[int](ctx, "a", "w", nil, step.After(-1)))},
			{"the name is empty", n.fails(ctx, "", nil)},
			{"the name is 201 bytes long", n.fails(ctx, string(make([]byte, 201)), nil)},
			{"the name isn't text", n.fails(ctx, "\xff", nil)},
			{"a NUL is in the name", n.fails(ctx, "a\x00", nil)},
			{"the workflow has no name", second(step.Call[int](ctx, "a", "", nil))},
			{"the input of w: invalid func(): write func() as JSON", second(step.Call[int](ctx, "a", "w", func() {}))},
			{"the event: the name is empty", second(step.Await[int](ctx, "", step.Named("c")))},
			{"the event: the name is empty", second(step.Token(ctx, "d", ""))},
			{"the version -1 is negative", second(step.Version(ctx, "e", -1))},
		} {
			require.ErrorIs(t, c.err, step.ErrUsage, c.text)
			require.ErrorContains(t, c.err, c.text)
			require.ErrorContains(t, c.err, "_test.go:", "where")
		}
		require.Empty(t, n)
		return nil
	})
	require.ErrorContains(t, out.Err, "Named does nothing here", "the first one, though the function hides all")
}

func second[T any](_ T, err error) error { return err }

func noTx(context.Context, domain.DB) (int, error) { return 0, nil }
