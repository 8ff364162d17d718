package step_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// A mistake in the code is not lost though the function ignores the error: its job fails, and no attempt can succeed.
func TestAMistakeCannotBeIgnored(t *testing.T) {
	one := func(context.Context) (int, error) { return 1, nil }
	for text, f := range map[string]func(context.Context){
		"-1ns is negative":           func(ctx context.Context) { _ = step.Sleep(ctx, "a", -1) },
		"the name is empty":          func(ctx context.Context) { _, _ = step.Do(ctx, "", one) },
		"Named does nothing here":    func(ctx context.Context) { _, _ = step.Do(ctx, "a", one, step.Named("b")) },
		"a Timeout of 0":             func(ctx context.Context) { _, _ = step.Do(ctx, "a", one, step.Timeout(0)) },
		"the workflow has no name":   func(ctx context.Context) { _, _ = step.Call[int](ctx, "a", "", 1) },
		"the version -1 is negative": func(ctx context.Context) { _, _ = step.Version(ctx, "a", -1) },
		"there is no branch":         func(ctx context.Context) { _, _ = step.Race(ctx, "a") },
		"(all 1)\": branch 0 is nil": func(ctx context.Context) { _ = step.All(ctx, nil) },
		"Wait: branch 0 is nil":      func(ctx context.Context) { _, _ = (&step.Branch[int]{}).Wait(ctx) },
		"branch 1 is nil": func(ctx context.Context) {
			_, _ = step.Race(ctx, "first", step.Go(ctx, one), (*step.Branch[int])(nil))
		},
		"-1 at once is negative": func(ctx context.Context) {
			_, _ = step.Map(ctx, []int{1}, -1, func(context.Context, int, int) (int, error) { return 1, nil })
		},
		`step "b" is called in the function of step "a"`: func(ctx context.Context) {
			_, _ = step.Do(ctx, "a", func(ctx context.Context) (int, error) {
				_, _ = step.Do(ctx, "b", one)
				return 1, nil
			})
		},
		`step.Go is called in the function of step "a"`: func(ctx context.Context) {
			_, _ = step.Do(ctx, "a", func(ctx context.Context) (int, error) { step.Go(ctx, one); return 1, nil })
		},
	} {
		out := steptest.New().Run(t.Context(), func(ctx context.Context) error { f(ctx); return nil })
		require.ErrorIs(t, out.Err, step.ErrUsage, text)
		require.ErrorContains(t, out.Err, text)
		require.True(t, retry.IsPermanent(out.Err), text)

		out = steptest.New().Run(t.Context(), func(ctx context.Context) error { f(ctx); return errFlaky })
		require.ErrorIs(t, out.Err, step.ErrUsage, text)
		require.ErrorContains(t, out.Err, text)
		require.ErrorContains(t, out.Err, "(and the function returned: connection refused)")
		require.Equal(t, step.CodeUsage, workitem.FailureOf(out.Err).Code)
	}
}

func TestAFunctionThatIsNilIsRefused(t *testing.T) {
	for want, f := range map[string]func(context.Context) error{
		`step "a", at misuse_test.go:\d+: `: func(ctx context.Context) error { return second(step.Do[int](ctx, "a", nil)) },
		`step "b", at misuse_test.go:\d+: `: func(ctx context.Context) error { return second(step.Tx[int](ctx, "b", nil)) },
		`step.Go, at misuse_test.go:\d+: `: func(ctx context.Context) error {
			return second(step.Go[int](ctx, nil).Wait(ctx))
		},
		`step.Map, at misuse_test.go:\d+: `: func(ctx context.Context) error {
			return second(step.Map[int, int](ctx, []int{1}, 1, nil))
		},
	} {
		job := steptest.New()
		out := job.Run(t.Context(), f)
		require.ErrorIs(t, out.Err, step.ErrUsage)
		require.Regexp(t, want+"there is no function to call: it is nil$", out.Err.Error())
		require.Empty(t, job.Steps())
		require.ErrorIs(t, f(t.Context()), step.ErrNoJob)
	}
}

