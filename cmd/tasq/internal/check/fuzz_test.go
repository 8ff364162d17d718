package check_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/internal/scenario"
)

// Whatever the bytes, a file is checked and reported in every form, and the runs that show its findings can be written.
func FuzzCheck(f *testing.F) {
	for _, x := range check.Explanations() {
		f.Add(x.Example)
	}
	f.Add("define\n" + sound + "----\nok\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := check.Read("fuzz", strings.NewReader(text), check.Options{States: 300})
		require.NotEmpty(t, file.Verdict().String())
		out, sarif := check.Text{W: io.Discard, Verbose: true}, check.SARIF{}
		require.NoError(t, out.File(file))
		require.NoError(t, out.End())
		require.NoError(t, check.JSON{W: io.Discard}.File(file))
		require.NoError(t, sarif.File(file))
		require.NoError(t, sarif.Write(io.Discard))
		for i := range file.Nets {
			for _, finding := range file.Nets[i].Report.Findings {
				written, err := file.Nets[i].Scenario(finding)
				if err != nil {
					require.True(t, errors.Is(err, check.ErrNoWitness) || strings.Contains(err.Error(), "can be written"), err)
					continue
				}
				_, err = scenario.Parse("fuzz", written)
				require.NoError(t, err)
			}
		}
	})
}
