package step_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// onboarding is a job with something of everything, one thing after the other, so that each is called in a known order.
func onboarding(count calls) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := count.do(ctx, "welcome", 1); err != nil {
			return err
		}
		link, err := step.Token(ctx, "link", "verified")
		if err != nil {
			return err
		}
		begun, err := step.Now(ctx, "begun")
		if err != nil {
			return err
		}
		if _, err := step.Await[bool](ctx, "verified", step.Timeout(24*time.Hour)); err != nil {
			return err
		}
		if err := flaky(ctx, count); err != nil {
			return err
		}
		if _, err := step.Call[int](ctx, "ship", "shipping", link, step.After(time.Hour)); err != nil {
			return err
		}
		i, err := step.Race(ctx, "which", awaits(ctx, "never"), sleeps(ctx, "patience", time.Hour, 1))
		if err != nil {
			return err
		}
		count[fmt.Sprint("end ", i, begun.Hour())]++
		return nil
	}
}

// flaky succeeds at its third attempt.
func flaky(ctx context.Context, count calls) error {
	_, err := step.Do(ctx, "flaky", func(context.Context) (int, error) {
		if count["flaky"]++; count["flaky"] < 3 {
			return 0, errFlaky
		}
		return 1, nil
	}, step.Retry(retry.Constant(9, time.Minute)))
	return err
}

// finish runs a job to its end, with all that it needs from outside.
func finish(t *testing.T, job *steptest.Job, fn func(context.Context) error) error {
	t.Helper()
	for range 100 {
		out := job.Drive(t.Context(), fn)
		if job.Settled() {
			return job.Err()
		}
		require.ErrorIs(t, out.Err, steptest.ErrStuck)
		require.NoError(t, job.Complete("ship", 1))
	}
	t.Fatalf("the job does not end:\n%v", job)
	return nil
}

// The process dies at every commit in turn, before and after it.
func TestACrashAtEveryRecord(t *testing.T) {
	whole := steptest.New()
	require.NoError(t, whole.Send("verified", true))
	require.NoError(t, finish(t, whole, onboarding(calls{})))
	require.Greater(t, whole.Writes(), 9)
	for n := 1; n <= whole.Writes(); n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(n, after), func(t *testing.T) {
				job, count := steptest.New(), calls{}
				require.NoError(t, job.Send("verified", true))
				job.CrashAt(n, after)
				require.NoError(t, finish(t, job, onboarding(count)))
				require.ElementsMatch(t, strings.Split(whole.String(), "\n"), strings.Split(job.String(), "\n"))
				require.LessOrEqual(t, count["welcome"], 2)
				require.LessOrEqual(t, count["flaky"], 4)
				if after {
					require.Equal(t, 1, count["welcome"], "once for the attempt that is recorded")
					require.Equal(t, 3, count["flaky"])
					require.Equal(t, 3, job.Step("flaky").Attempt)
				}
				require.GreaterOrEqual(t, count["end 1 0"], 1)
			})
		}
	}
}

func TestALostLeaseEndsTheRun(t *testing.T) {
	job, count := steptest.New(), calls{}
	var zombie error
	fn := func(ctx context.Context) error {
		if _, err := count.do(ctx, "a", 1); err != nil {
			return err
		}
		_, err := step.Do(ctx, "b", func(context.Context) (int, error) {
			if count["b"]++; count["b"] == 1 {
				job.Lose()
			}
			return count["b"], nil
		})
		if err != nil {
			return err
		}
		if _, err = count.do(ctx, "c", 1); err != nil { // it waits for the record of b
			zombie = count.fails(ctx, "d", nil)
			return nil // a function that swallows it
		}
		return nil
	}
	out := job.Run(t.Context(), fn)
	require.False(t, out.Suspended)
	require.ErrorIs(t, out.Err, step.ErrLost)
	require.ErrorIs(t, zombie, step.ErrLost, "nothing more is begun")
	require.False(t, job.Settled())
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, calls{"a": 1, "b": 2, "c": 1}, count)
}

// A zombie finishes late: its result is refused, and that of the run that has the job stands.
func TestALateResultIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := steptest.New()
		release := make(chan struct{})
		late := make(chan step.Outcome)
		go func() {
			late <- job.Run(t.Context(), func(ctx context.Context) error {
				_, err := step.Do(ctx, "x", func(context.Context) (int, error) { <-release; return 1, nil })
				return err
			})
		}()
		synctest.Wait()
		job.Lose()
		require.NoError(t, job.Run(t.Context(), func(ctx context.Context) error {
			return second(calls{}.do(ctx, "x", 2))
		}).Err)
		close(release)
		require.ErrorIs(t, (<-late).Err, step.ErrLost)
		require.JSONEq(t, "2", string(job.Step("x").Result))
	})
}

func TestALostLeaseEndsTheOtherBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := steptest.New()
		out := job.Run(t.Context(), func(ctx context.Context) error {
			busy := step.Go(ctx, func(ctx context.Context) (int, error) {
				return step.Do(ctx, "busy", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			})
			waits := awaits(ctx, "e")
			synctest.Wait()
			job.Lose()
			_, err := calls{}.do(ctx, "x", 1)
			require.ErrorIs(t, err, step.ErrLost)
			require.ErrorIs(t, step.All(ctx, busy, waits), step.ErrLost)
			return nil
		})
		require.ErrorIs(t, out.Err, step.ErrLost)
	})
}

// The engine stops, or the case is canceled: what is under way says nothing about the work, and is done again.
func TestACanceledJobRecordsNoFailure(t *testing.T) {
	job := steptest.New()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("shutting down")
	out := job.Run(ctx, func(ctx context.Context) error {
		if _, err := (calls{}).do(ctx, "a", 1); err != nil {
			return err
		}
		return second(step.Do(ctx, "b", func(ctx context.Context) (int, error) {
			cancel(why)
			return 0, ctx.Err()
		}, step.Retry(retry.Constant(9, 0))))
	})
	require.ErrorIs(t, out.Err, context.Canceled)
	require.ErrorIs(t, out.Err, why)
	require.Len(t, job.Steps(), 1)
}

func TestCompletedStepIsRecordedThoughJobIsCanceled(t *testing.T) {
	job := steptest.New()
	ctx, cancel := context.WithCancel(t.Context())
	out := job.Run(ctx, func(ctx context.Context) error {
		_, err := step.Do(ctx, "charge", func(context.Context) (int, error) { cancel(); return 7, nil })
		require.NoError(t, err)
		return second(calls{}.do(ctx, "next", 1))
	})
	require.ErrorIs(t, out.Err, context.Canceled)
	require.JSONEq(t, "7", string(job.Step("charge").Result))
	require.Nil(t, job.Step("next"))
}

func TestACanceledJobEndsItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := steptest.New()
		ctx, cancel := context.WithCancel(t.Context())
		out := job.Run(ctx, func(ctx context.Context) error {
			busy := step.Go(ctx, func(ctx context.Context) (int, error) {
				return step.Do(ctx, "busy", func(ctx context.Context) (int, error) {
					synctest.Wait() // the others wait
					cancel()
					<-ctx.Done()
					return 0, ctx.Err()
				})
			})
			return step.All(ctx, busy, awaits(ctx, "e"), sleeps(ctx, "s", time.Hour, 1))
		})
		require.False(t, out.Suspended)
		require.ErrorIs(t, out.Err, context.Canceled)
	})
}

func TestATimeoutEndsTheCallAndNotTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, n := steptest.New(), 0
		slow := func(ctx context.Context) (int, error) {
			if n++; n < 3 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 7, nil
		}
		out := job.Drive(t.Context(), func(ctx context.Context) error {
			v, err := step.Do(ctx, "slow", slow, step.Timeout(time.Second), step.Retry(retry.Constant(3, time.Minute)))
			if err == nil {
				require.Equal(t, 7, v)
			}
			return err
		})
		require.NoError(t, out.Err)
		require.Equal(t, 3, n)

		n = 0
		start := time.Now()
		out = steptest.New().Run(t.Context(), func(ctx context.Context) error {
			_, err := step.Do(ctx, "slow", slow, step.Timeout(time.Second))
			return err
		})
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, out.Err, step.ErrTimeout)
		require.EqualError(t, out.Err, `step "slow": timeout: not done within 1s: context deadline exceeded`)
	})
}

// journal is one that can say no, and anything else that a real one should not.
type journal struct {
	step.Journal
	record  func([]*workitem.Step) ([]*workitem.Step, error)
	suspend func([]*workitem.Step) ([]*workitem.Step, bool, error)
}

func (j journal) Record(context.Context, ...*workitem.Step) ([]*workitem.Step, error) {
	return j.record(nil)
}

func (j journal) Suspend(_ context.Context, s ...*workitem.Step) ([]*workitem.Step, bool, error) {
	return j.suspend(s)
}

func (j journal) Queue(...*workitem.Step) func() ([]*workitem.Step, error) {
	return func() ([]*workitem.Step, error) { return j.record(nil) }
}

func (journal) Steps() []*workitem.Step    { return nil }
func (journal) Watch(func(*workitem.Step)) {}
func (journal) Now() time.Time             { return time.Unix(0, 0) }

func (journal) Tx(
	context.Context, *workitem.Step, func(context.Context, domain.DB) (json.RawMessage, error),
) (*workitem.Step, error) {
	return nil, errFlaky
}

func token(ctx context.Context) error { return second(step.Token(ctx, "t", "e")) }

// twoSteps calls a step that succeeds, and one that waits for the record of the first.
func twoSteps(ctx context.Context) error {
	if err := second(calls{}.do(ctx, "one", 1)); err != nil {
		panic("the function does not go on")
	}
	return second(step.Do(ctx, "two", func(context.Context) (int, error) { panic("called without the record of the first") }))
}

func TestAJournalThatFailsEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		j    journal
		fn   func(context.Context) error
		text string
	}{
		"record": {journal{record: func([]*workitem.Step) ([]*workitem.Step, error) { return nil, errFlaky }},
			token, "connection refused"},
		"record too little": {journal{record: func([]*workitem.Step) ([]*workitem.Step, error) { return nil, nil }},
			token, "the journal took 1 steps and returned 0"},
		"queue": {journal{record: func([]*workitem.Step) ([]*workitem.Step, error) { return nil, errFlaky }},
			twoSteps, "connection refused"},
		"queue too little": {journal{record: func([]*workitem.Step) ([]*workitem.Step, error) { return nil, nil }},
			twoSteps, "the journal took 1 steps and returned 0"},
		"suspend": {journal{suspend: func([]*workitem.Step) ([]*workitem.Step, bool, error) { return nil, false, errFlaky }},
			nap, "connection refused"},
		"suspend too little": {
			journal{suspend: func([]*workitem.Step) ([]*workitem.Step, bool, error) { return nil, true, nil }},
			nap, "the journal took 1 steps and returned 0"},
		"tx": {journal{}, func(ctx context.Context) error { return second(step.Tx(ctx, "x", noTx)) }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			run := step.NewRun(c.j, step.Info{})
			ctx := run.Context(t.Context())
			err := c.fn(ctx)
			require.ErrorContains(t, err, c.text)
			require.Error(t, ctx.Err(), "the job's context ends, for what else is under way")
			require.ErrorContains(t, second(calls{}.do(ctx, "next", 1)), c.text)
			require.EqualError(t, run.End(nil).Err, c.text)
		})
	}
}

// Nothing is left behind in memory, however a run ends: each test in a bubble fails if a goroutine stays.
func TestNoGoroutineIsLeft(t *testing.T) {
	for name, fn := range map[string]func(context.Context) error{
		"suspended": func(ctx context.Context) error {
			return step.All(ctx, awaits(ctx, "a"), awaits(ctx, "b"), sleeps(ctx, "c", time.Hour, 1))
		},
		"failed": func(ctx context.Context) error {
			awaits(ctx, "a")
			sleeps(ctx, "c", time.Hour, 1)
			return errFlaky
		},
		"panicked": func(ctx context.Context) error {
			awaits(ctx, "a")
			panic("a bug")
		},
		"chosen": func(ctx context.Context) error {
			_, err := step.Race(ctx, "which", awaits(ctx, "a"), sleeps(ctx, "c", 0, 1))
			return err
		},
		"swallowed": func(ctx context.Context) error {
			for i := range 10 {
				_ = step.Sleep(ctx, fmt.Sprint(i), time.Hour)
				awaits(ctx, fmt.Sprint("e", i))
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { steptest.New().Run(t.Context(), fn) })
		})
	}
}

// A branch wakes while the others are being suspended, and the suspension gives way.
func TestAnEndDuringTheSuspension(t *testing.T) {
	for _, later := range []bool{false, true} {
		job := steptest.New()
		job.Later = later
		out := job.Run(t.Context(), func(ctx context.Context) error {
			require.NoError(t, job.Send("b", 2)) // kept, so that the Suspend with the wait finds it
			a := step.Go(ctx, func(ctx context.Context) (int, error) { return 1, step.Sleep(ctx, "a", time.Hour) })
			b, err := step.Await[int](ctx, "b")
			require.NoError(t, err)
			require.Equal(t, 2, b)
			_, err = a.Wait(ctx)
			return err
		})
		require.True(t, out.Suspended)
	}
}

// What ends and is of use to no one does not keep the job in memory.
func TestASpuriousEnd(t *testing.T) {
	for _, later := range []bool{false, true} {
		job := steptest.New()
		job.Later = later
		fn := func(ctx context.Context) error {
			if job.Step("gone") == nil {
				return step.Sleep(ctx, "gone", time.Minute)
			}
			return step.Sleep(ctx, "other", time.Hour) // the code was changed
		}
		require.True(t, job.Run(t.Context(), fn).Suspended)
		require.True(t, job.Run(t.Context(), fn).Suspended)
		job.Advance(time.Minute)
		require.True(t, job.Run(t.Context(), fn).Suspended)
		job.Advance(time.Hour)
		require.ErrorIs(t, job.Run(t.Context(), fn).Err, step.ErrHistory)
	}
}

// The end of a context is said once where the function hands it on.
func TestAnEndIsSaidOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := steptest.New().Run(ctx, func(ctx context.Context) error {
		return second(step.Do(ctx, "a", func(ctx context.Context) (int, error) {
			cancel()
			return 0, fmt.Errorf("half done: %w", ctx.Err())
		}))
	})
	require.EqualError(t, out.Err, `step "a": half done: context canceled`)
}
