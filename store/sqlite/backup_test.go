package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

func backup(t *testing.T, s store.Store, to string, o store.BackupOptions) error {
	t.Helper()
	return s.(store.Backuper).Backup(t.Context(), to, o)
}

// A copy holds what was acknowledged when it began, also while the owner writes: commits between its steps change nothing.
func TestABackupIsConsistent(t *testing.T) {
	t.Parallel()
	path, w := opened(t)
	edit(t, path, "CREATE TABLE large (x); INSERT INTO large SELECT zeroblob(30000000)") // several steps
	to := filepath.Join(filepath.Dir(path), "copy.db")
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true}) // as another process would
	require.NoError(t, err)
	defer s.Close()
	steps := 0
	require.NoError(t, backup(t, s, to, store.BackupOptions{Progress: func(pages, of int64) {
		steps++
		require.LessOrEqual(t, pages, of)
		w.Update(func(b *storetest.Batch) { b.Start(`2`) })
		w.Store.(interface{ Idle(context.Context) error }).Idle(t.Context())
	}}))
	require.Greater(t, steps, 1)
	require.Less(t, steps, 10, "it does not begin anew with each commit")
	again, err := sqlite.File(to).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, again.View(t.Context(), func(r store.Reader) error {
		cases, err := r.Cases(t.Context(), store.CaseFilter{})
		require.Len(t, cases, 1)
		return err
	}))
	require.NoError(t, again.Close())
	w.Check()
}

func TestABackupOfTheOwnerAndOfMemory(t *testing.T) {
	for _, opener := range []store.Opener{sqlite.File(filepath.Join(t.TempDir(), "cases.db")), sqlite.Memory()} {
		w := storetest.NewWorld(t, opener, 1)
		w.Update(func(b *storetest.Batch) { b.Start(`1`) })
		to := filepath.Join(t.TempDir(), "copy.db")
		seen := 0
		require.NoError(t, backup(t, w.Store, to, store.BackupOptions{Verify: func(ctx context.Context, s store.Store) error {
			require.NoFileExists(t, to, "it gets its name when it was checked")
			return s.View(ctx, func(r store.Reader) error {
				cases, err := r.Cases(ctx, store.CaseFilter{})
				seen = len(cases)
				return err
			})
		}}))
		require.Equal(t, 1, seen)
		names, _ := lying(t, to)
		require.Equal(t, []string{"copy.db"}, names)
	}
}

func TestABackupWritesOverNothing(t *testing.T) {
	path, w := opened(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(to, []byte("precious"), 0o644))
	require.ErrorIs(t, backup(t, w.Store, to, store.BackupOptions{}), fs.ErrExist)
	require.ErrorContains(t, backup(t, w.Store, path, store.BackupOptions{Overwrite: true}), "it is the database itself")
	failed := errors.New("no good")
	require.ErrorIs(t, backup(t, w.Store, to, store.BackupOptions{Overwrite: true,
		Verify: func(context.Context, store.Store) error { return failed }}), failed)
	names, content := lying(t, to)
	require.Equal(t, []string{"copy.db"}, names, "nothing is left of a copy that failed")
	require.Equal(t, "precious", content)
	require.NoError(t, backup(t, w.Store, to, store.BackupOptions{Overwrite: true}))
	require.NoError(t, os.WriteFile(to+"-wal", []byte("of another program"), 0o644))
	require.ErrorIs(t, backup(t, w.Store, to, store.BackupOptions{Overwrite: true}), fs.ErrExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.Store.(store.Backuper).Backup(ctx, to+"2", store.BackupOptions{}), context.Canceled)
	require.NoFileExists(t, to+"2")
}

// What a process that was killed left of a copy is removed by the next copy, and nothing else.
func TestABackupRemovesWhatKilledOnesLeft(t *testing.T) {
	t.Parallel()
	_, w := opened(t)
	dir := t.TempDir()
	for _, name := range []string{".tasq-backup-dead", ".tasq-backup-live", ".tasq-backup-older", "other"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "copy.db"), []byte("a part"), 0o600))
		if name != ".tasq-backup-older" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name, ".tasq-lock"), nil, 0o600))
		}
	}
	live := flock.New(filepath.Join(dir, ".tasq-backup-live", ".tasq-lock"))
	require.NoError(t, live.Lock())
	to := filepath.Join(dir, "copy.db")
	require.NoError(t, backup(t, w.Store, to, store.BackupOptions{Verify: func(context.Context, store.Store) error {
		require.NoError(t, backup(t, w.Store, to+"2", store.BackupOptions{}), "a second one leaves the folder of the first")
		return nil
	}}))
	require.NoError(t, live.Close())
	names, _ := lying(t, to)
	require.Equal(t, []string{".tasq-backup-live", ".tasq-backup-older", "copy.db", "copy.db2", "other"}, names)
}

// A copy that is canceled ends at the next step, and of a damaged file there is none.
func TestABackupThatEndsEarly(t *testing.T) {
	t.Parallel()
	path, w := opened(t)
	require.NoError(t, w.Store.Close())
	edit(t, path, "CREATE TABLE large (x, y); INSERT INTO large SELECT zeroblob(30000000), 1; INSERT INTO large VALUES ('a', 2), ('b', 3); "+
		"CREATE INDEX of_y ON large (y)")
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "copy.db")
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	err = s.(store.Backuper).Backup(ctx, to, store.BackupOptions{Progress: func(int64, int64) { steps++; cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, steps)
	require.NoError(t, s.Close())

	edit(t, path, "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'large') "+
		"WHERE name = 'of_y'")
	s, err = sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	err = backup(t, s, to, store.BackupOptions{})
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "the copy is incomplete and was deleted")
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A damaged schema is damage, and no mistake in a statement.
func TestADamagedSchemaIsDamage(t *testing.T) {
	path, w := opened(t)
	require.NoError(t, w.Store.Close())
	edit(t, path, "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, 'marking', 'marxing') WHERE name = 'cases'")
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	err = s.View(t.Context(), func(r store.Reader) error {
		_, err := r.Cases(t.Context(), store.CaseFilter{})
		return err
	})
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "restore a backup")
	edit(t, path, "DROP TABLE migrations")
	_, err = sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrCorrupt)
}
