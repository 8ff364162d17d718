package postgres_test

import (
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

// A database without the tables, or with some of them, is refused with what is missing and what to do, for reading and for writing.
func TestAPartOfASchemaIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dsn := pgtest.Database(t)
	open := func(readOnly bool) error {
		s, err := postgres.Open(dsn).Open(ctx, store.Options{ReadOnly: readOnly})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	err := open(true)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "it has no schema tasq: open it with an engine, or name another database or schema")
	require.NoError(t, open(false))
	require.NoError(t, open(true))

	c, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(ctx)) }()
	drop := func(statement string) {
		t.Helper()
		_, err := c.Exec(ctx, statement)
		require.NoError(t, err)
	}
	drop("DROP TABLE tasq.work_items CASCADE")
	for _, readOnly := range []bool{true, false} {
		err = open(readOnly)
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, "its schema tasq lacks the table work_items: it was restored in part, or the table was dropped: restore a backup")
	}
	drop("DROP TABLE tasq.jobs, tasq.steps CASCADE")
	require.ErrorContains(t, open(true), "and 2 others")
	drop("DELETE FROM tasq.schema_migrations")
	err = open(true)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.NotErrorIs(t, err, store.ErrOlder)
	require.ErrorContains(t, err, "does not say of which version it is")
}

// A schema of another program that has the same name is refused, and not changed.
func TestTablesOfAnotherProgram(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dsn := pgtest.Database(t)
	c, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(ctx)) }()
	_, err = c.Exec(ctx, "CREATE SCHEMA tasq; CREATE TABLE tasq.cases (a int)")
	require.NoError(t, err)
	_, err = postgres.Open(dsn).Open(ctx, store.Options{})
	require.ErrorIs(t, err, store.ErrForeign)
	require.ErrorContains(t, err, "its schema tasq has tables of another program, and was not changed")
	var n int
	require.NoError(t, c.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'tasq'").Scan(&n))
	require.Equal(t, 1, n)
}
