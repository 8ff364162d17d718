package verify

import (
	"fmt"
	"slices"
	"strings"
)

// report returns the report of an analysis, without warnings. It releases the states that were searched.
func report(l named, name string, j *analysis) Report {
	f := &findings{named: l, analysis: j}
	rep := Report{Net: name, States: j.states, Exhausted: j.limit, Findings: f.all()}
	dead := !slices.ContainsFunc(rep.Findings, func(x Finding) bool { return x.Code != DeadTask })
	switch {
	case j.sound:
		rep.Verdict = Sound
	case len(rep.Findings) > 0 && dead && l.weak():
		rep.Verdict = WeaklySound
	case len(rep.Findings) > 0:
		rep.Verdict = Unsound
	case j.search != nil && j.limit == NoLimit && j.search.Exact():
		rep.Verdict = Sound
	}
	j.release()
	return rep
}

// sentence joins parts with commas and a final "and".
func sentence(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// listed returns the names of elements for a sentence.
func listed(elements []Element) string {
	parts := make([]string, 0, maxListed+1)
	for i, e := range elements {
		if i == maxListed {
			parts = append(parts, fmt.Sprintf("%d more", len(elements)-maxListed))
			break
		}
		parts = append(parts, fmt.Sprintf("%q", e.Name))
	}
	return sentence(parts)
}
