package check_test

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pack writes an archive, with the files in the order of their names.
func pack(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	var w io.Writer = f
	if !strings.HasSuffix(path, ".tar") {
		zipped := gzip.NewWriter(f)
		defer func() { require.NoError(t, zipped.Close()) }()
		w = zipped
	}
	archive := tar.NewWriter(w)
	defer func() { require.NoError(t, archive.Close()) }()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}))
		_, err := io.WriteString(archive, files[name])
		require.NoError(t, err)
	}
}
