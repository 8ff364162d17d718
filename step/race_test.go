package step_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

func TestRaceOfAnEventAndATimer(t *testing.T) {
	for name, c := range map[string]struct {
		sent   time.Duration
		winner int
		asleep bool // the worker is away until both have come
	}{
		"no event":                  {-1, 1, false},
		"event first":               {time.Second / 2, 0, false},
		"event late":                {time.Hour, 1, false},
		"event first, worker away":  {time.Second / 2, 0, true},
		"timer first, worker away":  {time.Second * 2, 1, true},
		"event at once, worker off": {0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				raceOnce(t, c.sent, c.winner, c.asleep)
			}
		})
	}
}

func raceOnce(t *testing.T, sent time.Duration, winner int, asleep bool) {
	job := steptest.New()
	seen := map[int]bool{}
	fn := func(ctx context.Context) error {
		i, err := step.Race(ctx, "which", awaits(ctx, "e"), sleeps(ctx, "timer", time.Second, 1))
		if err != nil {
			return err
		}
		seen[i] = true
		return step.Sleep(ctx, "then", 10*time.Hour)
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	if sent >= 0 {
		job.Advance(sent)
		if job.Ready() && !asleep {
			job.Run(t.Context(), fn)
		}
		require.NoError(t, job.Send("e", 1))
		if asleep {
			job.Advance(5 * time.Second)
		}
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, map[int]bool{winner: true}, seen, "the same on every replay")
}

func TestLoserOfRaceStopsWaiting(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		if _, err := step.Race(ctx, "which", awaits(ctx, "e"), sleeps(ctx, "timer", time.Second, 1)); err != nil {
			return err
		}
		v, err := step.Await[int](ctx, "e", step.Named("for good"))
		if err == nil {
			require.Equal(t, 5, v)
		}
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(time.Second)
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, workitem.StepCanceled, job.Step("e").State)
	require.NoError(t, job.Send("e", 5))
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

func TestLoserOfRaceHasItsContextCanceled(t *testing.T) {
	job := steptest.New()
	job.CrashAt(2, false) // so that there is a replay, on which the loser is not called again
	n := 0
	out := job.Drive(t.Context(), func(ctx context.Context) error {
		slow := step.Go(ctx, func(ctx context.Context) (int, error) {
			return step.Do(ctx, "slow", func(ctx context.Context) (int, error) {
				n++
				<-ctx.Done()
				return 1, nil // which counts for nothing
			})
		})
		if i, err := step.Race(ctx, "which", slow, sleeps(ctx, "quick", 0, 1)); i != 1 || err != nil {
			return fmt.Errorf("branch %d: %w", i, err)
		}
		_, err := slow.Wait(ctx)
		require.ErrorIs(t, err, step.ErrCanceled)
		return nil
	})
	require.NoError(t, out.Err)
	require.LessOrEqual(t, n, 1)
	require.Nil(t, job.Step("slow"))
}

func TestLoserOfRaceDoesNothingNewOnReplay(t *testing.T) {
	for range 50 {
		job := steptest.New()
		charged := 0
		fn := func(ctx context.Context) error {
			loser := step.Go(ctx, func(ctx context.Context) (int, error) {
				if _, err := (calls{}).do(ctx, "before", 1); err != nil {
					return 0, err
				}
				return step.Do(ctx, "charge", func(ctx context.Context) (int, error) {
					charged++
					<-ctx.Done()
					return 0, ctx.Err()
				})
			})
			winner := awaits(ctx, "e")
			if _, err := step.Race(ctx, "which", loser, winner); err != nil {
				return err
			}
			return step.Sleep(ctx, "then", time.Hour)
		}
		require.NoError(t, job.Send("e", 1))
		require.NoError(t, job.Drive(t.Context(), fn).Err)
		require.LessOrEqual(t, charged, 1)
	}
}

func TestRaceReturnsTheErrorOfTheFirst(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		bad := step.Go(ctx, func(ctx context.Context) (int, error) { return 0, count.fails(ctx, "bad", errFlaky) })
		i, err := step.Race(ctx, "which", awaits(ctx, "e"), bad)
		if errors.Is(err, step.ErrSuspended) {
			return err
		}
		require.Equal(t, 1, i)
		require.EqualError(t, err, `step "bad": error: connection refused`)
		return step.Sleep(ctx, "then", time.Hour)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, calls{"bad": 1}, count)
}

