package view

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

type body struct {
	Fields   []Cell
	Failure  string
	Payloads []payloadPart
}

func failureText(f *workitem.Failure) string {
	if f == nil {
		return ""
	}
	return printable.Lines(f.String())
}

// pathID parses an id in a path.
func pathID[T any](r *Request, what string, id *workitem.Key[T]) error {
	if err := id.UnmarshalText([]byte(r.PathValue("id"))); err != nil || id.IsZero() {
		return fmt.Errorf("%s %q: %w", what, r.PathValue("id"), store.ErrNotFound)
	}
	return nil
}

// item is the page of a work item with all its attempts.
func (s *Site) item(r *Request) (*Page, error) {
	var id workitem.ID
	if err := pathID(r, "work item", &id); err != nil {
		return nil, err
	}
	it, err := findItem(r, id)
	if err != nil {
		return nil, err
	}
	chain, err := attempts(r, it)
	if err != nil {
		return nil, err
	}
	open, err := r.R.Jobs(r, store.JobFilter{Item: id, Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}})
	if err != nil {
		return nil, err
	}
	parts := s.downloads(itemParts(it.Item, r.Mask.Item(it.Item)), "item", id.String())
	it = r.Mask.Row(it)
	of, err := caseOf(r, nil, it.Case)
	if err != nil {
		return nil, err
	}
	missing, err := s.itemLack(r, of)
	if err != nil {
		return nil, err
	}
	var resume []Link
	if missing == nil && it.State == workitem.Initialized {
		if missing, resume, err = s.suspended(r, of); err != nil {
			return nil, err
		}
	}
	top := caseHead{Title: it.Label(), ID: id.String(), State: stateOf(it.State.String()), JSON: s.Link("/api/v1/items/" + id.String()),
		Crumbs: []Link{{Text: "Cases", Href: s.Link("/cases")}, {Text: it.Workflow, Href: s.Link("/workflows/" + escapePath(it.Workflow))},
			s.crumb(of), {Text: it.Label()}},
		Buttons: append(resume, s.buttons(r).lacking(missing).ofItem(it.Item, len(open) > 0)...)}
	if it.State.Live() || it.State == workitem.Failed && it.Successor.IsZero() {
		top.Lack = missing
	}
	b := body{Failure: failureText(it.Failure), Fields: []Cell{labeled("case", idLink(it.Case.String(), s.Link("/cases/"+it.Case.String()))), labeled("key", text(printable.Line(of.Key))),
		labeled("task", text(it.Task)), labeled("attempt", number(int64(it.Attempt))), labeled("retry policy changed by a repair", text(retryOf(it.Item))), labeled("queue", text(queueName(it.Queue))),
		labeled("priority", number(int64(it.Priority))), labeled("by", text(it.By)), labeled("created", at(it.Created)), labeled("due", at(it.Due)),
		labeled("started", at(it.Started)), labeled("ended", at(it.Ended)), labeled("took", took(it.Started, it.Ended))},
		Payloads: parts}
	b.Fields = slices.DeleteFunc(b.Fields, func(c Cell) bool { return c.Text == "" && c.Time.IsZero() })
	page := []Part{{ID: "head", Template: "casehead", Data: top}, {ID: "body", Template: "itembody", Data: b}}
	if len(chain) > 1 {
		t := &Table{ID: "attempts", Title: "Attempts", Head: []string{"item", "state", "attempt", "queue", "by", "created", "took", "input, output or failure"}}
		for _, a := range chain {
			s.itemRow(t, r, r.Mask.Row(a), false)
		}
		page = append(page, Part{ID: "attempts", Template: "tablepart", Data: t})
	}
	jobs, steps, err := s.workOf(r, id)
	if err != nil {
		return nil, err
	}
	page = append(page, Part{ID: "jobs", Template: "tablepart", Data: jobs})
	if len(jobs.Rows) > 0 { // without a job there is no step
		page = append(page, Part{ID: "steps", Template: "tablepart", Data: steps})
	}
	return &Page{Title: it.Label(), Nav: "Items", Live: true, Parts: page}, nil
}

// retryOf describes the retry policy that a repair gave an item; "" if it has none.
func retryOf(it *workitem.Item) string {
	own, err := activities.RetryOfItem(it)
	if err != nil || own == nil {
		return ""
	}
	return own.String()
}

// workOf returns the jobs and the steps of an item.
func (s *Site) workOf(r *Request, id workitem.ID) (jobs, steps *Table, err error) {
	jobs = &Table{ID: "jobs", Title: "Jobs", Head: []string{"job", "kind", "of", "state", "due", "attempt", "queue", "worker", "failure"},
		Empty: &Empty{Text: "The item has no job: it is for a person, or ended before a job was created."}}
	steps = &Table{ID: "steps", Title: "Steps", Head: []string{"step", "kind", "state", "waits for", "due", "attempt", "result or failure"},
		Empty: &Empty{Text: "The work of this item has recorded no steps."}}
	found, err := r.R.Jobs(r, store.JobFilter{Item: id, Page: store.Page{Limit: pageSize}})
	for _, j := range found {
		s.jobRow(jobs, r.Mask.Job(j), false)
	}
	if err != nil {
		return nil, nil, err
	}
	recorded, err := r.R.Steps(r, store.StepFilter{Item: id, Page: store.Page{Limit: 4 * pageSize}})
	for _, st := range recorded {
		s.stepRow(steps, r.Mask.Step(st), false)
	}
	return jobs, steps, err
}

