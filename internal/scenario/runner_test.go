package scenario

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/sqlite"
)

var update = flag.Bool("update", false, "rewrite the outputs of the project's own scenario files")

// The project's own scenario files, and those of others where they lie beside the checkout, print what they say.
func TestScenarioFiles(t *testing.T) {
	for _, dir := range []string{"../../scenarios", "../../../shared/scenarios"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		require.NoError(t, err)
		for _, path := range files {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				runFile(t, path)
			})
		}
	}
}

func runFile(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := Parse(path, data)
	require.NoError(t, err)
	result, err := Run(context.Background(), f, sqlite.Memory())
	require.NoError(t, err)
	require.NoError(t, result.Broken)
	if *update && filepath.Dir(path) == "../../scenarios" {
		require.NoError(t, os.WriteFile(path, f.Rewrite(result.Outputs), 0o644))
		return
	}
	for _, m := range result.Mismatches {
		t.Errorf("%s: %v\n%s", m.Command.Pos, m.Command.Words, m.Diff)
	}
}
