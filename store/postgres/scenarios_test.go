package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store/postgres"
)

// Every scenario file prints on PostgreSQL what it prints in memory, and leaves a whole database. The usual form takes one of
// 24, the long one each sixth, the nightly one all.
func TestScenarios(t *testing.T) {
	t.Parallel()
	var files []string
	require.NoError(t, filepath.WalkDir("../../scenarios", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".txt") {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files)
	for i, path := range files {
		if i%testsize.Pick(24, 6, 1) != 0 {
			continue // each opens an engine at each definition
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := scenario.Parse(path, text)
			require.NoError(t, err)
			result, err := scenario.Run(t.Context(), f, postgres.Open(prepared.Database(t)))
			require.NoError(t, err)
			for _, m := range result.Mismatches {
				t.Errorf("%s:%d: %s\n%s", path, m.Command.Pos.Line, m.Diff, m.Why)
			}
			require.NoError(t, result.Broken)
		})
	}
}
