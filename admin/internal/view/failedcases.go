package view

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// maxFailed bounds the number of failed cases that are read to group them.
const maxFailed = 1000

// failedGroup counts the root cases of a workflow that failed with the same code.
type failedGroup struct {
	workflow, code string
	n              int
	message        string // of the case that failed last
	first, last    time.Time
}

// failedCases is the table of the failed root cases by cause, the largest group first; nil if there are none. The filter is that of the
// incidents on the same page.
func (s *Site) failedCases(r *Request, f store.IncidentFilter) (*Table, error) {
	if f.Task != nil && *f.Task != "" || f.Kind != "" { // a case has no task and no kind
		return nil, nil
	}
	found, err := r.R.Cases(r, store.CaseFilter{Workflow: f.Workflow, Code: f.Code, Before: f.Before, Since: f.Since, Key: f.Key, Labels: f.Labels, Root: f.Root, RootOnly: true,
		States: []state.CaseState{state.CaseFailed}, Page: store.Page{Desc: true, Limit: maxFailed + 1}})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	t := &Table{ID: "failed", Title: "Failed cases by cause", Head: []string{"cases", "workflow", "cause", "first", "last"}}
	if len(found) > maxFailed {
		found = found[:maxFailed]
		t.Note = fmt.Sprintf("Only the newest %s failed cases are counted.", thousands(maxFailed))
	}
	for _, g := range groupFailed(r, found) {
		href := s.listLink("/cases", url.Values{"state": {"failed"}, "root-only": {"true"}, "workflow": {g.workflow}, "code": {g.code}})
		t.row(g.workflow+" "+g.code, link(counted(g.n, "case"), href), text(g.workflow), Cell{Kind: "bad", Text: g.cause()}, at(g.first), at(g.last))
	}
	return t, nil
}

func groupFailed(r *Request, found []*state.Case) (groups []*failedGroup) {
	type key struct{ workflow, code string }
	byCause := make(map[key]*failedGroup)
	for _, c := range found {
		k, message := key{c.Workflow, ""}, ""
		if failure := r.Mask.Case(c).Failure; failure != nil {
			k.code, message = failure.Code, failure.Message
		}
		g := byCause[k]
		if g == nil {
			g = &failedGroup{workflow: k.workflow, code: k.code, first: c.Ended}
			byCause[k] = g
			groups = append(groups, g)
		}
		g.n++
		if !c.Ended.Before(g.last) {
			g.last, g.message = c.Ended, message
		}
		if c.Ended.Before(g.first) {
			g.first = c.Ended
		}
	}
	slices.SortStableFunc(groups, func(a, b *failedGroup) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.workflow, b.workflow), cmp.Compare(a.code, b.code))
	})
	return groups
}

// cause is the code, if there is one, with the message of the case that failed last.
func (g *failedGroup) cause() string {
	text := printable.Line(printable.Brief([]byte(g.message), 200))
	switch {
	case text == "" && g.code == "":
		return "no code"
	case text == "":
		return g.code
	case g.code == "":
		return text
	}
	return g.code + ": " + text
}
