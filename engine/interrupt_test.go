package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// endless runs a statement that does not end, and ignores contexts.
func endless(db domain.DB) error {
	ctx := context.Background()
	if domain.DialectOf(db) == domain.Postgres {
		_, err := db.ExecContext(ctx, "SET LOCAL statement_timeout = 0; SELECT pg_sleep(3600)")
		return err
	}
	var n int
	return db.QueryRowContext(ctx, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c").Scan(&n)
}

// A statement of the user's SQL that does not end is interrupted when the time of its callback is over: in Update, in a callback of a case, and
// in a step. Its command fails, and all others continue.
func TestAStatementThatDoesNotEndIsInterrupted(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		interrupted(t, sqlite.File(t.TempDir()+"/a.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		interrupted(t, postgres.Open(prepared.Database(t)))
	})
}

func interrupted(t *testing.T, o store.Opener) {
	b := builder.New[any]("case")
	task := builder.Task(b, "task", builder.Work[any, any]{Auto: true,
		OnEnabled: func(_ context.Context, a *activities.Activation) error { return endless(a.DB()) }})
	b.Path(b.Start(), task, b.End())
	inCallback := b.MustBuild()
	inStep := builder.MustFunc("step", func(ctx context.Context, n int) (int, error) {
		return step.Tx(ctx, "endless", func(_ context.Context, db domain.DB) (int, error) { return n, endless(db) })
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	other := builder.MustFunc("other", func(_ context.Context, n int) (int, error) { return n, nil })
	cfg := engine.Config{CallbackTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	e, err := cfg.Open(t.Context(), o, inCallback, inStep, other)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for _, f := range []func() error{
		func() error {
			return e.Update(t.Context(), func(tx *engine.Tx) error { return endless(tx.DB()) })
		},
		func() error {
			_, err := inCallback.Start(t.Context(), e, nil)
			return err
		},
	} {
		failed := make(chan error, 1)
		go func() { failed <- f() }()
		run, err := other.Run(t.Context(), e, 7)
		require.NoError(t, err)
		v, err := run.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 7, v)
		require.ErrorIs(t, <-failed, engine.ErrCallback)
	}
	run, err := inStep.Run(t.Context(), e, 1)
	require.NoError(t, err)
	_, err = run.Result(t.Context(), e)
	require.ErrorContains(t, err, "did not return within 2s")
	require.NoError(t, integrity.Check(t.Context(), e))
}
