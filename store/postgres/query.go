package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// conditions collects the terms of a WHERE clause. A "$" in a term stands for its value. States are written out, so that the
// server sees that a partial index serves.
type conditions struct {
	terms []string
	args  []any
}

func (w *conditions) add(term string, value any) {
	w.args = append(w.args, value)
	w.terms = append(w.terms, strings.ReplaceAll(term, "$", "$"+strconv.Itoa(len(w.args))))
}

func (w *conditions) plain(term string) { w.terms = append(w.terms, term) }

// addID adds the term unless the id is zero.
func addID[T any](w *conditions, term string, id workitem.Key[T]) {
	if !id.IsZero() {
		w.add(term, [16]byte(id))
	}
}

// addRoots adds the term unless there are no root cases.
func (w *conditions) addRoots(column string, roots []workitem.CaseID) {
	if roots != nil {
		w.add(column+" = ANY($)", uuids(roots))
	}
}

func (w *conditions) addText(term, value string) {
	if value != "" {
		w.add(term, value)
	}
}

// addTimes selects what was created between two times.
func (w *conditions) addTimes(column string, since, before time.Time) {
	if !before.IsZero() {
		w.add(column+" < $", state.Micros(before))
	}
	if !since.IsZero() {
		w.add(column+" >= $", state.Micros(since))
	}
}

// addStates selects states; live is the term of the partial indexes, added if it is implied.
func addStates[S interface {
	comparable
	String() string
}](w *conditions, column string, states []S, isLive func(S) bool, live string) (onlyLive bool) {
	if len(states) == 0 {
		return false
	}
	words := make([]string, len(states))
	onlyLive = true
	for i, s := range states {
		words[i] = "'" + s.String() + "'"
		onlyLive = onlyLive && isLive(s)
	}
	if onlyLive {
		w.plain(live)
	}
	if len(words) == 1 {
		w.plain(column + " = " + words[0])
	} else {
		w.plain(column + " IN (" + strings.Join(words, ", ") + ")")
	}
	return onlyLive
}

// page adds the cursor, and returns the end of the statement for rows in the order of the column of ids.
func (w *conditions) page(p store.Page, column string) string {
	compare, order := " > ", ""
	if p.Desc {
		compare, order = " < ", " DESC"
	}
	w.addText(column+compare+"$::text::uuid", p.After)
	return " ORDER BY " + column + order + w.limit(p.Limit)
}

func (w *conditions) limit(n int) string {
	if n <= 0 {
		n = store.DefaultLimit
	}
	return " LIMIT " + strconv.Itoa(n)
}

func (w *conditions) where() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

// Cases implements [store.Reader].
func (r *reader) Cases(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	var w conditions
	addID(&w, "c.id = $", f.ID)
	addID(&w, "c.root = $", f.Root)
	w.addRoots("c.root", f.Roots)
	addStates(&w, "c.state", f.States, func(s state.CaseState) bool { return s == state.CaseStarted }, "c.state = 'started'")
	w.addText("c.workflow = $", f.Workflow)
	w.addText("c.fingerprint = $", f.Fingerprint)
	if f.RootOnly {
		w.plain("c.parent IS NULL")
	}
	w.addTimes("c.created", f.Since, f.Before)
	end := ""
	if f.Removable.IsZero() {
		end = w.page(f.Page, "c.id")
	} else {
		end = w.removable(f)
	}
	var all []*state.Case
	err := r.c.each("SELECT "+tables.Cases.List("c.")+" FROM @.cases c"+w.where()+end, w.args, func(row *tables.Row) error {
		c, err := readCase(row, r.c, r.nets)
		all = append(all, c)
		return err
	})
	return all, err
}

// removable selects what may be removed, and returns the end of the statement for the order in which it should be.
func (w *conditions) removable(f store.CaseFilter) string {
	w.add("c.keep_until <= $", state.Micros(f.Removable))
	w.plain("NOT EXISTS (SELECT FROM @.jobs j WHERE j.root = c.id AND (j." + liveJob + " OR j.state = 'failed' AND j.detached))")
	compare, order := ">", ""
	if f.Desc {
		compare, order = "<", " DESC"
	}
	w.addText("(c.keep_until, c.id) "+compare+" (SELECT keep_until, id FROM @.cases WHERE id = $::text::uuid)", f.After)
	return " ORDER BY c.keep_until" + order + ", c.id" + order + w.limit(f.Limit)
}

// Items implements [store.Reader].
func (r *reader) Items(_ context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	return queryItems(r.c, f)
}

func queryItems(c *conn, f store.ItemFilter) ([]*store.ItemRow, error) {
	var w conditions
	addID(&w, "i.id = $", f.ID)
	addID(&w, "i.case_id = $", f.Case)
	if !f.Case.IsZero() { // there is no index by case alone
		addID(&w, "i.root = (SELECT root FROM @.cases WHERE id = $)", f.Case)
	}
	addID(&w, "i.root = $", f.Root)
	w.addRoots("i.root", f.Roots)
	addStates(&w, "i.state", f.States, workitem.State.Live, "i."+liveItem)
	w.addText("c.workflow = $", f.Workflow)
	w.addText("i.task = $", f.Task)
	if f.Queue != nil {
		w.add("i.queue = $", *f.Queue)
	}
	if f.Attempt > 0 {
		w.add("i.attempt >= $", f.Attempt)
	}
	w.addText("i.failure::json ->> 'code' = $", f.Code)
	w.addTimes("i.created", f.Since, f.Before)
	end := ""
	if f.ByPriority() {
		var err error
		if end, err = w.queueOrder(c, f); err != nil {
			return nil, err
		}
	} else {
		end = w.page(f.Page, "i.id")
	}
	var all []*store.ItemRow
	err := c.each("SELECT "+tables.Items.List("i.")+", i.root, c.workflow FROM @.work_items i "+
		"JOIN @.cases c ON c.root = i.root AND c.id = i.case_id"+w.where()+end, w.args, func(row *tables.Row) error {
		it, err := tables.ReadItem(row)
		all = append(all, &store.ItemRow{Item: it, Root: tables.ID[workitem.CaseID](row), Workflow: row.Text()})
		if err == nil {
			err = row.Err
		}
		return err
	})
	return all, err
}

