package scenario

import (
	"cmp"
	"slices"

	"github.com/tasq-dev/tasq/net/verify"
)

// check verifies a workflow and returns "sound", "unknown", or a line for each finding, sorted. If verbose, each
// finding is followed by its witness, indented, or by its text if it has none. Verification is bounded by states only,
// so that the output is the same on every machine.
func (r *runner) check(a Action) ([]string, error) {
	d := r.known[a.Workflow]
	if d == nil {
		return nil, undefined(a.Workflow)
	}
	rep := verify.Net(d.Net, verify.Options{})
	if len(rep.Findings) == 0 {
		return []string{rep.Verdict.String()}, nil
	}
	findings := slices.Clone(rep.Findings)
	slices.SortStableFunc(findings, func(a, b verify.Finding) int { return cmp.Compare(a.String(), b.String()) })
	var lines []string
	for _, f := range findings {
		lines = append(lines, f.String())
		if a.Verbose {
			lines = append(lines, "  "+shownBy(f))
		}
	}
	return lines, nil
}

// shownBy returns the witness of a finding, or its text if it has none.
func shownBy(f verify.Finding) string {
	if f.Witness == nil {
		return f.Text
	}
	return f.Witness.String()
}
