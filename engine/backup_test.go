package engine_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A copy of an engine's database has what was acknowledged before, writes over nothing, and leaves nothing behind that is
// not whole.
func TestABackupOfAnEngine(t *testing.T) {
	for name, opener := range map[string]store.Opener{
		"file":   sqlite.File(filepath.Join(t.TempDir(), "cases.db")),
		"memory": sqlite.Memory(),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, folder := t.Context(), t.TempDir()
			a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) { return n + 1, nil }, builder.Keep(builder.Forever))
			e := enginetest.Open(t, opener, engine.Config{}, a)
			run, err := a.Run(ctx, e, 1)
			require.NoError(t, err)
			e.Drain()
			to := filepath.Join(folder, "copy.db")
			require.NoError(t, e.Backup(ctx, to))
			require.ErrorIs(t, e.Backup(ctx, to), fs.ErrExist)

			_, err = a.Run(ctx, e, 2)
			require.NoError(t, err, "the engine goes on")
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			require.ErrorIs(t, e.Backup(canceled, filepath.Join(folder, "other.db")), context.Canceled)
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Len(t, left, 1, "of a copy that was ended nothing is left")

			again := enginetest.Open(t, sqlite.File(to), engine.Config{}, a)
			got, err := run.Result(ctx, again)
			require.NoError(t, err)
			require.Equal(t, 2, got)
		})
	}
}

// A store in memory is still there when its engine is closed, but has no owner any more.
func TestAClosedEngineMakesNoBackup(t *testing.T) {
	for name, opener := range map[string]store.Opener{
		"file":   sqlite.File(filepath.Join(t.TempDir(), "cases.db")),
		"memory": sqlite.Memory(),
	} {
		e, err := engine.Open(t.Context(), opener)
		require.NoError(t, err)
		require.NoError(t, e.Close())
		to := filepath.Join(t.TempDir(), "copy.db")
		require.ErrorIs(t, e.Backup(t.Context(), to), engine.ErrClosed, name)
		require.NoFileExists(t, to, name)
	}
}

// uncopied is a store that cannot be copied while it is used.
type uncopied struct{ store.Opener }

// Open implements store.Opener.
func (o uncopied) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	s, err := o.Opener.Open(ctx, opts)
	return struct{ store.Store }{s}, err
}

func TestABackupOfAStoreThatCannotBeCopied(t *testing.T) {
	e := enginetest.Open(t, uncopied{sqlite.Memory()}, engine.Config{})
	require.ErrorContains(t, e.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")), "use the means of its database")
}
