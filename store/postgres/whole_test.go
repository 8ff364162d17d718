package postgres_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
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
	require.ErrorContains(t, err, "it has no schema tasq: create it with tasq migrate or an engine, or name another database or schema")
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

// An engine that does not migrate says of each state of the schema what to do.
func TestWithoutMigrations(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	open := func(options ...postgres.Option) error {
		s, err := postgres.Open(dsn, options...).Open(t.Context(), store.Options{})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	const once = "this engine does not migrate (postgres.NoMigrate): run tasq migrate of this version, or open it once without that option, with a role that may make tables"
	err := open(postgres.NoMigrate())
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "it has no schema tasq, and "+once)
	require.NoError(t, open())
	require.NoError(t, open(postgres.NoMigrate()))
	execOn(t, dsn, "ALTER TABLE tasq.steps RENAME TO dropped")
	require.ErrorContains(t, open(postgres.NoMigrate()), "its schema tasq lacks the table steps")
	execOn(t, dsn, "ALTER TABLE tasq.dropped RENAME TO steps", "DELETE FROM tasq.schema_migrations WHERE version > 5")
	err = open(postgres.NoMigrate())
	require.ErrorIs(t, err, store.ErrOlder)
	require.ErrorContains(t, err, "its tables lack migration 6 (")
	require.ErrorContains(t, err, once)
	execOn(t, dsn, "DELETE FROM tasq.schema_migrations")
	require.ErrorContains(t, open(postgres.NoMigrate()), "does not say of which version it is")
}

// Rights on tables that a role lacks, as on those of a migration by another role, are logged when it opens the database.
func TestMissingRightsAreLogged(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	role, as := role(t, dsn)
	opened := func() string {
		var log bytes.Buffer
		s, err := postgres.Open(as, postgres.NoMigrate()).Open(t.Context(), store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return log.String()
	}
	execOn(t, dsn, "GRANT USAGE ON SCHEMA tasq TO "+role, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tasq TO "+role)
	execOn(t, dsn, "REVOKE INSERT, UPDATE, DELETE ON tasq.schema_migrations FROM "+role)
	require.Empty(t, opened())
	execOn(t, dsn, "REVOKE ALL ON tasq.records FROM "+role, "REVOKE INSERT ON tasq.jobs FROM "+role)
	log := opened()
	require.Contains(t, log, `lacks="jobs (INSERT), records (SELECT, INSERT, UPDATE, DELETE)"`)
	require.Contains(t, log, `grant="GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tasq TO the role"`)
}

// A schema of another program that has tables with the same names is refused, and not changed, whatever opens it. Other programs have a table
// schema_migrations, too.
func TestTablesOfAnotherProgram(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for table, named := range map[string]string{
		"cases (a int)": "its table cases", "schema_migrations (version text PRIMARY KEY)": "its table schema_migrations",
		"schema_migrations (version bigint, dirty bool)": "its table schema_migrations",
	} {
		dsn := pgtest.Database(t)
		execOn(t, dsn, "CREATE SCHEMA tasq; CREATE TABLE tasq."+table)
		_, written := postgres.Open(dsn).Open(ctx, store.Options{})
		_, withoutMigration := postgres.Open(dsn, postgres.NoMigrate()).Open(ctx, store.Options{})
		_, read := postgres.Open(dsn).Open(ctx, store.Options{ReadOnly: true})
		_, posted := postgres.Post(ctx, dsn, []byte(`{}`))
		migrated := postgres.Open(dsn).(interface{ Migrate(context.Context) error }).Migrate(ctx)
		for _, err := range []error{written, withoutMigration, read, posted, migrated} {
			require.ErrorIs(t, err, store.ErrForeign)
			require.ErrorContains(t, err, "its schema tasq has tables of another program, and was not changed: name another schema")
			require.ErrorContains(t, err, named)
		}
		require.EqualValues(t, 1, number(t, dsn, "SELECT count(*) FROM pg_tables WHERE schemaname = 'tasq'"))
	}

	// Other tables do not disturb.
	dsn := pgtest.Database(t)
	execOn(t, dsn, "CREATE SCHEMA tasq; CREATE TABLE tasq.orders (a int)")
	s, err := postgres.Open(dsn).Open(ctx, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
