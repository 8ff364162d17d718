package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// breakDisk has every read and write of an open database fail, until the function that it returns is called.
func breakDisk(t *testing.T, path string) (repair func()) {
	t.Helper()
	folder, err := os.Open(t.TempDir()) // can be neither read nor written as a file
	require.NoError(t, err)
	kept := make(map[int]int)
	for _, fd := range opened(t, path, path+"-wal") {
		old, err := syscall.Dup(fd)
		require.NoError(t, err)
		require.NoError(t, syscall.Dup3(int(folder.Fd()), fd, syscall.O_CLOEXEC))
		kept[fd] = old
	}
	require.NotEmpty(t, kept)
	return func() {
		for fd, old := range kept {
			require.NoError(t, syscall.Dup3(old, fd, syscall.O_CLOEXEC))
			require.NoError(t, syscall.Close(old))
		}
		require.NoError(t, folder.Close())
	}
}

// opened lists the numbers by which this process has files open.
func opened(t *testing.T, paths ...string) (fds []int) {
	t.Helper()
	const all = "/proc/self/fd"
	entries, err := os.ReadDir(all)
	require.NoError(t, err)
	for _, entry := range entries {
		path, err := os.Readlink(filepath.Join(all, entry.Name()))
		if err != nil || !slices.Contains(paths, path) {
			continue
		}
		fd, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		fds = append(fds, fd)
	}
	return fds
}

// SQLite rolls a transaction back when the disk fails within any of its statements, also one of the store's own that only reads.
// What follows is not done outside of it.
func TestAReadThatMeetsABadDiskUndoesTheTransaction(t *testing.T) {
	s := openFile(t)
	exec := func(tx store.Tx, query string) error {
		_, err := tx.DB().ExecContext(t.Context(), query)
		return err
	}
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
		return exec(tx, "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(1000000))")
	}))
	reads := map[string]func(store.Tx) error{
		"Load":     func(tx store.Tx) error { _, err := tx.Load(t.Context(), workitem.CaseID{1}); return err },
		"Root":     func(tx store.Tx) error { _, err := tx.Root(t.Context(), workitem.ID{1}); return err },
		"Item":     func(tx store.Tx) error { _, err := tx.Item(t.Context(), workitem.ID{1}); return err },
		"Steps":    func(tx store.Tx) error { _, err := tx.Steps(t.Context(), workitem.ID{1}); return err },
		"Answered": func(tx store.Tx) error { _, err := tx.Answered(t.Context(), "k"); return err },
		"Requests": func(tx store.Tx) error { _, err := tx.Requests(t.Context(), 0, 1); return err },
		"Reply":    func(tx store.Tx) error { return tx.Reply(t.Context(), 1, store.Answer{}) },
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			var met, next, after error
			err := s.Update(t.Context(), func(tx store.Tx) error {
				require.NoError(t, exec(tx, "INSERT INTO t VALUES (1)"))
				_, _, err := s.w.number("PRAGMA shrink_memory")
				require.NoError(t, err)
				repair := breakDisk(t, s.path)
				met = read(tx)
				repair()
				next = tx.Savepoint(t.Context(), func() error { return exec(tx, "INSERT INTO t VALUES (2)") })
				after = read(tx)
				return nil
			})
			n, _, asked := s.w.number("SELECT count(*) FROM t WHERE x IN (1, 2)")
			require.NoError(t, asked)
			require.Zero(t, n)
			for _, err := range []error{met, next, after, err} {
				require.ErrorIs(t, err, store.ErrUndone)
				require.ErrorIs(t, err, store.ErrUnavailable)
			}
		})
	}
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error { return exec(tx, "INSERT INTO t VALUES (3)") }))
}
