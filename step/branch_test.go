package step_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// sleeps returns a branch that sleeps and returns a value.
func sleeps(ctx context.Context, name string, d time.Duration, v int) *step.Branch[int] {
	return step.Go(ctx, func(ctx context.Context) (int, error) { return v, step.Sleep(ctx, name, d) })
}

func awaits(ctx context.Context, event string) *step.Branch[int] {
	return step.Go(ctx, func(ctx context.Context) (int, error) { return step.Await[int](ctx, event) })
}

func TestBranchesWaitAtTheSameTime(t *testing.T) {
	job := steptest.New()
	begin := job.Now()
	sum := 0
	fn := func(ctx context.Context) error {
		a, b, c := sleeps(ctx, "a", time.Hour, 1), sleeps(ctx, "b", 3*time.Hour, 2), awaits(ctx, "c")
		if err := step.All(ctx, a, b, c); err != nil {
			return err
		}
		sum = 0
		for _, x := range []*step.Branch[int]{a, b, c} {
			v, err := x.Wait(ctx)
			if err != nil {
				return err
			}
			sum += v
		}
		return nil
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.NoError(t, job.Send("c", 4))
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, 7, sum)
	require.Equal(t, begin.Add(3*time.Hour), job.Now())
}

// A branch that works keeps the job in memory, and what the others wait for wakes them there: there are no waves.
func TestABranchGoesOnWhileAnotherWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := steptest.New()
		out := job.Run(t.Context(), func(ctx context.Context) error {
			done := make(chan struct{})
			slow := step.Go(ctx, func(ctx context.Context) (int, error) {
				return step.Do(ctx, "slow", func(context.Context) (int, error) { <-done; return 1, nil })
			})
			quick := step.Go(ctx, func(ctx context.Context) (int, error) {
				if err := step.Sleep(ctx, "nap", time.Hour); err != nil {
					return 0, err
				}
				defer close(done)
				return step.Await[int](ctx, "e")
			})
			go func() {
				synctest.Wait()
				job.Advance(time.Hour)
				_ = job.Send("e", 2)
			}()
			return step.All(ctx, slow, quick)
		})
		require.Equal(t, step.Outcome{}, out, "never suspended")
		require.Equal(t, "nap sleep done\ne event done\nslow do done\n", job.String())
	})
}

func TestAllReturnsTheFirstErrorAtOnce(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		long := sleeps(ctx, "long", 1000*time.Hour, 1)
		bad := step.Go(ctx, func(ctx context.Context) (int, error) { return 0, count.fails(ctx, "bad", errFlaky) })
		err := step.All(ctx, long, bad)
		if err == nil || errors.Is(err, step.ErrSuspended) {
			return err
		}
		require.EqualError(t, err, `step "bad": error: connection refused`)
		_, err = long.Wait(ctx)
		require.ErrorIs(t, err, step.ErrCanceled)
		require.EqualError(t, err, `branch 2 was chosen by "(all 1)", and branch 1 was not: canceled`)
		return step.Sleep(ctx, "then", time.Minute)
	}
	begin := job.Now()
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, time.Minute, job.Now().Sub(begin))
	require.Equal(t, calls{"bad": 1}, count)
	if s := job.Step("long"); s != nil { // it may not have come so far
		require.Equal(t, workitem.StepCanceled, s.State)
	}
	require.Equal(t, workitem.StepFailed, job.Step("(all 1)").State)
}

func TestAllOfNothingOrOfSuccessesIsNotRecorded(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		require.NoError(t, step.All(ctx))
		return step.All(ctx, sleeps(ctx, "a", 0, 1), sleeps(ctx, "b", 0, 1))
	})
	require.NoError(t, out.Err)
	require.Len(t, job.Steps(), 2)
}

