package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func one(context.Context) (int, error) { return 1, nil }

// The next attempt of a job restarts: what an earlier one had recorded is not left over in it. So a run whose code has
// changed must fail at once, or its own retry would hide that.
func TestARetryHidesNoMistake(t *testing.T) {
	for name, c := range map[string]struct {
		changed func(context.Context) error
		want    string
		code    string
	}{
		"steps are left over": {func(context.Context) error { return nil },
			`the function returned without coming to what was recorded: "a" (the call of a function, done)`,
			step.CodeHistory},
		"a change is ignored": {func(ctx context.Context) error {
			_, _ = step.Await[int](ctx, "a")
			return nil
		}, `step "a": it was recorded as the call of a function, and is now called as a wait for the event "a"`, step.CodeChanged},
		"a name is used twice, and that is ignored": {func(ctx context.Context) error {
			_, _ = step.Do(ctx, "a", one)
			_, _ = step.Do(ctx, "a", one)
			return step.Sleep(ctx, "night", time.Hour)
		}, `step "a": its name is used twice in one run`, step.CodeDuplicate},
		"another error hides it": {func(ctx context.Context) error {
			_, _ = step.Await[int](ctx, "a")
			return workitem.Failf("no-funds", "the account is empty")
		}, "(and the function returned: no-funds: the account is empty)", step.CodeChanged},
	} {
		t.Run(name, func(t *testing.T) {
			changed, runs, did := false, 0, 0
			a := builder.MustFunc("changing", func(ctx context.Context, _ int) (int, error) {
				runs++
				if changed {
					return 1, c.changed(ctx)
				}
				_, err := step.Do(ctx, "a", func(context.Context) (int, error) { did++; return 1, nil })
				return 1, errors.Join(err, step.Sleep(ctx, "night", time.Hour))
			})
			e := enginetest.New(t, a)
			run, err := a.Run(t.Context(), e, 1)
			require.NoError(t, err)
			e.Drain()
			changed = true
			e.Advance(2 * time.Hour)
			s, err := run.Status(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, workflow.RunFailed, s.State)
			require.Contains(t, s.Failure.Message, c.want)
			require.Equal(t, c.code, s.Failure.Code)
			require.False(t, s.Failure.Retryable)
			require.Equal(t, 2, runs, "one until it slept, one with the new code")

			changed = false // fixed
			again, err := run.Restart(t.Context(), e)
			require.NoError(t, err)
			e.Advance(2 * time.Hour)
			got, err := again.Result(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, 1, got)
			require.Equal(t, 1, did, "what was done is taken over")
		})
	}
}

// A panic in a transaction undoes it, and is one like any other: it fails the attempt, with its code, and no step.
func TestAPanicInATransactionFailsTheAttempt(t *testing.T) {
	calls := 0
	a := builder.MustFunc("save", func(ctx context.Context, _ int) (int, error) {
		n, err := step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
			if _, err := db.ExecContext(ctx, "INSERT INTO entries VALUES (1)"); err != nil {
				return 0, err
			}
			if calls++; calls == 1 {
				panic("a bug")
			}
			return calls, nil
		})
		if err != nil {
			_, again := step.Do(ctx, "beside", one)
			require.Error(t, again, "the job has failed already")
			return 0, nil // which hides nothing
		}
		return n, nil
	})
	e := enginetest.New(t, a)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE entries (n INTEGER)")
		return err
	}))
	run, err := a.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunWaiting, s.State)
	require.Equal(t, workitem.CodePanic, s.Failure.Code)
	require.Equal(t, "a bug", s.Failure.Message)
	require.Contains(t, string(s.Failure.Details), "misuse_steps_test.go", "the stack")
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		steps, err := r.Steps(t.Context(), store.StepFilter{})
		require.Empty(t, steps)
		return err
	}))
	e.Advance(time.Second)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 2, got)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		var n int
		require.NoError(t, r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM entries").Scan(&n))
		require.Equal(t, 1, n, "what the panic had written was undone")
		return nil
	}))
}
