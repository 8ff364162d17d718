package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
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

// locked takes the right to write a file and its folder from everybody but the administrator.
func locked(t *testing.T, path string) {
	t.Helper()
	folder := filepath.Dir(path)
	for dir := folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, os.Chmod(path, 0o444))
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(folder, 0o555))
		t.Cleanup(func() { _ = os.Chmod(folder, 0o755) })
	}
}

func TestAFileInAFolderThatCannotBeWrittenIsRead(t *testing.T) {
	path, w := closed(t)
	locked(t, path)
	asNobody(func() {
		s := reader(t, path)
		look(t, s, w)
		look(t, s, w)
		err := s.View(t.Context(), func(r store.Reader) error {
			w.Want.Check(t.Context(), t, r)
			touched := make(chan error)
			go func() { touched <- os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }() // by somebody with more rights
			return <-touched
		})
		require.ErrorIs(t, err, store.ErrConflict)
		require.NoError(t, s.Close())
	})
	names, _ := lying(t, path)
	require.Equal(t, []string{"cases.db", "cases.db.lock"}, names)
}

func TestAFolderOrFileThatCannotBeWritten(t *testing.T) {
	path, _ := closed(t)
	folder := filepath.Dir(path)
	locked(t, path)
	for _, file := range []string{path, filepath.Join(folder, "new.db")} {
		asNobody(func() {
			_, err := sqlite.File(file).Open(t.Context(), store.Options{})
			require.ErrorIs(t, err, store.ErrReadOnly)
			require.ErrorContains(t, err, file)
		})
	}
}