func findItem(r *Request, id workitem.ID) (*store.ItemRow, error) {
	found, err := r.R.Items(r, store.ItemFilter{ID: id})
	if err == nil && (len(found) == 0 || id.IsZero()) { // a filter ignores the zero id
		err = fmt.Errorf("work item %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// maxAttempts bounds the number of attempts that are shown.
const maxAttempts = 100

// attempts returns the predecessors of an item, the item, and its successors, oldest first.
func attempts(r *Request, it *store.ItemRow) ([]*store.ItemRow, error) {
	chain := []*store.ItemRow{it}
	for before := it.Predecessor; !before.IsZero() && len(chain) < maxAttempts; {
		p, err := findItem(r, before)
		if err != nil {
			return nil, err
		}
		chain = append(chain, p)
		before = p.Predecessor
	}
	slices.Reverse(chain)
	for after := it.Successor; !after.IsZero() && len(chain) < maxAttempts; {
		n, err := findItem(r, after)
		if err != nil {
			return nil, err
		}
		chain = append(chain, n)
		after = n.Successor
	}
	return chain, nil
}

// crumb returns a link to a case, named by its business key if it has one.
func (s *Site) crumb(c *state.Case) Link {
	name := short(c.ID.String())
	if c.Key != "" {
		name = printable.Line(c.Key)
	}
	return Link{Text: name, Href: s.Link("/cases/" + c.ID.String())}
}

// job is the page of a job with its steps.
func (s *Site) job(r *Request) (*Page, error) {
	var id workitem.JobID
	if err := pathID(r, "job", &id); err != nil {
		return nil, err
	}
	found, err := r.R.Jobs(r, store.JobFilter{ID: id})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("job %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	j := r.Mask.Job(found[0])
	of, err := caseOf(r, nil, j.Case)
	if err != nil {
		return nil, err
	}
	top := caseHead{Title: "job " + joined(j.Kind, j.Name), ID: id.String(), State: stateOf(j.State.String()), JSON: s.Link("/api/v1/jobs/" + id.String()),
		Crumbs: []Link{{Text: "Jobs", Href: s.Link("/jobs")}, s.crumb(of), {Text: joined(j.Kind, j.Name)}}, Buttons: s.buttons(r).ofJob(j)}
	b := body{Failure: failureText(j.Failure), Fields: []Cell{labeled("case", idLink(j.Case.String(), s.Link("/cases/"+j.Case.String()))), labeled("key", text(printable.Line(of.Key))),
		labeled("task", text(j.Task)), labeled("attempt", attempt(j.Attempt)), labeled("crashes", number(int64(j.Crashes))),
		labeled("queue", text(queueName(j.Queue))), labeled("worker", text(j.Owner)), labeled("lease", at(j.Lease)), labeled("due", at(j.Due)),
		labeled("created", at(j.Created)), labeled("ended", at(j.Ended))},
		Payloads: s.downloads(jobParts(found[0], j), "job", id.String())}
	if !j.Item.IsZero() {
		b.Fields = append(b.Fields, labeled("item", idLink(j.Item.String(), s.Link("/items/"+j.Item.String()))))
	}
	b.Fields = slices.DeleteFunc(b.Fields, func(c Cell) bool { return c.Text == "" && c.Time.IsZero() })
	steps := &Table{ID: "steps", Title: "Steps", Head: []string{"step", "kind", "state", "waits for", "due", "attempt", "result or failure"},
		Empty: &Empty{Text: "The job has recorded no steps."}}
	recorded, err := r.R.Steps(r, store.StepFilter{Job: id, Page: store.Page{Limit: 4 * pageSize}})
	for _, st := range recorded {
		s.stepRow(steps, r.Mask.Step(st), false)
	}
	return &Page{Title: "Job", Nav: "Jobs", Live: true, Parts: []Part{{ID: "head", Template: "casehead", Data: top},
		{ID: "body", Template: "itembody", Data: b}, {ID: "steps", Template: "tablepart", Data: steps}}}, err
}

// suspended returns why an item of a case cannot be started, if the case or one above it is suspended, and the button that resumes that one; nil if
// none is.
func (s *Site) suspended(r *Request, of *state.Case) (*lack, []Link, error) {
	for c := of; ; {
		if c.Suspended != nil && !c.State.Final() {
			text := fmt.Sprintf("Case %s of %s is suspended: the item cannot be started until the case is resumed.", short(c.ID.String()), c.Workflow)
			return &lack{Text: text, Some: map[string]bool{"item-start": true}}, s.buttons(r).button(nil, "Resume the case…", "resume", c.ID.String()), nil
		}
		if c.Parent.IsZero() {
			return nil, nil, nil
		}
		var err error
		if c, err = caseOf(r, nil, c.Parent); err != nil {
			return nil, nil, err
		}
	}
}
