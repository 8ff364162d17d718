package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/store/sqlite"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// models finds an archive of the models that others drew: in the folder that TASQ_MODELS names, or in "shared/models"
// beside a folder above this one. The test is skipped if it is nowhere.
func models(t *testing.T, archive string) string {
	t.Helper()
	dirs := []string{os.Getenv("TASQ_MODELS")}
	here, err := os.Getwd()
	require.NoError(t, err)
	for ; here != filepath.Dir(here); here = filepath.Dir(here) {
		dirs = append(dirs, filepath.Join(here, "shared", "models"))
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, archive); dir != "" && exists(path) {
			return path
		}
	}
	t.Skipf("%s is absent: set TASQ_MODELS to the folder that holds it, or put it into ../shared/models", archive)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var archives = []struct{ name, what string }{
	{"ibm-a-b1.tar.gz", "IBM libraries A and B1 (PNML)"},
	{"yawl.tar.gz", "YAWL"},
	{"bpmn.tar.gz", "BPMN 2.0"},
}

// What docs/verification.md says of the models is what is found in them.
func TestModelsOfOthers(t *testing.T) {
	docs, err := os.ReadFile("../../../../docs/verification.md")
	require.NoError(t, err)
	for _, a := range archives {
		t.Run(a.name, func(t *testing.T) {
			files, nets, by := 0, 0, map[check.Verdict]int{}
			for _, f := range run(t, models(t, a.name)) {
				if f.Passed {
					continue
				}
				require.NoError(t, f.Err)
				files, nets = files+1, nets+len(f.Nets)
				for i := range f.Nets {
					by[f.Nets[i].Verdict()]++
				}
			}
			line := fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d |\n", a.what, files, nets, by[check.Sound],
				by[check.WeaklySound], by[check.Unsound], by[check.IllFormed], by[check.Unknown])
			require.Contains(t, string(docs), line)
		})
	}
}

func TestVerdictsOfTheIBMLibraries(t *testing.T) {
	archive := models(t, "ibm-a-b1.tar.gz")
	got, agree := compare(t, archive, run(t, archive)...)
	require.True(t, agree, got)
	require.Equal(t, "570 of 570 verdicts agree: 259 sound, 311 unsound\n", got)
}

// Every run that shows a finding in the models of others can be written as a scenario file, and the engine replays it.
// Each sixtieth file is tried, and all of them in the nightly form.
func TestWitnessesOfModelsOfOthers(t *testing.T) {
	every := testsize.Pick(180, 60, 1)
	replayed := 0
	for _, a := range archives {
		for i, f := range run(t, models(t, a.name)) {
			if i%every != 0 {
				continue
			}
			for i := range f.Nets {
				for _, finding := range f.Nets[i].Report.Findings {
					text, err := f.Nets[i].Scenario(finding)
					if finding.Witness == nil {
						require.ErrorIs(t, err, check.ErrNoWitness)
						continue
					}
					require.NoError(t, err, "%s: %s", f.Name, finding)
					file, err := scenario.Parse(f.Name, text)
					require.NoError(t, err)
					result, err := scenario.Run(t.Context(), file, sqlite.Memory())
					require.NoError(t, err)
					require.Empty(t, result.Mismatches, "%s: %s\n%s", f.Name, finding, text)
					require.NoError(t, result.Broken)
					replayed++
				}
			}
		}
	}
	t.Log(replayed, "witnesses replayed")
	require.Positive(t, replayed)
}

// The README shows what the command prints.
func TestREADMEShowsACheck(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	require.NoError(t, err)
	_, text := example(t, verify.ImproperCompletion)
	var b strings.Builder
	out := check.Text{W: &b}
	require.NoError(t, out.File(check.Read("claims.net", strings.NewReader(text), check.Options{Silence: check.WarningCodes()})))
	require.NoError(t, out.End())
	require.Contains(t, string(readme), "    $ tasq check --silence all claims.net\n    "+
		strings.ReplaceAll(strings.TrimRight(b.String(), "\n"), "\n", "\n    ")+"\n")
}
