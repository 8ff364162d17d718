package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
)

// asking is a function with one step, the call of which takes of limits.
func asking(c *callLog, busy time.Duration, takes ...step.Take) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		return step.Do(ctx, "ask", func(ctx context.Context) (int, error) { return busyFor(c, busy)(ctx, n) }, step.Limits(takes...))
	}
}

// Jobs whose steps wait for a limit are suspended: with three workers, of which two are in steps with slots, others do other work.
func TestAStepThatWaitsForALimitHoldsNoWorker(t *testing.T) {
	var narrow, free callLog
	db := limit.Resource("db", 2)
	limited := builder.MustFunc("limited", asking(&narrow, time.Second, step.Takes(db, 0)), builder.Limits(builder.TakenBySteps(db)))
	other := builder.MustFunc("other", busyFor(&free, time.Second))
	inBubble(t, engine.Config{Workers: 3}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, limited, numbers(10)...)
		later := startAll(t, e, other, numbers(5)...)
		synctest.Wait()
		answer, err := e.Why(t.Context(), runs[9].ID)
		require.NoError(t, err)
		require.Contains(t, answer.Waits[0].Text, "step ask of run.1.1 waits for 1 of slots db, not enough are free, 7 others go first")
		endAll(t, e, later)
		require.Equal(t, 5*time.Second, time.Since(begin))
		endAll(t, e, runs)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Equal(t, 2, narrow.peak)
	}, limited, other)
}

// The order of those who wait is that in which they began to wait, and a rate bounds every window.
func TestARateBoundsTheCallsOfSteps(t *testing.T) {
	var c callLog
	var order []int
	calls := limit.Calls(10, time.Minute)
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		return step.Do(ctx, "ask", func(ctx context.Context) (int, error) {
			c.begin()
			defer c.end()
			order = append(order, n)
			return n, nil
		}, step.Limits(step.Takes(calls, 0)))
	}, builder.Limits(builder.TakenBySteps(calls)))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		endAll(t, e, startAll(t, e, f, numbers(35)...))
		require.Equal(t, 10, c.most(time.Minute))
		require.Less(t, time.Since(begin), 3*time.Minute+time.Second)
		require.Equal(t, numbers(35), order)
	}, f)
}

// Branches wait in line while others of the job continue, and what waits for a limit holds up no timer of the same job.
func TestBranchesWaitForLimits(t *testing.T) {
	var c callLog
	slots := limit.Resource("slots", 3)
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		ask := func(ctx context.Context, i, _ int) (int, error) {
			return step.Do(ctx, fmt.Sprint("ask ", i), func(ctx context.Context) (int, error) { return busyFor(&c, time.Minute)(ctx, n) },
				step.Limits(step.Takes(slots, 0)))
		}
		all := step.Go(ctx, func(ctx context.Context) (int, error) {
			_, err := step.Map(ctx, numbers(9), 9, ask)
			return 0, err
		})
		late := step.Go(ctx, func(ctx context.Context) (int, error) { return 1, step.Sleep(ctx, "late", 90*time.Second) })
		return step.Race(ctx, "first", all, late)
	}, builder.Limits(builder.TakenBySteps(slots)))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, f, 1)
		first, err := runs[0].Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 1, first)
		require.Less(t, time.Since(begin), 3*time.Minute)
		require.Equal(t, 3, c.peak)
		require.Len(t, c.at, 6, "what was not chosen is not called any more")
	}, f)
}

// A job whose step waits for a limit continues after a restart, in its order, whether the engine was closed or killed.
func TestAStepWaitsForItsLimitOverARestart(t *testing.T) {
	overRestarts(t, func(c *callLog, calls limit.Limit) *builder.FuncRef[int, int] {
		return builder.MustFunc("f", asking(c, time.Millisecond, step.Takes(calls, 0)), builder.Limits(builder.TakenBySteps(calls)))
	})
}

