package scenario

import (
	"cmp"
	"slices"

	"github.com/tasq-dev/tasq/net/verify"
)

// check verifies a workflow: "sound", "unknown", or one finding a line, sorted. If it is verbose, each finding is
// followed by the run that shows it, indented, or by what there is to say where no run can. Verification is bounded by
// states alone, so that the output is the same on every machine.
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

// shownBy is the run that shows a finding, or, for want of one, its text.
func shownBy(f verify.Finding) string {
	if f.Witness == nil {
		return f.Text
	}
	return f.Witness.String()
}
