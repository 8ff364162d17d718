package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

func TestAChildCase(t *testing.T) {
	job := steptest.New()
	var got int
	var failed error
	fn := func(ctx context.Context) (err error) {
		got, err = step.Call[int](ctx, "ship", "shipping", map[string]int{"order": 7})
		if errors.Is(err, step.ErrSuspended) {
			return err
		}
		failed = err
		return step.Sleep(ctx, "then", time.Hour)
	}
	begin := func(t *testing.T) {
		job = steptest.New()
		require.True(t, job.Run(t.Context(), fn).Suspended)
		s := job.Step("ship")
		require.Equal(t, "shipping", s.Target)
		require.JSONEq(t, `{"order":7}`, string(s.Input))
		require.NotZero(t, s.Child)
	}
	t.Run("value", func(t *testing.T) {
		begin(t)
		require.NoError(t, job.Complete("ship", 5))
		require.NoError(t, job.Drive(t.Context(), fn).Err)
		require.NoError(t, failed)
		require.Equal(t, 5, got)
	})
	t.Run("zero", func(t *testing.T) {
		begin(t)
		require.NoError(t, job.Complete("ship", 0))
		require.NoError(t, job.Drive(t.Context(), fn).Err)
		require.NoError(t, failed)
		require.Zero(t, got)
	})
	t.Run("failure", func(t *testing.T) {
		begin(t)
		f := &workitem.Failure{Code: "no-stock", Message: "none left"}
		require.NoError(t, job.Fail("ship", f))
		require.NoError(t, job.Drive(t.Context(), fn).Err, "caught")
		child, ok := errors.AsType[*step.ChildError](failed)
		require.True(t, ok)
		require.Equal(t, f, child.Failure)
		require.Equal(t, job.Step("ship").Child, child.Case)
		require.EqualError(t, failed, `step "ship": case `+child.Case.String()+` of shipping failed: no-stock: none left`)
		require.Equal(t, "no-stock", workitem.FailureOf(failed).Code)
		require.False(t, workitem.FailureOf(failed).Retryable)
		require.NotErrorIs(t, failed, step.ErrCanceled)
	})
	t.Run("cancel", func(t *testing.T) {
		begin(t)
		require.NoError(t, job.Cancel("ship"))
		require.NoError(t, job.Drive(t.Context(), fn).Err)
		child, ok := errors.AsType[*step.ChildError](failed)
		require.True(t, ok)
		require.ErrorIs(t, failed, step.ErrCanceled)
		require.Equal(t, workitem.StepCanceled, child.State)
		require.EqualError(t, failed, `step "ship": case `+child.Case.String()+` of shipping canceled`)
	})
	t.Run("no such workflow", func(t *testing.T) {
		job = steptest.New()
		job.Refuse("shipping", workitem.Failf("unknown", "there is no workflow shipping"))
		require.NoError(t, job.Drive(t.Context(), fn).Err)
		require.EqualError(t, failed, `step "ship": no case of shipping: unknown: there is no workflow shipping`)
	})
	t.Run("its own timeout", func(t *testing.T) {
		begin(t)
		require.NoError(t, job.Fail("ship", &workitem.Failure{Code: workitem.CodeTimeout}))
		require.NoError(t, job.Drive(t.Context(), fn).Err)
		require.NotErrorIs(t, failed, step.ErrTimeout, "the child's, not that of the call")
	})
}

func TestAChildThatTakesTooLongIsCanceled(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		_, err := step.Call[int](ctx, "slow", "shipping", nil, step.Timeout(time.Hour))
		if !errors.Is(err, step.ErrTimeout) {
			return err
		}
		_, err = step.Call[int](ctx, "second", "shipping", nil)
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(time.Hour)
	require.True(t, job.Canceled(job.Step("slow").Child))
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.NoError(t, job.Complete("second", 1))
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

func TestAChildCanBeStartedLater(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		_, err := step.Call[int](ctx, "ship", "shipping", nil, step.After(30*24*time.Hour), step.Timeout(time.Hour))
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Nil(t, job.Step("ship"), "not started")
	job.Advance(30*24*time.Hour - 1)
	require.False(t, job.Ready())
	job.Advance(1)
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, job.Now().Add(time.Hour), job.Step("ship").Due)
	require.NoError(t, job.Complete("ship", 1))
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, "ship (delay) sleep done\nship case done\n", job.String())
}

func TestTheChildOfAJobThatEndsIsCanceled(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		step.Go(ctx, func(ctx context.Context) (int, error) { return step.Call[int](ctx, "ship", "shipping", nil) })
		if err := step.Sleep(ctx, "a while", time.Hour); err != nil {
			return err
		}
		return errFlaky
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(time.Hour)
	require.ErrorIs(t, job.Run(t.Context(), fn).Err, errFlaky)
	require.True(t, job.Canceled(job.Step("ship").Child))
}

func TestATokenIsTheSameEveryTime(t *testing.T) {
	job := steptest.New()
	seen := map[string]bool{}
	fn := func(ctx context.Context) error {
		token, err := step.Token(ctx, "link", "approved")
		if err != nil {
			return err
		}
		require.NotEmpty(t, token)
		seen[token] = true
		_, err = step.Await[bool](ctx, "approved")
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, "approved", job.Step("link").Target)
	require.NoError(t, job.Send("approved", true))
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Len(t, seen, 1)
}
