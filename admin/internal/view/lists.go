package view

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	caseWords = []string{"started", "completed", "failed", "canceled"}
	itemWords = []string{"initialized", "started", "completed", "failed", "canceled"}
	jobWords  = []string{"pending", "running", "waiting", "failed", "done", "canceled"}
	stepWords = []string{"waiting", "done", "failed", "canceled"}
)

func (s *Site) cases(r *Request) (*Page, error) {
	l := s.listing(r, "/cases", "Cases", "case", "key", "workflow", "state", "created", "ended", "part of", "input", "failure")
	q := query.Of(r.Form, r.Now)
	f := selection.ReadCases(q)
	counts, err := r.R.Counts(r)
	if err != nil {
		return nil, err
	}
	count := counter(counts, "case", r.Form.Get("workflow"))
	l.tabs("state", caseWords, count)
	names, err := workflowNames(r)
	if err != nil {
		return nil, err
	}
	l.filters("state", field{Name: "workflow", Label: "workflow", Options: names}, field{Name: "older", Label: "older than", Hint: "2h, 3d, or a time"},
		field{Name: "newer", Label: "newer than", Hint: "2h, 3d, or a time"}, field{Name: "root-only", Label: "root cases only", Options: []string{"true"}},
		field{Name: "suspended", Label: "suspended only", Options: []string{"true"}},
		field{Name: "code", Label: "code", Hint: "no-funds", None: "none"},
		field{Name: "key", Label: "key", Hint: "C-4711"}, field{Name: "label", Label: "label", Hint: "customer=ada"},
		field{Name: "payload", Label: "payload has", Hint: "text"}, field{Name: "case", Label: "case", Hint: "id"}, field{Name: "fingerprint", Label: "definition", Hint: "fingerprint"})
	missing, err := selection.FindMissing(r, r.R, s.Backend.Here())
	if err != nil {
		return nil, err
	}
	lack, err := missing.Workflow(r, r.R, f.Workflow, f.Fingerprint)
	if err != nil {
		return nil, err
	}
	if lack != "" {
		l.head.About = fmt.Sprintf("No open engine has workflow %s: its cases cannot be canceled or resumed until a program with it is open.", lack)
	}
	l.head.Buttons, l.table.Picks = s.buttons(r).ofCases(&f, lack), s.buttons(r).casePicks(&f)
	err = rows(l, q, func(p store.Page) ([]*state.Case, error) {
		if none(f.States, count) {
			return nil, nil
		}
		return f.Read(r, r.R, p, r.Mask)
	}, func(c *state.Case) string { return c.ID.String() }, func(c *state.Case) error {
		c = r.Mask.Case(c)
		part := text("")
		if !c.Parent.IsZero() {
			part = link(c.Label(), s.Link("/cases/"+c.Parent.String()))
		}
		id := c.ID.String()
		l.table.row(id, idLink(id, s.Link("/cases/"+id)), text(printable.Line(c.Key)), text(c.Workflow+version(c.Version)), stateOf(c.State.String()), at(c.Created), at(c.Ended),
			part, payload(c.Input), failure(c.Failure))
		if c.Parent.IsZero() && c.Workflow != bulk.Name {
			lack, err := missing.Case(r, r.R, c, workflow.KindResume)
			if err != nil || lack != nil {
				return err
			}
			l.table.tick(id)
		}
		return nil
	})
	return l.page("There are no cases yet. Start one from a program, or with:", startCommand), err
}

// startCommand is the command that an empty database proposes.
const startCommand = "tasq case start WORKFLOW --input '{}'"

// none reports whether the counts say that nothing is in the states that are asked for, which a query may find out by looking through all.
func none[S fmt.Stringer](states []S, count func(word string) (int64, bool)) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, func(s S) bool {
		n, _ := count(s.String())
		return n > 0
	})
}

func version(v string) string {
	if v == "" {
		return ""
	}
	return " " + v
}

// counter finds the number of things in a state, for a workflow or for all.
func counter(counts []store.Count, what, workflow string) func(string) (int64, bool) {
	return func(word string) (n int64, known bool) {
		for _, c := range counts {
			if c.What == what && c.State == word && (workflow == "" || c.Workflow == workflow) {
				n += c.N
			}
		}
		return n, true
	}
}

func workflowNames(r *Request) ([]string, error) {
	defs, err := r.R.Definitions(r)
	if err != nil {
		return nil, err
	}
	var names []string
	seen := make(map[string]bool)
	for _, d := range defs {
		if !seen[d.Name] {
			seen[d.Name] = true
			names = append(names, d.Name)
		}
	}
	return names, nil
}