// A limit is free between the attempts of a step, each of which takes it.
func TestEachAttemptOfAStepTakesItsLimits(t *testing.T) {
	var c callLog
	one := limit.Resource("one", 1)
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		return step.Do(ctx, "ask", func(ctx context.Context) (int, error) {
			_, err := busyFor(&c, time.Second)(ctx, n)
			return n, errors.Join(err, errors.New("not yet"))
		}, step.Limits(step.Takes(one, 0)), step.Retry(retry.Constant(5, 10*time.Minute)))
	}, builder.Limits(builder.TakenBySteps(one)), builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(1, time.Second) }))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, f, 1, 2, 3)
		<-time.After(time.Minute)
		require.Len(t, c.at, 3, "each has failed once, and waits without the slot")
		for _, r := range runs {
			_, err := r.Result(t.Context(), e)
			require.ErrorContains(t, err, "not yet")
		}
		require.Equal(t, 1, c.peak)
		require.Len(t, c.at, 15)
		require.Less(t, time.Since(begin), 42*time.Minute)
	}, f)
}

// A step that takes of a limit that its function does not declare, or more than it ever admits, fails its job at once, with what to do.
func TestAStepThatNoLimitAdmits(t *testing.T) {
	db, other := limit.Resource("db", 2), limit.Resource("other", 2)
	var c callLog
	undeclared := builder.MustFunc("undeclared", asking(&c, 0, step.Takes(other, 0)), builder.Limits(builder.TakenBySteps(db)))
	much := builder.MustFunc("much", asking(&c, 0, step.Takes(db, 3)), builder.Limits(builder.TakenBySteps(db)))
	twice := builder.MustFunc("twice", asking(&c, 0, step.Takes(db, 1), step.Takes(db, 1)), builder.Limits(builder.TakenBySteps(db)))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		for f, want := range map[*builder.FuncRef[int, int]]string{
			undeclared: `limit "other" is not declared: give the function builder.Limits(builder.TakenBySteps(...)) with it`,
			much:       `the step takes 3 of 2 slots of db, which admits 2 at once: take less, or raise it (tasq limit set db)`,
			twice:      `Limits: "db" is taken twice; take the sum of both`,
		} {
			_, err := startAll(t, e, f, 1)[0].Result(t.Context(), e)
			require.ErrorContains(t, err, want)
		}
		require.Empty(t, c.at)
	}, undeclared, much, twice)
}

// What a step or a function says that it used replaces what it took: the rest is free at once, and more is a debt.
func TestCommitInStepsAndFunctions(t *testing.T) {
	for name, shared := range map[string]bool{"in memory": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			tokens := limit.Rate("tokens", 1000, time.Minute, limit.SlidingWindow)
			if shared {
				tokens = tokens.Shared()
			}
			var wrong atomic.Pointer[error]
			use := func(ctx context.Context, used int) (int, error) {
				<-time.After(5 * time.Second)
				if err := limit.Commit(ctx, "other", 1); !errors.Is(err, limit.ErrUnknownLimit) {
					wrong.Store(&err)
				}
				if err := limit.Commit(ctx, "tokens", -1); !errors.Is(err, limit.ErrAmount) {
					wrong.Store(&err)
				}
				return used, limit.Commit(ctx, "tokens", int64(used))
			}
			stepped := builder.MustFunc("stepped", func(ctx context.Context, used int) (int, error) {
				return step.Do(ctx, "ask", func(ctx context.Context) (int, error) { return use(ctx, used) }, step.Limits(step.Takes(tokens, 900)))
			}, builder.Limits(builder.TakenBySteps(tokens)))
			whole := builder.MustFunc("whole", use, builder.Limits(builder.Takes(tokens, 900)))
			for _, f := range []*builder.FuncRef[int, int]{stepped, whole} {
				inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
					begin := time.Now()
					endAll(t, e, startAll(t, e, f, 10, 20, 30))
					require.Less(t, time.Since(begin), 20*time.Second, "each gives back what it did not use")
					begin = time.Now()
					endAll(t, e, startAll(t, e, f, 1900))
					endAll(t, e, startAll(t, e, f, 10))
					require.Greater(t, time.Since(begin), time.Minute, "a debt is worked off before others are admitted")
					require.Nil(t, wrong.Load())
				}, f)
			}
		})
	}
}
