package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
)

// sharedScenarios finds the scenario files of others: in the folder "scenarios" beside the one that TASQ_MODELS names,
// or in "shared/scenarios" beside this folder or one above it.
func sharedScenarios(t *testing.T) []string {
	var folders []string
	if models := os.Getenv("TASQ_MODELS"); models != "" {
		folders = append(folders, filepath.Join(filepath.Dir(models), "scenarios"))
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	for here != filepath.Dir(here) {
		folders = append(folders, filepath.Join(here, "shared", "scenarios"))
		here = filepath.Dir(here)
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
		require.NoError(t, err)
		if len(files) > 0 {
			return files
		}
	}
	t.Skip("no scenario files of others here; TASQ_MODELS may name the folder beside theirs")
	return nil
}

// Files that others recorded are read whole, every command and every net of them, and are written back as they were.
func TestScenariosOfOthers(t *testing.T) {
	for _, path := range sharedScenarios(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := scenario.Parse(path, text)
			require.NoError(t, err)
			require.Equal(t, strings.Count("\n"+string(text), "\n----\n"), len(f.Commands))
			var outputs [][]string
			for _, c := range f.Commands {
				outputs = append(outputs, c.Expected)
				a, err := c.Action()
				require.NoError(t, err)
				require.NotEmpty(t, c.Expected)
				if a.Verb == scenario.VerbDefine {
					workflows, err := c.Workflows()
					require.NoError(t, err)
					require.Equal(t, scenario.Format(workflows), scenario.Format(parse(t, scenario.Format(workflows))))
				}
			}
			require.Equal(t, string(text), string(f.Rewrite(outputs)))
		})
	}
}