// A remembered value that the code reads as another type is a change of the code like others.
func TestAResultOfAnotherTypeCannotBeIgnored(t *testing.T) {
	job := steptest.New()
	text := true
	out := job.Run(t.Context(), func(ctx context.Context) error {
		_, err := calls{}.do(ctx, "a", 1)
		return errors.Join(err, step.Sleep(ctx, "night", 1))
	})
	require.True(t, out.Suspended)
	job.Advance(1)
	out = job.Run(t.Context(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "a", func(context.Context) (string, error) { text = false; return "", nil })
		require.ErrorIs(t, err, step.ErrChanged)
		return step.Sleep(ctx, "night", 1)
	})
	require.ErrorIs(t, out.Err, step.ErrChanged)
	require.True(t, text, "and is not done again")
}

func TestABranchThatEndsItsGoroutineHasPanicked(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		return second(step.Go(ctx, func(context.Context) (int, error) { runtime.Goexit(); return 1, nil }).Wait(ctx))
	})
	f := workitem.FailureOf(out.Err)
	require.Equal(t, workitem.CodePanic, f.Code)
	require.Contains(t, f.Message, "let it return an error")
}

// What was sent as something else says so, and names its step once.
func TestAnEventOfAnotherTypeSaysSo(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error { return second(step.Await[int](ctx, "paid")) }
	require.NoError(t, job.Send("paid", "ten"))
	out := job.Run(t.Context(), fn)
	require.EqualError(t, out.Err, `step "paid": invalid: the value of event "paid" can't be read as the type that is asked for: `+
		`read stored int: json: cannot unmarshal string into Go value of type int`)
}

// Only a step may say that the job is suspended.
func TestAFunctionCannotSuspendItself(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(context.Context) error {
		return fmt.Errorf("later: %w", step.ErrSuspended)
	})
	require.False(t, out.Suspended)
	require.ErrorIs(t, out.Err, step.ErrUsage)
	require.ErrorContains(t, out.Err, "none of its steps waits (later: the job is suspended)")
}

// A mistake is final: the job does not wait first, and is not told after a month what was wrong at once.
func TestAMistakeWaitsForNothing(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		_ = step.Sleep(ctx, "back", -1)
		return step.Sleep(ctx, "a month", 30*24*time.Hour)
	})
	require.False(t, out.Suspended)
	require.ErrorIs(t, out.Err, step.ErrUsage)
	require.ErrorContains(t, out.Err, `step "back"`)
	require.Empty(t, job.Steps())
}

// A result that could not be remembered, whatever it is, is told of before anything is done: not after the customer was
// charged, and then once for each attempt.
func TestAResultThatCannotBeStoredIsAnErrorBeforeTheCall(t *testing.T) {
	done := 0
	type open struct{ Body fmt.Stringer }
	for text, f := range map[string]func(context.Context) error{
		"chan int: a chan has no JSON form": func(ctx context.Context) error {
			return second(step.Do(ctx, "a", func(context.Context) (chan int, error) { done++; return nil, nil },
				step.Retry(retry.Constant(3, time.Second))))
		},
		"fmt.Stringer: an interface with methods has no JSON form": func(ctx context.Context) error {
			return second(step.Tx(ctx, "a", func(context.Context, domain.DB) (fmt.Stringer, error) { done++; return nil, nil }))
		},
		"field Body of step_test.open: an interface with methods has no JSON form": func(ctx context.Context) error {
			return second(step.Await[open](ctx, "a"))
		},
		"map[float64]int: a map whose keys are of type float64 has no JSON form": func(ctx context.Context) error {
			return second(step.Call[map[float64]int](ctx, "a", "child", 1))
		},
	} {
		job := steptest.New()
		_ = job.Send("a", "kept for another wait")
		out := job.Run(t.Context(), f)
		require.ErrorIs(t, out.Err, step.ErrUsage)
		require.ErrorContains(t, out.Err, text)
		require.Zero(t, done)
		require.Nil(t, job.Step("a"))
	}
}
