package sqlite_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

// opened is an owner of a new file with a case in it.
func opened(t *testing.T) (path string, w *storetest.World) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cases.db")
	w = storetest.NewWorld(t, sqlite.File(path), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	return path, w
}

// lost requires that nothing is acknowledged or read any more.
func lost(t *testing.T, s store.Store, text string) {
	t.Helper()
	ran := false
	err := s.Update(t.Context(), func(store.Tx) error { ran = true; return nil })
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorContains(t, err, text)
	require.False(t, ran)
	require.ErrorIs(t, s.Idle(t.Context()), store.ErrLost)
	require.ErrorIs(t, s.Register(t.Context(), nil), store.ErrLost)
	_, err = s.(store.Watcher).Changed(t.Context())
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorIs(t, s.View(t.Context(), func(store.Reader) error { return nil }), store.ErrLost)
}

func TestFilesThatAreTakenAwayStopTheStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		take func(t *testing.T, path string)
		text string
	}{
		"removed":     {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, "cases.db was removed or moved"},
		"moved":       {func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) }, "cases.db was removed or moved"},
		"cut off":     {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 4096)) }, "cases.db was cut off, from"},
		"emptied":     {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }, "cases.db was cut off, from"},
		"log removed": {func(t *testing.T, path string) { require.NoError(t, os.Remove(path+"-wal")) }, "cases.db-wal was removed or moved"},
		"log cut off": {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path+"-wal", 5000)) }, "cases.db-wal was cut off, from"},
		"log emptied": {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path+"-wal", 0)) }, "cases.db-wal was cut off, from"},
		"index cut":   {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path+"-shm", 0)) }, "cases.db-shm was cut off, from 32768 bytes to 0"},
		"index gone":  {func(t *testing.T, path string) { require.NoError(t, os.Remove(path+"-shm")) }, "cases.db-shm was removed or moved"},
		"folder moved": {func(t *testing.T, path string) {
			require.NoError(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".old"))
		}, "cases.db was removed or moved"},
		"replaced": {func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".new", []byte("other"), 0o644))
			require.NoError(t, os.Rename(path+".new", path))
		}, "cases.db was replaced by another file"},
	} {
		t.Run(name, func(t *testing.T) {
			path, w := opened(t)
			require.NoError(t, w.Store.Idle(t.Context()))
			c.take(t, path)
			sqlite.LookNext(w.Store)
			lost(t, w.Store, c.text)
			require.ErrorIs(t, w.Store.Close(), store.ErrLost)
		})
	}
}

// A log that was cut off is noticed before anything more is written to it, which would leave a hole that a checkpoint copies into the database.
func TestALogThatIsCutOffIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, length := range []int64{0, 5000} {
		path, w := opened(t)
		w.Update(func(b *storetest.Batch) { b.Start(`2`) })
		require.NoError(t, w.Store.Idle(t.Context()))
		w.Update(func(b *storetest.Batch) { b.Start(`3`) })
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		sqlite.LookNoMore(w.Store) // the look of each second would be later
		require.NoError(t, os.Truncate(path+"-wal", length))
		lost(t, w.Store, "cases.db-wal was cut off, from")
		require.ErrorIs(t, w.Store.Close(), store.ErrLost)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

// An idle engine asks whether there are requests, and notices so.
func TestAnIdleStoreNoticesThatItsFileIsGone(t *testing.T) {
	path, w := opened(t)
	require.NoError(t, os.Remove(path))
	sqlite.LookNext(w.Store)
	_, err := w.Store.(store.Watcher).Changed(t.Context())
	require.ErrorIs(t, err, store.ErrLost)
}

// The log of a file that has taken the place of the database is not removed when the store closes.
func TestALostStoreLeavesTheFilesOfItsSuccessor(t *testing.T) {
	t.Parallel()
	path, w := opened(t)
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, os.Rename(path+"-wal", path+".old-wal"))
	require.NoError(t, os.WriteFile(path+"-wal", []byte("of another database"), 0o644))
	sqlite.LookNext(w.Store)
	lost(t, w.Store, "was removed or moved")
	require.ErrorIs(t, w.Store.Close(), store.ErrLost)
	require.FileExists(t, path+"-wal")
}

// Nothing that was acknowledged is lost with a file that was moved and is put back.
func TestAFileThatIsPutBack(t *testing.T) {
	path, w := opened(t)
	require.NoError(t, os.Rename(path, path+".old"))
	w.Update(func(b *storetest.Batch) { b.Start(`2`) }) // within the second in which it is not noticed
	sqlite.LookNext(w.Store)
	lost(t, w.Store, "was removed or moved")
	require.ErrorIs(t, w.Store.Close(), store.ErrLost)
	require.NoError(t, os.Rename(path+".old", path))
	w.Open()
	w.Check()
}

// VACUUM makes a file smaller, and SQLite knows that.
func TestVacuumIsNoDamage(t *testing.T) {
	t.Parallel()
	path, w := opened(t)
	edit(t, path, "CREATE TABLE large (x); INSERT INTO large SELECT zeroblob(1000000)")
	sqlite.LookNext(w.Store)
	w.Update(func(b *storetest.Batch) { b.Start(`2`) })
	require.NoError(t, w.Store.Idle(t.Context())) // it reads nothing, and so does not keep a checkpoint from the end of the log
	edit(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
	before, err := os.Stat(path)
	require.NoError(t, err)
	edit(t, path, "DROP TABLE large; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, after.Size(), before.Size())
	sqlite.LookNext(w.Store)
	w.Update(func(b *storetest.Batch) { b.Start(`3`) })
	w.Check()
}

func TestARemovedLockFileIsCreatedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cases.db")
	var log bytes.Buffer
	s, err := sqlite.File(path).Open(t.Context(), store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path+".lock"))
	_, err = sqlite.File(path).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned, "this process knows what it owns")
	sqlite.LookNext(s)
	require.NoError(t, s.Update(t.Context(), func(store.Tx) error { return nil }))
	require.Contains(t, log.String(), "the lock file was removed")

	cmd, out := start(t, "hold", path)
	require.False(t, out.Scan(), "another process is refused")
	require.Error(t, cmd.Wait())
	require.NoError(t, s.Close())
	again, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// A second engine gets in only between the removal of the lock file and the next look. The first one finds its token
// in the database before it writes anything more.
func TestASecondOwnerStopsTheFirst(t *testing.T) {
	t.Parallel()
	path, w := opened(t)
	sqlite.LookNoMore(w.Store)
	require.NoError(t, os.Remove(path+".lock"))
	cmd, out := start(t, "hold", path)
	require.True(t, out.Scan())
	err := w.Store.Update(t.Context(), func(store.Tx) error { return nil })
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorContains(t, err, "another engine has opened the file")
	require.ErrorIs(t, w.Store.Close(), store.ErrLost)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	w.Open()
	w.Resume()
	w.Check()
}

// The same is found by the lock, if the first engine looks before it writes.
func TestALockThatAnotherProcessHasTaken(t *testing.T) {
	path, w := opened(t)
	require.NoError(t, os.Remove(path+".lock"))
	cmd, out := start(t, "hold", path)
	require.True(t, out.Scan())
	sqlite.LookNext(w.Store)
	lost(t, w.Store, "another")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

func TestAHardLinkIsTheSameFile(t *testing.T) {
	path, _ := opened(t)
	require.NoError(t, os.Link(path, path+".link"))
	_, err := sqlite.File(path+".link").Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
}
