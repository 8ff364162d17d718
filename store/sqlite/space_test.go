package sqlite

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// writeLog has the log grow by about the given number of megabytes, in a table of the user that stays small.
func writeLog(t *testing.T, s *Store, megabytes int) error {
	t.Helper()
	for range 10 * megabytes {
		if err := s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, x); INSERT OR REPLACE INTO t VALUES (1, randomblob(100000))")
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// While the file system has little room, the log does not grow to its usual size, and the window is written after fewer commands.
func TestTheLogIsShortWhereThereIsLittleRoom(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	free, known := uint64(littleSpace)-1, true
	s.space.free = func(folder string) (uint64, bool) {
		require.Equal(t, filepath.Dir(s.path), folder)
		return free, known
	}
	setting := func(pragma string) int64 {
		n, _, err := s.w.number("PRAGMA " + pragma)
		require.NoError(t, err)
		return n
	}
	require.NoError(t, writeLog(t, s, 10))
	require.Equal(t, int64(shortLog/pageSize), setting("wal_autocheckpoint"))
	require.Equal(t, shortWindow, s.windowSize())
	require.Less(t, sizeOf(t, s.path+"-wal"), int64(2*shortLog))

	free = enoughSpace - 1 // not back at once, or the log would grow and shrink by turns
	s.space.due = true
	require.NoError(t, writeLog(t, s, 1))
	require.Equal(t, int64(shortLog), setting("journal_size_limit"))

	free = enoughSpace
	require.NoError(t, writeLog(t, s, 10))
	require.Equal(t, int64(fullLogPages), setting("wal_autocheckpoint"))
	require.Equal(t, int64(-1), setting("journal_size_limit"))
	require.Equal(t, DefaultWindow, s.windowSize())
	require.Greater(t, sizeOf(t, s.path+"-wal"), int64(8*shortLog))

	free, known = 0, false // as on a system that does not say
	s.space.due = true
	require.NoError(t, writeLog(t, s, 1))
	require.Equal(t, int64(fullLogPages), setting("wal_autocheckpoint"))
}

// A small disk is not full of the log: what is committed fits as long as the database does.
func TestASmallDiskIsNotFullOfTheLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Skipf("no file system of 8 MB can be mounted: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", folder).Run() })
	opened, err := File(filepath.Join(folder, "small.db")).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	s := opened.(*Store)
	require.NoError(t, writeLog(t, s, 20))

	// Other files take what is left. Nothing is committed, until they are gone.
	ballast := filepath.Join(folder, "ballast")
	require.Error(t, os.WriteFile(ballast, make([]byte, 8<<20), 0o600))
	for err = nil; err == nil; {
		err = s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.DB().ExecContext(t.Context(), "INSERT INTO t (x) VALUES (randomblob(100000))")
			return err
		})
	}
	require.ErrorContains(t, err, "full")
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, writeLog(t, s, 20))
	require.NoError(t, s.Close())
}
