package sqlite_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A file that lacks indexes is read without them, which are listed, and has them again when it is opened for writing.
func TestDroppedIndexes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dropped.db")
	s, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Empty(t, missingIndexes(t, path))
	edit(t, path, "DROP INDEX jobs_due; DROP INDEX cases_failed")
	missing := missingIndexes(t, path)
	require.Len(t, missing, 2)
	require.Equal(t, store.Index{Name: "jobs_due", Table: "jobs",
		SQL: "CREATE INDEX jobs_due ON jobs (due) WHERE state IN ('pending', 'running', 'waiting')"}, missing[1])

	var log bytes.Buffer
	s, err = sqlite.File(path).Open(t.Context(), store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Contains(t, log.String(), "index=jobs_due table=jobs")
	require.Empty(t, missingIndexes(t, path))

	// A later program may have dropped them.
	edit(t, path, "DROP INDEX jobs_due; INSERT INTO migrations SELECT version + 1, 'later', 'x', 0 FROM migrations ORDER BY version DESC LIMIT 1; "+
		"INSERT INTO meta (name, value) VALUES ('oldest_program', 1) ON CONFLICT (name) DO UPDATE SET value = 1")
	require.Empty(t, missingIndexes(t, path))
}

func missingIndexes(t *testing.T, path string) (missing []store.Index) {
	t.Helper()
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
		missing, err = r.(store.Auditor).MissingIndexes(t.Context())
		return err
	}))
	require.NoError(t, s.Close())
	return missing
}
