package cli

import (
	"path/filepath"
	"testing"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// onEachStore runs a test on a database of each store, which the flag -d names by at.
func onEachStore(t *testing.T, test func(t *testing.T, db store.Opener, at string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		at := filepath.Join(t.TempDir(), "s.db")
		test(t, sqlite.File(at), at)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at := pgtest.Database(t)
		test(t, postgres.Open(at), at)
	})
}
