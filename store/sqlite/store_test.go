package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

func TestFile(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "cases.db")) })
}

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Opener { return sqlite.Memory() })
}
