package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

// asNobody runs f without the right to write what others own. Permissions do not bind the administrator, who runs tests
// in many a container, so the thread's own identity towards the file system is changed; it ends with the goroutine.
func asNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				panic(err)
			}
		}
		f()
	}()
	<-done
}

func TestAFolderOrFileThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	for dir := folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	path := filepath.Join(folder, "cases.db")
	w := storetest.NewWorld(t, sqlite.File(path), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	require.NoError(t, w.Store.Close())
	require.NoError(t, os.Chmod(path, 0o444))
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(folder, 0o555))
		defer func() { _ = os.Chmod(folder, 0o755) }()
	}
	for _, file := range []string{path, filepath.Join(folder, "new.db")} {
		asNobody(func() {
			_, err := sqlite.File(file).Open(t.Context(), store.Options{})
			require.ErrorIs(t, err, store.ErrReadOnly)
			require.ErrorContains(t, err, file)
		})
	}
}
