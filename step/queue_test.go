package step_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// chain is a function of n steps, each of which requires that the one before it is recorded when it is called.
func chain(t *testing.T, job *steptest.Job, n int, count calls) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range n {
			_, err := step.Do(ctx, fmt.Sprint(i), func(context.Context) (int, error) {
				count[fmt.Sprint(i)]++
				if i > 0 {
					require.NotNil(t, job.Step(fmt.Sprint(i-1)), "step %d is called before step %d is durable", i, i-1)
				}
				return i, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func TestTheLastStepAndTheEndShareACommit(t *testing.T) {
	for n := 1; n <= 5; n++ {
		job := steptest.New()
		require.NoError(t, job.Run(t.Context(), chain(t, job, n, calls{})).Err)
		require.Len(t, job.Steps(), n)
		require.Equal(t, n, job.Writes())
	}
}

// A failed step is no other: its record and the failure of the job are one commit.
func TestAFailedStepAndTheFailureShareACommit(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		return second(step.Do(ctx, "x", func(context.Context) (int, error) { return 0, errFlaky }))
	})
	require.EqualError(t, out.Err, `step "x": error: connection refused`)
	require.Equal(t, workitem.StepFailed, job.Step("x").State)
	require.Equal(t, 1, job.Writes())
}

// The process dies at each commit: a step is called again only if its own record was lost, and no step ran ahead of it.
func TestNoStepRunsAheadOfARecordThatIsLost(t *testing.T) {
	const n = 4
	for at := 1; at <= n; at++ {
		for _, after := range []bool{false, true} {
			job, count := steptest.New(), calls{}
			job.CrashAt(at, after)
			require.ErrorIs(t, job.Run(t.Context(), chain(t, job, n, count)).Err, steptest.ErrCrashed)
			require.Len(t, count, at, "the steps up to the one whose record the crash met")
			want := map[bool]int{false: at - 1, true: at}[after]
			require.Len(t, job.Steps(), want)
			require.NoError(t, job.Drive(t.Context(), chain(t, job, n, count)).Err)
			for i := range n {
				calls := 1
				if i == at-1 && !after {
					calls = 2
				}
				require.Equal(t, calls, count[fmt.Sprint(i)], "step %d with a crash at %d", i, at)
			}
		}
	}
}

// Whatever a function does next waits until the step before it is recorded.
func TestEachEffectWaitsForTheStepBefore(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "q.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for name, effect := range map[string]func(context.Context, func()) error{
		"do": func(ctx context.Context, seen func()) error {
			return second(step.Do(ctx, "next", func(context.Context) (int, error) { seen(); return 1, nil }))
		},
		"tx": func(ctx context.Context, seen func()) error {
			return second(step.Tx(ctx, "next", func(context.Context, domain.DB) (int, error) { seen(); return 1, nil }))
		},
		"branch": func(ctx context.Context, seen func()) error {
			return second(step.Go(ctx, func(context.Context) (int, error) { seen(); return 1, nil }).Wait(ctx))
		},
		"map": func(ctx context.Context, seen func()) error {
			return second(step.Map(ctx, []int{1}, 0, func(context.Context, int, int) (int, error) { seen(); return 1, nil }))
		},
		"now": func(ctx context.Context, seen func()) error {
			err := second(step.Now(ctx, "next"))
			seen()
			return err
		},
		"token": func(ctx context.Context, seen func()) error {
			err := second(step.Token(ctx, "next", "e"))
			seen()
			return err
		},
		"sleep": func(ctx context.Context, seen func()) error {
			err := step.Sleep(ctx, "next", time.Hour)
			seen()
			return err
		},
		"await": func(ctx context.Context, seen func()) error {
			err := second(step.Await[any](ctx, "next"))
			seen()
			return err
		},
		"call": func(ctx context.Context, seen func()) error {
			err := second(step.Call[any](ctx, "next", "child", 1))
			seen()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			job, seen := steptest.New(), 0
			job.DB = db
			out := job.Run(t.Context(), func(ctx context.Context) error {
				if err := second(calls{}.do(ctx, "first", 1)); err != nil {
					return err
				}
				require.Nil(t, job.Step("first"), "the function goes on before its record")
				return effect(ctx, func() {
					seen++
					require.NotNil(t, job.Step("first"))
				})
			})
			require.NoError(t, out.Err)
			require.Equal(t, 1, seen)

			lost := steptest.New()
			lost.DB = db
			lost.CrashAt(1, false)
			out = lost.Run(t.Context(), func(ctx context.Context) error {
				if err := second(calls{}.do(ctx, "first", 1)); err != nil {
					return err
				}
				err := effect(ctx, func() {})
				require.ErrorIs(t, err, steptest.ErrCrashed)
				return nil // the run knows
			})
			require.ErrorIs(t, out.Err, steptest.ErrCrashed)
			require.Empty(t, lost.Steps())
		})
	}
}

// Where branches continue, what they record decides which of them came first: each record is durable before its step returns.
func TestBesideBranchesAStepReturnsOnceItIsDurable(t *testing.T) {
	job := steptest.New()
	recorded := func(ctx context.Context, name string) error {
		err := second(calls{}.do(ctx, name, 1))
		require.NotNil(t, job.Step(name), name)
		return err
	}
	out := job.Run(t.Context(), func(ctx context.Context) error {
		other := step.Go(ctx, func(ctx context.Context) (int, error) { return 1, recorded(ctx, "branch") })
		waits := awaits(ctx, "never")
		require.NoError(t, second(other.Wait(ctx)))
		require.NoError(t, recorded(ctx, "main"))
		return second(waits.Wait(ctx))
	})
	require.True(t, out.Suspended)
}

// A value that has no commit of its own goes with the step that comes after it, in the order of the calls.
func TestAValueIsQueuedWithTheNextStep(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		if err := second(step.Now(ctx, "now")); err != nil {
			return err
		}
		if err := second(calls{}.do(ctx, "a", 1)); err != nil {
			return err
		}
		require.Empty(t, job.Steps())
		at, err := step.Now(ctx, "later")
		require.False(t, at.Before(job.Step("a").Ended), "never before the end of a step that the job had come to")
		return err
	})
	require.NoError(t, out.Err)
	require.Equal(t, 2, job.Writes())
	require.Equal(t, "now value done\na do done\nlater value done\n", job.String())
}

// A run that ends with an error, or that is lost, hands over what it has queued nevertheless, or reports that it could not.
func TestTheEndReportsARecordThatIsLost(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		if err := second(calls{}.do(ctx, "a", 1)); err != nil {
			return err
		}
		job.Lose()
		return nil
	})
	require.ErrorIs(t, out.Err, step.ErrLost)
	require.False(t, job.Settled())
	require.Empty(t, job.Steps())

	job = steptest.New()
	out = job.Run(t.Context(), func(ctx context.Context) error {
		return errors.Join(errFlaky, second(step.Do(ctx, "a", func(context.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"n":1}`), nil
		})))
	})
	require.ErrorIs(t, out.Err, errFlaky)
	require.JSONEq(t, `{"n":1}`, string(job.Step("a").Result))
	require.Equal(t, 1, job.Writes())
}