func (s *Site) items(r *Request) (*Page, error) {
	l := s.listing(r, "/items", "Items", "item", "of", "workflow", "state", "attempt", "queue", "by", "created", "took", "input, output or failure")
	q := query.Of(r.Form, r.Now)
	f, of, search := q.Items(), q.Case(), q.Search()
	actions := itemWordsOf(f.States)
	l.head.Buttons = s.buttons(r).ofItems(q.Names(), actions)
	if len(actions) > 0 && f.Workflow != bulk.Name {
		l.table.Picks = s.buttons(r).picks(actions...)
	}
	counts, err := r.R.Counts(r)
	if err != nil {
		return nil, err
	}
	count := itemCounter(counts, r.Form.Get("workflow"), r.Form.Get("task"))
	l.tabs("state", itemWords, count)
	names, err := workflowNames(r)
	if err != nil {
		return nil, err
	}
	l.filters("state", field{Name: "workflow", Label: "workflow", Options: names}, field{Name: "task", Label: "task", Hint: "name"},
		field{Name: "queue", Label: "queue", Hint: "name", None: queueName("")}, field{Name: "code", Label: "failure code", Hint: "timeout", None: "none"},
		field{Name: "holder", Label: "holder", Hint: "name"}, field{Name: "attempt", Label: "attempt, at least", Hint: "2"}, field{Name: "older", Label: "older than", Hint: "2h, 3d, or a time"},
		field{Name: "newer", Label: "newer than", Hint: "2h, 3d, or a time"}, field{Name: "payload", Label: "payload has", Hint: "text"}, field{Name: "case", Label: "case", Hint: "id"})
	err = rows(l, q, func(p store.Page) (_ []*store.ItemRow, err error) {
		if f.Root, f.Case, err = query.Within(r, r.R, of); err != nil {
			return nil, err
		}
		states := f.States
		if f.Task != "" && len(states) == 0 {
			states = itemStates
		}
		if none(states, count) {
			return nil, nil
		}
		f.Page = p
		return store.SearchItems(r, store.ViewerOf(r.R), f, search, r.Mask.Item)
	}, func(it *store.ItemRow) string { return it.ID.String() }, func(it *store.ItemRow) error {
		s.itemRow(&l.table, r, r.Mask.Row(it), true)
		if it.State.Live() && it.Workflow != bulk.Name {
			l.table.tick(it.ID.String())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p := l.page("There are no work items yet. They are created when tasks are enabled. Start a case from a program, or with:", startCommand)
	causes, err := s.failedItems(r, f)
	if causes != nil {
		p.Parts = slices.Insert(p.Parts, len(p.Parts)-1, Part{ID: "causes", Template: "tablepart", Data: causes})
	}
	return p, err
}

// itemStates are all states of work items.
var itemStates = []workitem.State{workitem.Initialized, workitem.Started, workitem.Completed, workitem.Failed, workitem.Canceled}

func itemCounter(counts []store.Count, workflow, task string) func(string) (int64, bool) {
	return func(word string) (n int64, known bool) {
		for _, c := range counts {
			if c.What == "item" && c.State == word && (workflow == "" || c.Workflow == workflow) && (task == "" || c.Task == task) {
				n += c.N
			}
		}
		return n, true
	}
}

// itemRow adds a work item to a list; wide ones name the case.
func (s *Site) itemRow(t *Table, r *Request, it *store.ItemRow, wide bool) {
	id := it.ID.String()
	last := payload(it.Input)
	if len(it.Output) > 0 {
		last = payload(it.Output)
	}
	if it.Failure != nil {
		last = failure(it.Failure)
	}
	cells := []Cell{link(it.Label(), s.Link("/items/"+id))}
	if wide {
		cells = append(cells, idLink(it.Case.String(), s.Link("/cases/"+it.Case.String())), text(it.Workflow))
	}
	spent := took(it.Started, it.Ended)
	if it.State == workitem.Started {
		spent = Cell{Kind: "so far", Time: it.Started, Num: true}
	}
	cells = append(cells, stateOf(it.State.String()), attempt(it.Attempt), inQueue(it.Queue), text(it.By), at(it.Created), spent, last)
	t.row(id, cells...)
}

func (s *Site) jobs(r *Request) (*Page, error) {
	l := s.listing(r, "/jobs", "Jobs", "job", "kind", "of", "case", "state", "due", "attempt", "queue", "worker", "failure")
	l.head.About = "Work for workers, timers, and waits before a retry."
	q := query.Of(r.Form, r.Now)
	f, of := q.Jobs(), q.Case()
	l.tabs("state", jobWords, unknown)
	names, err := workflowNames(r)
	if err != nil {
		return nil, err
	}
	l.filters("state", field{Name: "kind", Label: "kind", Options: query.JobKinds}, field{Name: "workflow", Label: "workflow", Options: names},
		field{Name: "task", Label: "task", Hint: "name"}, field{Name: "queue", Label: "queue", Hint: "name", None: queueName("")},
		field{Name: "due", Label: "due within", Hint: "0s, 5m, 2h"}, field{Name: "case", Label: "case", Hint: "id"})
	err = rows(l, q, func(p store.Page) (_ []*state.Job, err error) {
		if f.Root, f.Case, err = query.Within(r, r.R, of); err != nil {
			return nil, err
		}
		f.Page = p
		return r.R.Jobs(r, f)
	}, func(j *state.Job) string { return j.ID.String() }, func(j *state.Job) error {
		s.jobRow(&l.table, r.Mask.Job(j), true)
		return nil
	})
	return l.page("There are no jobs yet. They are created for tasks with a function or a timer. Start a case from a program, or with:", startCommand), err
}

func (s *Site) jobRow(t *Table, j *state.Job, wide bool) {
	id := j.ID.String()
	of := text(j.Task)
	if !j.Item.IsZero() {
		of = link(orElse(j.Task, "item"), s.Link("/items/"+j.Item.String()))
	}
	cells := []Cell{idLink(id, s.Link("/jobs/"+id)), text(joined(j.Kind, j.Name)), of}
	if wide {
		cells = append(cells, idLink(j.Case.String(), s.Link("/cases/"+j.Case.String())))
	}
	due := text("")
	if j.State.Live() {
		due = at(j.Due)
	}
	t.row(id, append(cells, stateOf(j.State.String()), due, attempt(j.Attempt), inQueue(j.Queue), text(j.Owner), failure(j.Failure))...)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func joined(a, b string) string {
	if b == "" {
		return a
	}
	return a + " " + b
}

func (s *Site) steps(r *Request) (*Page, error) {
	l := s.listing(r, "/steps", "Steps", "step", "kind", "case", "state", "waits for", "due", "attempt", "result or failure")
	q := query.Of(r.Form, r.Now)
	f, of := q.Steps(), q.Case()
	l.tabs("state", stepWords, unknown)
	l.filters("state", field{Name: "kind", Label: "kind", Options: []string{"do", "tx", "sleep", "event", "case", "token", "choice", "value"}},
		field{Name: "target", Label: "event, topic or workflow", Hint: "name"}, field{Name: "case", Label: "case", Hint: "id"})
	err := rows(l, q, func(p store.Page) (_ []*workitem.Step, err error) {
		if f.Root, f.Case, err = query.Within(r, r.R, of); err != nil {
			return nil, err
		}
		f.Page = p
		return r.R.Steps(r, f)
	}, func(st *workitem.Step) string { return st.ID.String() }, func(st *workitem.Step) error {
		s.stepRow(&l.table, r.Mask.Step(st), true)
		return nil
	})
	p := l.page("There are no steps yet. Functions record them: calls, waits for events, sleeps. For an example:", "tasq demo onboarding -serve")
	return p, err
}

func (s *Site) stepRow(t *Table, st *workitem.Step, wide bool) {
	id := st.ID.String()
	result := payload(st.Result)
	switch {
	case st.Limited():
		result = text("waits for " + st.Needs())
	case st.Failure != nil:
		result = failure(st.Failure)
	}
	target := text(st.Target)
	if !st.Child.IsZero() {
		target = link(orElse(st.Target, "case"), s.Link("/cases/"+st.Child.String()))
	}
	due := text("")
	if !st.State.Final() && !st.Limited() {
		due = at(st.Due)
	}
	cells := []Cell{link(st.Name, s.Link("/jobs/"+st.Job.String())), text(string(st.Kind))}
	if wide {
		cells = append(cells, idLink(st.Case.String(), s.Link("/cases/"+st.Case.String())))
	}
	t.row(id, append(cells, stateOf(st.State.String()), target, due, attempt(st.Attempt), result)...)
}

func (s *Site) events(r *Request) (*Page, error) {
	l := s.listing(r, "/events", "Events", "event", "case", "sent", "by", "taken", "value")
	l.head.About = "Events that were sent to cases. An event that no step has taken is kept for the first step that waits for it."
	l.head.Buttons = s.buttons(r).button(nil, "Broadcast…", "broadcast", "")
	q := query.Of(r.Form, r.Now)
	f, of := q.Messages(), q.Case()
	l.filters("", field{Name: "name", Label: "name", Hint: "paid"}, field{Name: "unread", Label: "not taken", Options: []string{"true"}},
		field{Name: "case", Label: "case", Hint: "id"})
	err := rows(l, q, func(p store.Page) (_ []*state.Message, err error) {
		if f.Root, f.Case, err = query.Within(r, r.R, of); err != nil {
			return nil, err
		}
		f.Page = p
		return r.R.Messages(r, f)
	}, func(m *state.Message) string { return m.ID.String() }, func(m *state.Message) error {
		s.eventRow(&l.table, r.Mask.Message(m), true)
		return nil
	})
	return l.page("There are no events yet. They are sent by programs, by webhooks, or with:", "tasq event send CASE NAME --value '{}'"), err
}

func (s *Site) eventRow(t *Table, m *state.Message, wide bool) {
	name := m.Name
	if m.Topic {
		name += " (topic)"
	}
	cells := []Cell{text(printable.Line(name))}
	if wide {
		cells = append(cells, idLink(m.Case.String(), s.Link("/cases/"+m.Case.String())))
	}
	t.row(m.ID.String(), append(cells, at(m.Sent), text(m.By), at(m.Taken), payload(m.Value))...)
}