// A run ends when its branches have ended, also those that its function does not wait for, and their errors count.
func TestAFunctionWaitsForItsBranches(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		sleeps(ctx, "a", time.Hour, 1)
		return nil
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(time.Hour)
	require.NoError(t, job.Run(t.Context(), fn).Err)

	job = steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		sleeps(ctx, "a", time.Hour, 1)
		step.Go(ctx, func(ctx context.Context) (int, error) { return 0, errFlaky })
		return nil
	})
	require.ErrorIs(t, out.Err, errFlaky, "and its error is not lost")
}

func TestAFunctionThatFailsCancelsItsBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := steptest.New()
		out := job.Run(t.Context(), func(ctx context.Context) error {
			awaits(ctx, "never")
			step.Go(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			synctest.Wait()
			return errFlaky
		})
		require.ErrorIs(t, out.Err, errFlaky)
		require.Equal(t, workitem.StepCanceled, job.Step("never").State)
	})
}

func TestAPanicInABranchIsAnErrorOfIt(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		b := step.Go(ctx, func(ctx context.Context) (int, error) { panic("a bug") })
		_, err := b.Wait(ctx)
		return err
	})
	f := workitem.FailureOf(out.Err)
	require.Equal(t, workitem.CodePanic, f.Code)
	require.Equal(t, "a bug", f.Message)
	require.Contains(t, string(f.Details), "branch_test.go")
}

func TestBranchesOfBranches(t *testing.T) {
	job := steptest.New()
	sum := 0
	fn := func(ctx context.Context) error {
		outer := step.Go(ctx, func(ctx context.Context) (int, error) {
			a, b := sleeps(ctx, "a", time.Hour, 1), sleeps(ctx, "b", 2*time.Hour, 2)
			if err := step.All(ctx, a, b); err != nil {
				return 0, err
			}
			x, _ := a.Wait(ctx)
			y, err := b.Wait(ctx)
			return x + y, err
		})
		c := sleeps(ctx, "c", time.Hour, 4)
		x, err := outer.Wait(ctx)
		if err != nil {
			return err
		}
		y, err := c.Wait(ctx)
		sum = x + y
		return err
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, 7, sum)
}

func TestMapKeepsTheOrderAndTheBound(t *testing.T) {
	job := steptest.New()
	inputs := make([]int, 25)
	for i := range inputs {
		inputs[i] = i
	}
	var results []int
	fn := func(ctx context.Context) (err error) {
		results, err = step.Map(ctx, inputs, 4, func(ctx context.Context, i, in int) (int, error) {
			if err := step.Sleep(ctx, fmt.Sprintf("sleep %d", i), time.Duration(i%7)*time.Minute); err != nil {
				return 0, err
			}
			return step.Do(ctx, fmt.Sprintf("do %d", i), func(context.Context) (int, error) { return in * in, nil })
		})
		return err
	}
	peak := 0
	for out := job.Run(t.Context(), fn); !job.Settled(); out = job.Run(t.Context(), fn) {
		require.True(t, out.Suspended)
		asleep := 0
		for _, s := range job.Steps() {
			if s.State == workitem.StepWaiting {
				asleep++
			}
		}
		peak = max(peak, asleep)
		job.Advance(time.Minute)
	}
	require.NoError(t, job.Err())
	require.Equal(t, 4, peak, "a branch that waits counts, too")
	for i, r := range results {
		require.Equal(t, i*i, r)
	}
	require.Len(t, results, 25)
}

func TestMapEndsWithTheFirstError(t *testing.T) {
	job, count := steptest.New(), calls{}
	var mu sync.Mutex
	fn := func(ctx context.Context) error {
		_, err := step.Map(ctx, []int{5, 1, 3, 2, 4}, 3, func(ctx context.Context, i, in int) (int, error) {
			if err := step.Sleep(ctx, fmt.Sprintf("sleep %d", i), time.Duration(in)*time.Hour); err != nil {
				return 0, err
			}
			mu.Lock()
			defer mu.Unlock()
			if i == 2 {
				return 0, count.fails(ctx, "bad", errFlaky)
			}
			return count.do(ctx, fmt.Sprintf("do %d", i), in)
		})
		if errors.Is(err, step.ErrSuspended) {
			return err
		}
		require.EqualError(t, err, `step "bad": error: connection refused`)
		return step.Sleep(ctx, "then", 100*time.Hour)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, calls{"bad": 1, "do 1": 1, "do 3": 1}, count, "2h after 1h is 3h too, and was recorded first")
	require.Equal(t, workitem.StepCanceled, job.Step("sleep 0").State)
	require.Nil(t, job.Step("do 4"))
}

