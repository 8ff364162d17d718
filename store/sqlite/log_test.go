package sqlite

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// grow writes so many rows of four kilobytes, a commit each, and returns the length of the log after each.
func grow(t *testing.T, s *Store, rows int) (lengths []int64) {
	t.Helper()
	text := strings.Repeat("x", 4000)
	for range rows {
		require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
			if _, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS t (x)"); err != nil {
				return err
			}
			_, err := tx.DB().ExecContext(t.Context(), "INSERT INTO t VALUES (?)", text)
			return err
		}))
		lengths = append(lengths, logLength(t, s.path))
	}
	return lengths
}

// grown counts the commits that made a log longer, without those of its beginning.
func grown(lengths []int64) (n int) {
	for i, length := range lengths[1:] {
		if length != lengths[i] && lengths[i] > logSmall {
			n++
		}
	}
	return n
}

func logLength(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	return info.Size()
}

func rows(t *testing.T, s *Store) int64 {
	t.Helper()
	n, _, err := s.w.number("SELECT count(*) FROM t")
	require.NoError(t, err)
	verdict := ""
	require.NoError(t, s.w.each("PRAGMA integrity_check", nil, func(r *tables.Row) error {
		verdict += r.Text()
		return r.Err
	}))
	require.Equal(t, "ok", verdict)
	return n
}

// Once a log has some length, it grows a megabyte at a time: few commits wait until the file system has a new length.
func TestTheLogHasRoom(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	lengths := grow(t, s, 600)
	require.Greater(t, lengths[599], int64(2<<20))
	require.Less(t, grown(lengths), 20, "%v", lengths)
	require.EqualValues(t, 600, rows(t, s))
}

// What a crash leaves, with zeros at the end of the log, is read like any other log, and written on.
func TestALogWithRoomOutlivesACrash(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	grow(t, s, 300)
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, ending := range []string{"", "-wal"} {
		content, err := os.ReadFile(s.path + ending)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied+ending, content, 0o600))
	}
	require.True(t, strings.HasSuffix(readFile(t, copied+"-wal"), strings.Repeat("\x00", 100_000)))
	again, err := File(copied).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 300, rows(t, again.(*Store)))
	grow(t, again.(*Store), 100)
	require.EqualValues(t, 400, rows(t, again.(*Store)))
	require.NoError(t, again.Close())
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// Another program may cut the log off, as a checkpoint of sqlite3 does on request. Then room is created again.
func TestALogThatWasCutOffGetsRoomAgain(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	grow(t, s, 200)
	other, err := sql.Open("sqlite", s.path)
	require.NoError(t, err)
	_, err = other.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.Zero(t, logLength(t, s.path))
	grow(t, s, 200)
	require.Greater(t, logLength(t, s.path), int64(logRoom))
	require.EqualValues(t, 400, rows(t, s))
}

// Nothing is kept where no one waits for the disk, and no error of it reaches a commit.
func TestALogThatIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "n.db")
	s, err := File(path, LoseLastCommits()).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.Greater(t, grown(grow(t, s.(*Store), 200)), 100)
	require.NoError(t, s.Close())

	other := openFile(t)
	other.wal.path = filepath.Join(t.TempDir(), "absent")
	require.Greater(t, grown(grow(t, other, 200)), 100)
	require.EqualValues(t, 200, rows(t, other))
}