func TestAnyReturnsTheFirstSuccess(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		bad := step.Go(ctx, func(ctx context.Context) (int, error) { return 0, count.fails(ctx, "bad", errFlaky) })
		late, good := sleeps(ctx, "late", 2*time.Hour, 1), sleeps(ctx, "good", time.Hour, 7)
		i, err := step.Any(ctx, "which", bad, late, good)
		if err != nil {
			return err
		}
		require.Equal(t, 2, i)
		v, err := good.Wait(ctx)
		if err != nil {
			return err
		}
		require.Equal(t, 7, v)
		_, err = bad.Wait(ctx)
		require.EqualError(t, err, `step "bad": error: connection refused`, "it had returned")
		_, err = late.Wait(ctx)
		require.ErrorIs(t, err, step.ErrCanceled)
		return step.Sleep(ctx, "then", time.Hour)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, calls{"bad": 1}, count)
}

func TestAnyReturnsAllErrorsIfNoneSucceeds(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		one := step.Go(ctx, func(ctx context.Context) (int, error) { return 0, errors.New("one") })
		two := step.Go(ctx, func(ctx context.Context) (int, error) { return 0, errFlaky })
		i, err := step.Any(ctx, "which", one, two)
		require.Equal(t, -1, i)
		return err
	})
	require.EqualError(t, out.Err, "one\nconnection refused")
	require.ErrorIs(t, out.Err, errFlaky)
}

func TestChoicesInTheNextAttempt(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		bad := step.Go(ctx, func(ctx context.Context) (int, error) { return 0, count.fails(ctx, "bad", errFlaky) })
		good := step.Go(ctx, func(ctx context.Context) (int, error) {
			if err := step.Sleep(ctx, "nap", time.Minute); err != nil {
				return 0, err
			}
			return count.do(ctx, "good", 1)
		})
		if i, err := step.Any(ctx, "any", bad, good); err != nil || i != 1 {
			return err
		}
		failing := step.Go(ctx, func(ctx context.Context) (int, error) {
			if count["flaky"] == 0 {
				return 0, count.fails(ctx, "flaky", errFlaky)
			}
			return count.do(ctx, "flaky", 1)
		})
		_, err := step.Race(ctx, "race", failing, awaits(ctx, "never"))
		return err
	}
	require.Error(t, job.Drive(t.Context(), fn).Err)
	job.Retry()
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, calls{"bad": 1, "good": 1, "flaky": 2}, count)
}

func TestLoserOfRaceCancelsItsBranches(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		loser := step.Go(ctx, func(ctx context.Context) (int, error) {
			return 0, step.All(ctx, awaits(ctx, "x"), awaits(ctx, "y"))
		})
		if _, err := step.Race(ctx, "which", loser, sleeps(ctx, "timer", time.Minute, 1)); err != nil {
			return err
		}
		return step.Sleep(ctx, "then", time.Minute)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, workitem.StepCanceled, job.Step("x").State)
	require.Equal(t, workitem.StepCanceled, job.Step("y").State)
}

// endsContext is a journal whose engine ends the context of a run before the run learns that it is suspended.
type endsContext struct {
	journal
	cancel func()
}

func (endsContext) Record(_ context.Context, s ...*workitem.Step) ([]*workitem.Step, error) {
	return s, nil
}

func (j endsContext) Suspend(_ context.Context, s ...*workitem.Step) ([]*workitem.Step, bool, error) {
	j.cancel()
	synctest.Wait()
	return s, true, nil
}

// Each branch that waits returns ErrSuspended once the job is given up, and none the end of its context.
func TestASuspendedFunctionSeesNoCanceledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		run := step.NewRun(endsContext{cancel: cancel}, step.Info{})
		ctx = run.Context(ctx)
		err := step.All(ctx, awaits(ctx, "e"), sleeps(ctx, "s", time.Hour, 1))
		require.ErrorIs(t, err, step.ErrSuspended)
		require.NotErrorIs(t, err, context.Canceled)
		require.True(t, run.End(err).Suspended)
	})
}

// A run that is given the context of a job, and how to end it, makes none of its own.
func TestARunEndsTheContextThatItIsGiven(t *testing.T) {
	given, cancel := context.WithCancelCause(t.Context())
	run := step.NewRun(journal{}, step.Info{Cancel: cancel})
	ctx := run.Context(given)
	require.NoError(t, ctx.Err())
	require.NoError(t, run.End(nil).Err)
	require.ErrorIs(t, context.Cause(given), step.ErrNoJob)
	require.Equal(t, context.Cause(given), context.Cause(ctx))
}
