package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// undoing is SQL that has SQLite roll the whole transaction back: the row is there.
const undoing = "INSERT OR ROLLBACK INTO u VALUES (1)"

// withTable makes the table that undoing is about.
func withTable(t *testing.T, e *enginetest.Engine) {
	t.Helper()
	if os.Getenv(enginetest.EnvStore) != "" {
		t.Skip("it is about SQL that only SQLite has")
	}
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE u (x PRIMARY KEY); CREATE TABLE log (x); INSERT INTO u VALUES (1)")
		return err
	}))
}

// runSQL is an Update that runs SQL.
func runSQL(e *enginetest.Engine, query string) func(context.Context) error {
	return func(ctx context.Context) error {
		return e.Update(ctx, func(tx *engine.Tx) error {
			_, err := tx.DB().ExecContext(ctx, query)
			return err
		})
	}
}

func count(t *testing.T, e *enginetest.Engine, query string) (n int) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		return r.DB().QueryRowContext(t.Context(), query).Scan(&n)
	}))
	return n
}

// A request that shares a transaction with a command that has SQLite undo it still runs, once; only that command fails.
func TestARequestThatUndoesTheTransactionFailsAlone(t *testing.T) {
	ctx := t.Context()
	b := builder.New[int]("logged")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{
		OnEnabled: func(ctx context.Context, a *activities.Activation) error {
			_, err := a.DB().ExecContext(ctx, "INSERT INTO log VALUES (1)")
			return err
		},
	}), b.End())
	w := b.MustBuild()
	bad := builder.New[int]("bad")
	bad.Path(bad.Start(), builder.Task(bad, "t", builder.Work[any, any]{
		OnEnabled: func(ctx context.Context, a *activities.Activation) error {
			_, err := a.DB().ExecContext(ctx, undoing)
			return errors.Join(errors.New("own words"), err)
		},
	}), bad.End())
	failed := bad.MustBuild()
	e := enginetest.New(t, w, failed)
	withTable(t, e)
	start := func(key string, w *builder.Workflow[int]) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.Start(ctx, e, 1, workflow.Key(key))
			return err
		}
	}
	calls := atomic.Int32{}
	errs := engine.Together(ctx, e.Engine,
		start("one", w),
		start("failed", failed),
		start("two", w),
		func(ctx context.Context) error {
			return e.Update(ctx, func(tx *engine.Tx) error {
				calls.Add(1)
				_, err := tx.DB().ExecContext(ctx, "INSERT INTO log VALUES (2)")
				return err
			})
		},
		start("three", w),
		runSQL(e, undoing),
		start("four", w),
		start("failed again", failed),
	)
	for i, err := range errs {
		switch i {
		case 1, 5, 7:
			require.ErrorIs(t, err, store.ErrUndone, i)
			require.NotErrorIs(t, err, store.ErrUnavailable, "it is the command's own fault")
		default:
			require.NoError(t, err, i)
		}
	}
	require.ErrorContains(t, errs[1], "own words")
	require.EqualValues(t, 1, calls.Load(), "the function of an Update is called once")
	require.Equal(t, 4, count(t, e, "SELECT count(*) FROM log WHERE x = 1"), "each once")
	require.Equal(t, 1, count(t, e, "SELECT count(*) FROM log WHERE x = 2"))
	cases := 0
	for c, err := range store.AllCases(ctx, e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, "logged", c.Workflow)
		cases++
	}
	require.Equal(t, 4, cases)
}

// A job that succeeded is not recorded as failed because of another one's SQL, and is not called again.
func TestResultsOutliveTheSQLOfOthers(t *testing.T) {
	ctx := t.Context()
	calls := atomic.Int32{}
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) {
		calls.Add(1)
		return n, nil
	})
	e := enginetest.New(t, a)
	withTable(t, e)
	const runs = 40
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = runSQL(e, undoing)(t.Context())
			}
		}
	}()
	for n := range runs {
		run, err := a.Run(ctx, e, n)
		require.NoError(t, err)
		got, err := run.Result(ctx, e)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	close(stop)
	<-stopped
	require.EqualValues(t, runs, calls.Load())
}

// A completion handler whose SQL undoes the transaction of the command that ended the case is called by a job.
func TestHandlerThatAbortsTheTransactionIsCalledByAJob(t *testing.T) {
	ctx := t.Context()
	calls := 0
	notify := builder.Handler("notify", func(ctx context.Context, c *builder.Completion[int], _ string) error {
		query := undoing
		if calls++; calls > 1 {
			query = "INSERT INTO log VALUES (3)"
		}
		_, err := c.DB().ExecContext(ctx, query)
		return err
	})
	a := builder.MustFunc("a", echo, builder.Handles(notify))
	e := enginetest.New(t, a)
	withTable(t, e)
	run, err := a.Run(ctx, e, 1, builder.OnComplete(notify, "x"))
	require.NoError(t, err)
	got, err := run.Result(ctx, e)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	e.Drain()
	require.Equal(t, 2, calls)
	require.Equal(t, 1, count(t, e, "SELECT count(*) FROM log WHERE x = 3"))
}

// A command of the worker itself undoes the transaction that its claim is part of, which waits for company: the claim is done again,
// and the worker continues.
func TestAClaimIsDoneAgainForTheSameWorker(t *testing.T) {
	ctx := t.Context()
	const runs = 30
	calls := atomic.Int32{}
	var e *enginetest.Engine
	a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
		calls.Add(1)
		if err := runSQL(e, undoing)(t.Context()); !errors.Is(err, store.ErrUndone) {
			return 0, fmt.Errorf("not undone: %w", err)
		}
		return n, ctx.Err()
	})
	e = enginetest.New(t, a)
	withTable(t, e)
	for n := range runs {
		run, err := a.Run(ctx, e, n)
		require.NoError(t, err)
		got, err := run.Result(ctx, e)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	require.EqualValues(t, runs, calls.Load())
}
