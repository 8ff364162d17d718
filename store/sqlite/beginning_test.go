package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// A reader that comes while owners make a file, write it and close it finds no file, an empty one or a whole one, and never
// a damaged one. The moment in which the file is shorter than its first page says is short: nightly runs look for it longer.
func TestAReaderWhileTheFileIsMade(t *testing.T) {
	t.Parallel()
	rounds := testsize.Pick(2, 20, 2000)
	for range rounds {
		path := filepath.Join(t.TempDir(), "cases.db")
		ctx, cancel := context.WithCancel(t.Context())
		found := make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				s, err := sqlite.File(path).Open(ctx, store.Options{ReadOnly: true})
				if err == nil {
					err = s.Close()
				}
				none := errors.Is(err, store.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.Canceled)
				if err != nil && !none {
					found <- err
					return
				}
			}
			found <- nil
		}()
		for range 3 {
			s, err := sqlite.File(path).Open(t.Context(), store.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Idle(t.Context()))
			require.NoError(t, s.Close())
		}
		cancel()
		require.NoError(t, <-found)
	}
}