func TestMapOfNothing(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		got, err := step.Map(ctx, nil, 3, func(context.Context, int, int) (int, error) { return 0, errFlaky })
		require.Empty(t, got)
		require.NoError(t, err)
		_, err = step.Map(ctx, []int{1}, -1, func(context.Context, int, int) (int, error) { return 0, errFlaky })
		require.ErrorIs(t, err, step.ErrUsage)
		return nil
	})
	require.ErrorContains(t, out.Err, "use 0 for no limit", "though the function hides it")
}

func TestAStepWithinAStepIsRefused(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "outer", func(ctx context.Context) (int, error) {
			return calls{}.do(ctx, "inner", 1)
		})
		return err
	})
	require.ErrorIs(t, out.Err, step.ErrUsage)
	require.True(t, retry.IsPermanent(out.Err))
	require.EqualError(t, out.Err, `step "inner" is called in the function of step "outer", which is one step; `+
		`call it beside that, with the context of the job's function`)
	require.Empty(t, job.Steps())

	out = steptest.New().Run(t.Context(), func(outside context.Context) error {
		_, err := step.Do(outside, "outer", func(ctx context.Context) (int, error) {
			return calls{}.do(outside, "inner", 1) // the wrong context, caught by the closure
		})
		return err
	})
	require.ErrorContains(t, out.Err, `step "inner" is called while step "outer" of the same branch is under way`)

	out = steptest.New().Run(t.Context(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "outer", func(ctx context.Context) (int, error) {
			return step.Go(ctx, func(ctx context.Context) (int, error) { return 1, nil }).Wait(ctx)
		})
		return err
	})
	require.ErrorContains(t, out.Err, `Branch.Wait is called in the function of step "outer"`)
}

func TestABranchUsesItsOwnContext(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(outside context.Context) error {
		b := step.Go(outside, func(context.Context) (int, error) { return calls{}.do(outside, "x", 1) })
		_, err := b.Wait(outside)
		return err
	})
	if out.Err != nil { // the branch may have been quicker than Wait
		require.ErrorContains(t, out.Err, `of the same branch is under way; start what runs beside it with step.Go`)
	}
}

func TestBranchesThatWaitForEachOtherAreFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
			var a, b *step.Branch[int]
			start := make(chan struct{})
			a = step.Go(ctx, func(ctx context.Context) (int, error) { <-start; return b.Wait(ctx) })
			b = step.Go(ctx, func(ctx context.Context) (int, error) { <-start; return a.Wait(ctx) })
			close(start)
			return step.All(ctx, a, b)
		})
		require.ErrorIs(t, out.Err, step.ErrUsage)
		require.ErrorContains(t, out.Err, "every branch waits for another one")
	})
}

func TestStrangeBranchesAreRefused(t *testing.T) {
	var other *step.Branch[int]
	require.NoError(t, steptest.New().Run(t.Context(), func(ctx context.Context) error {
		other = sleeps(ctx, "a", 0, 1)
		return nil
	}).Err)
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		require.ErrorIs(t, step.All(ctx, other), step.ErrUsage)
		require.ErrorIs(t, step.All(ctx, nil), step.ErrUsage)
		var none *step.Branch[int]
		require.ErrorIs(t, step.All(ctx, none), step.ErrUsage)
		_, err := none.Wait(ctx)
		require.ErrorIs(t, err, step.ErrUsage)
		_, err = step.Race(ctx, "of none")
		require.ErrorIs(t, err, step.ErrUsage)
		return nil
	})
	require.ErrorContains(t, out.Err, "branch 0 belongs to another job", "the first one, though the function hides all")
}
