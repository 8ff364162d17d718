package model

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder with too much in it, such as the root of a file system, is an error that names the folder, not a walk without end.
func TestAFolderHasABound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b", "c", "d.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	list := func(most int) (names []string, failed error) {
		for path, err := range within(dir, most, func(path string) bool { return filepath.Ext(path) == ".txt" }) {
			if failed = errors.Join(failed, err); err == nil {
				names = append(names, filepath.Base(path))
			} else {
				require.Equal(t, dir, path)
			}
		}
		return names, failed
	}
	names, err := list(5) // with the folder itself
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "d.txt"}, names)
	names, err = list(4)
	require.ErrorIs(t, err, ErrTooMany)
	require.Equal(t, []string{"a.txt"}, names)
}
