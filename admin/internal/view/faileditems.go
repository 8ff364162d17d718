package view

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// maxCauses bounds the number of causes of failed items that are listed; maxFailed bounds the items that are read for them.
const maxCauses = 20

// failedItems is the table of the work items that failed for good by task and failure code, the largest group first, for the list of failed
// items; nil beside another list, and if there are none. f is the filter of the list.
func (s *Site) failedItems(r *Request, f store.ItemFilter) (*Table, error) {
	if !slices.Equal(f.States, []workitem.State{workitem.Failed}) || !f.Root.IsZero() || !f.Case.IsZero() || f.Attempt > 0 || f.Holder != "" || f.Queue != nil ||
		f.Code != nil && *f.Code == "" || r.Form.Get("payload") != "" || r.Form.Has("cursor") {
		return nil, nil
	}
	filter := store.FailureFilter{Workflow: f.Workflow, Task: f.Task, Since: f.Since, Before: f.Before, Max: maxFailed}
	if f.Code != nil {
		filter.Code = *f.Code
	}
	groups, all, err := store.Failures(r, store.ViewerOf(r.R), filter)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	t := &Table{ID: "causes", Title: "Failed for good, by cause", Head: []string{"items", "workflow", "task", "failure code", "first", "last", "latest item", "incidents", ""},
		Note: "Failed attempts that a later one has replaced are not counted here; the lists have them, too."}
	if !all {
		t.Note += fmt.Sprintf(" Only the newest %s failed attempts are examined; tasq failures examines more.", thousands(maxFailed))
	}
	if len(groups) > maxCauses {
		t.Note += fmt.Sprintf(" The %d most frequent of %d causes are listed.", maxCauses, len(groups))
		groups = groups[:maxCauses]
	}
	open, err := s.openByCause(r, filter)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		list := url.Values{"state": {"failed"}, "workflow": {g.Workflow}, "task": {g.Task}, "code": {g.Code}}
		for _, name := range []string{"older", "newer"} {
			if r.Form.Has(name) {
				list[name] = r.Form[name]
			}
		}
		c := cause{g.Workflow, g.Task, g.Code}
		incidents, retry, err := s.decisions(r, c, open[c])
		if err != nil {
			return nil, err
		}
		id := g.Item.String()
		t.row(g.Workflow+" "+g.Task+" "+g.Code, link(thousands(int64(g.N)), s.listLink("/items", list)), text(g.Workflow), text(g.Task), Cell{Kind: "bad", Text: orElse(g.Code, "no code")},
			at(g.First), at(g.Last), idLink(id, s.Link("/items/"+id)), incidents, retry)
	}
	return t, nil
}

// cause is a task of a workflow and the code of its failures.
type cause struct{ workflow, task, code string }

// openByCause groups the open incidents of the workflow and task of a filter.
func (s *Site) openByCause(r *Request, f store.FailureFilter) (map[cause][]*openHead, error) {
	of := store.IncidentFilter{Workflow: f.Workflow}
	if f.Task != "" {
		of.Task = &f.Task
	}
	heads, _, err := s.openHeads(r, of)
	open := make(map[cause][]*openHead)
	for _, h := range heads {
		c := cause{h.Workflow, h.Task, h.Code}
		open[c] = append(open[c], h)
	}
	return open, err
}

// decisions returns a link to the incidents of a cause, which wait for a decision, and the button that retries all of them.
func (s *Site) decisions(r *Request, c cause, open []*openHead) (incidents, retry Cell, err error) {
	if len(open) == 0 {
		return text(""), text(""), nil
	}
	incidents = link(counted(len(open), "incident"), s.listLink("/incidents", url.Values{"workflow": {c.workflow}, "task": {c.task}, "code": {c.code}}))
	first, err := store.IncidentsByID(r, r.R, []workitem.JobID{open[0].ID})
	if err != nil || len(first) == 0 {
		return incidents, text(""), err
	}
	g := &group{Workflow: c.workflow, Task: c.task, Kind: open[0].Kind, Code: c.code, shown: []incident{{Incident: first[0]}}}
	if words := g.words(); len(words) > 0 {
		for _, l := range s.buttons(r).ofGroup(g, words[:1], nil) {
			retry = Cell{Kind: "action", Text: l.Text, Href: l.Href}
		}
	}
	return incidents, retry, nil
}
