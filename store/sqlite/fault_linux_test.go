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

// permit sets the permissions of a file and its folder, and makes the folders above accessible to other users.
func permit(t *testing.T, path string, file, folder os.FileMode) {
	t.Helper()
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, os.Chmod(path, file))
	require.NoError(t, os.Chmod(filepath.Dir(path), folder))
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
}

// An operator is another user than the service that owns the file, and has the right to write it.
func TestAnotherUserMayOpenAFileThatItMayWrite(t *testing.T) {
	path, _ := closed(t)
	permit(t, path, 0o666, 0o777)
	again, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	info, err := os.Stat(path + ".lock")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o666), info.Mode().Perm())
	require.NoError(t, again.Close())
	asNobody(func() {
		other, err := sqlite.File(path).Open(t.Context(), store.Options{})
		require.NoError(t, err)
		require.NoError(t, other.Close())
	})
}

// The administrator opens the file of a service that has no lock file yet, and must not shut out the service.
func TestALockFileOfTheAdministratorBelongsToTheOwnerOfTheFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs the administrator's rights")
	}
	path, _ := closed(t)
	permit(t, path, 0o600, 0o777)
	require.NoError(t, os.Chown(path, 65534, 65534))
	require.NoError(t, os.Remove(path+".lock"))
	s, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	asNobody(func() {
		service, err := sqlite.File(path).Open(t.Context(), store.Options{})
		require.NoError(t, err)
		require.NoError(t, service.Close())
	})
}

func TestABackupHasThePermissionsOfTheDatabase(t *testing.T) {
	path, w := written(t)
	defer func() { require.NoError(t, w.Store.Close()) }()
	for _, mode := range []os.FileMode{0o600, 0o660} {
		require.NoError(t, os.Chmod(path, mode))
		to := filepath.Join(t.TempDir(), "copy.db")
		require.NoError(t, w.Store.(store.Backuper).Backup(t.Context(), to, store.BackupOptions{}))
		info, err := os.Stat(to)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
}

func TestTheErrorForAFileThatCannotBeRead(t *testing.T) {
	for _, rights := range []struct{ file, folder os.FileMode }{{0, 0o755}, {0o644, 0}} {
		path, _ := closed(t)
		permit(t, path, rights.file, rights.folder)
		asNobody(func() {
			_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorContains(t, err, "right")
			require.NotContains(t, err.Error(), "holds commits")
		})
	}
}
