package step_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// ledger is a table of the user's own.
func ledger(t *testing.T) (*steptest.Job, func() int) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec("CREATE TABLE ledger (amount INTEGER)")
	require.NoError(t, err)
	job := steptest.New()
	job.DB = db
	return job, func() (n int) {
		require.NoError(t, db.QueryRow("SELECT count(*) FROM ledger").Scan(&n))
		return n
	}
}

func enter(ctx context.Context, db domain.DB) (int, error) {
	_, err := db.ExecContext(ctx, "INSERT INTO ledger VALUES (7)")
	return 7, err
}

func TestATransactionIsCommittedWithItsRecord(t *testing.T) {
	for _, after := range []bool{false, true} {
		job, entries := ledger(t)
		n := 0
		fn := func(ctx context.Context) error {
			v, err := step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
				n++
				return enter(ctx, db)
			})
			if err == nil {
				require.Equal(t, 7, v)
			}
			return err
		}
		job.CrashAt(1, after)
		require.ErrorIs(t, job.Run(t.Context(), fn).Err, step.ErrLost)
		require.Equal(t, map[bool]int{false: 0, true: 1}[after], entries(), "the effect is there if the record is")
		require.NoError(t, job.Run(t.Context(), fn).Err)
		require.Equal(t, 1, entries())
		require.Equal(t, workitem.StepTx, job.Step("enter").Kind)
	}
}

func TestATransactionThatFailsIsUndone(t *testing.T) {
	job, entries := ledger(t)
	fn := func(ctx context.Context) error {
		_, err := step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
			if _, err := enter(ctx, db); err != nil || job.Info.Attempt > 1 {
				return 0, err
			}
			return 0, &workitem.Failure{Code: "no-funds", Message: "the account is empty"}
		})
		if err != nil {
			require.EqualError(t, err, `step "enter": no-funds: the account is empty`)
		}
		if err := nap(ctx); err != nil {
			return err
		}
		return err
	}
	require.Error(t, job.Drive(t.Context(), fn).Err)
	require.Zero(t, entries())
	job.Retry()
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, 1, entries())
}

func TestAResultThatIsTooLargeUndoesItsTransaction(t *testing.T) {
	job, entries := ledger(t)
	job.Info.MaxResult = 3
	out := job.Run(t.Context(), func(ctx context.Context) error {
		_, err := step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (string, error) {
			_, err := enter(ctx, db)
			return "long", err
		})
		return err
	})
	require.Equal(t, step.CodeTooLarge, workitem.FailureOf(out.Err).Code)
	require.Zero(t, entries())
}

func TestAPanicInATransactionUndoesIt(t *testing.T) {
	job, entries := ledger(t)
	out := job.Run(t.Context(), func(ctx context.Context) error {
		return second(step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
			_, _ = enter(ctx, db)
			panic("a bug")
		}))
	})
	require.Equal(t, workitem.CodePanic, workitem.FailureOf(out.Err).Code)
	require.Zero(t, entries())
	require.Empty(t, job.Steps())
}

// What a transaction was told by a value without a commit of its own is remembered before it is used.
func TestValuesAreRememberedBeforeATransaction(t *testing.T) {
	job, entries := ledger(t)
	seen := map[string]bool{}
	fn := func(ctx context.Context) error {
		at, err := step.Now(ctx, "when")
		if err != nil {
			return err
		}
		seen[at.String()] = true
		return second(step.Tx(ctx, "enter", enter))
	}
	job.CrashAt(2, true) // after the transaction
	require.Error(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, 1, entries())
	job.Advance(1e9)
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Len(t, seen, 1)
}

func TestAStepWithinATransactionIsRefused(t *testing.T) {
	job, entries := ledger(t)
	out := job.Run(t.Context(), func(ctx context.Context) error {
		return second(step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
			if _, err := enter(ctx, db); err != nil {
				return 0, err
			}
			return calls{}.do(ctx, "inner", 1)
		}))
	})
	require.ErrorContains(t, out.Err, `step "inner" is called in the function of step "enter"`)
	require.Zero(t, entries())
}

func TestACanceledTransactionIsNotAFailure(t *testing.T) {
	job, entries := ledger(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := job.Run(ctx, func(ctx context.Context) error {
		return second(step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
			_, _ = enter(ctx, db)
			cancel()
			return 0, ctx.Err()
		}))
	})
	require.ErrorIs(t, out.Err, context.Canceled)
	require.Zero(t, entries())
	require.Empty(t, job.Steps())
}
