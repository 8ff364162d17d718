package postgres_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

// Indexes that are missing or unusable are listed, logged by an engine, and made by a migration.
func TestDroppedIndexes(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s, err := postgres.Open(dsn).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Empty(t, missingIndexes(t, dsn))
	execOn(t, dsn, "DROP INDEX tasq.jobs_due, tasq.journal_seq", "ALTER TABLE tasq.limits DROP CONSTRAINT limits_pkey",
		"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tasq.cases_failed'::regclass")
	missing := missingIndexes(t, dsn)
	require.ElementsMatch(t, []store.Index{
		{Name: "journal_seq", Table: "journal", SQL: "CREATE UNIQUE INDEX journal_seq ON tasq.journal (seq)"},
		{Name: "cases_failed", Table: "cases", SQL: "REINDEX INDEX tasq.cases_failed"},
		{Name: "jobs_due", Table: "jobs", SQL: "CREATE INDEX jobs_due ON tasq.jobs (due, id) WHERE state IN ('pending', 'running', 'waiting')"},
		{Name: "limits_pkey", Table: "limits", SQL: "ALTER TABLE tasq.limits ADD CONSTRAINT limits_pkey PRIMARY KEY (name, key)"},
	}, missing)

	var log bytes.Buffer
	s, err = postgres.Open(dsn).Open(t.Context(), store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, 4, strings.Count(log.String(), "tasq migrate makes it"), log.String())
	require.Contains(t, log.String(), "index=jobs_due table=jobs")

	require.NoError(t, postgres.Open(dsn).(interface{ Migrate(context.Context) error }).Migrate(t.Context()))
	require.Empty(t, missingIndexes(t, dsn))
	// A later program may have dropped them.
	execOn(t, dsn, "DROP INDEX tasq.jobs_due", "INSERT INTO tasq.schema_migrations SELECT max(version) + 1, 'later', 'x', 0 FROM tasq.schema_migrations")
	require.Empty(t, missingIndexes(t, dsn))
}

func missingIndexes(t *testing.T, dsn string) (missing []store.Index) {
	t.Helper()
	s, err := postgres.Open(dsn).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
		missing, err = r.(store.Auditor).MissingIndexes(t.Context())
		return err
	}))
	require.NoError(t, s.Close())
	return missing
}