// queueOrder is like page for the items of a queue: by priority, the highest first, and by id where that is the same. The
// negative priority is what is indexed, so that both columns rise, and one comparison finds the beginning of a page. The
// priority of an item never changes, so the pages are those of one list.
func (w *conditions) queueOrder(c *conn, f store.ItemFilter) (string, error) {
	if f.After != "" {
		priority, found, err := c.number("SELECT priority FROM @.work_items WHERE id = $1::text::uuid", f.After)
		if err == nil && !found {
			err = fmt.Errorf("work item %s, behind which the list goes on: %w: it was removed; begin from the first page",
				f.After, store.ErrNotFound)
		}
		if err != nil {
			return "", err
		}
		w.add("(-i.priority, i.id) > ("+strconv.FormatInt(-priority, 10)+", $::text::uuid)", f.After)
	}
	return " ORDER BY -i.priority, i.id" + w.limit(f.Limit), nil
}

// Jobs implements [store.Reader].
func (r *reader) Jobs(_ context.Context, f store.JobFilter) ([]*state.Job, error) {
	var w conditions
	addID(&w, "j.id = $", f.ID)
	addID(&w, "j.case_id = $ AND j.root = (SELECT root FROM @.cases WHERE id = $)", f.Case)
	addID(&w, "j.root = $", f.Root)
	w.addRoots("j.root", f.Roots)
	addID(&w, "j.root = (SELECT root FROM @.work_items WHERE id = $) AND j.item = $", f.Item)
	onlyLive := addStates(&w, "j.state", f.States, state.JobState.Live, "j."+liveJob)
	w.addText("(SELECT workflow FROM @.cases c WHERE c.root = j.root AND c.id = j.case_id) = $", f.Workflow)
	w.addText("j.task = $", f.Task)
	w.addText("j.kind = $", f.Kind)
	if f.Queue != nil {
		w.add("j.queue = $", *f.Queue)
	}
	if !f.Due.IsZero() {
		w.add("j.due <= $", state.Micros(f.Due))
		w.add("j.due > $", state.Micros(time.Time{}))
	}
	var end string
	if onlyLive {
		end = w.dueOrder(f.Page)
	} else {
		end = w.page(f.Page, "j.id")
	}
	var all []*state.Job
	err := r.c.each("SELECT "+tables.Jobs.List("j.")+" FROM @.jobs j"+w.where()+end, w.args, func(row *tables.Row) error {
		j, err := tables.ReadJob(row)
		all = append(all, j)
		return err
	})
	return all, err
}

// dueOrder is like page for jobs by their due time, and by id where that is the same.
func (w *conditions) dueOrder(p store.Page) string {
	compare, order := ">", ""
	if p.Desc {
		compare, order = "<", " DESC"
	}
	w.addText("(j.due, j.id) "+compare+" (SELECT due, id FROM @.jobs WHERE id = $::text::uuid)", p.After)
	return " ORDER BY j.due" + order + ", j.id" + order + w.limit(p.Limit)
}

// Steps implements [store.Reader].
func (r *reader) Steps(_ context.Context, f store.StepFilter) ([]*workitem.Step, error) {
	var w conditions
	addID(&w, "s.owner = $", f.Item)
	addID(&w, "s.root = (SELECT root FROM @.jobs WHERE id = $) AND s.job = $", f.Job)
	addID(&w, "s.root = (SELECT root FROM @.cases WHERE id = $) AND s.case_id = $", f.Case)
	addID(&w, "s.root = $", f.Root)
	w.addRoots("s.root", f.Roots)
	w.addText("s.kind = $", string(f.Kind))
	w.addText("s.target = $", f.Target)
	if f.Topic {
		w.plain("s.topic")
	}
	addStates(&w, "s.state", f.States, func(s workitem.StepState) bool { return s == workitem.StepWaiting }, "s."+liveStep)
	end := w.page(f.Page, "s.id")
	var all []*workitem.Step
	err := r.c.each("SELECT "+tables.Steps.List("s.")+" FROM @.steps s"+w.where()+end, w.args, func(row *tables.Row) error {
		s, err := tables.ReadStep(row)
		all = append(all, s)
		return err
	})
	return all, err
}

// Messages implements [store.Reader].
func (r *reader) Messages(_ context.Context, f store.MessageFilter) ([]*state.Message, error) {
	var w conditions
	addID(&w, "m.root = (SELECT root FROM @.cases WHERE id = $) AND m.case_id = $", f.Case)
	addID(&w, "m.root = $", f.Root)
	w.addRoots("m.root", f.Roots)
	w.addText("m.name = $", f.Name)
	if f.Unread {
		w.plain("m." + unread)
	}
	end := w.page(f.Page, "m.id")
	var all []*state.Message
	err := r.c.each("SELECT "+tables.Messages.List("m.")+" FROM @.messages m"+w.where()+end, w.args, func(row *tables.Row) error {
		m, err := tables.ReadMessage(row)
		all = append(all, m)
		return err
	})
	return all, err
}
