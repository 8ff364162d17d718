package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// reader implements [store.Reader] on a connection with an open read transaction.
type reader struct {
	c      *conn
	nets   *tables.Nets
	user   *sqlkit.UserDB
	over   bool
	shared bool // the connection is also the writer's, so the user's SQL must be kept from writing
}

// Tree implements [store.Reader].
func (r *reader) Tree(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	return loadTree(r.c, r.nets, root, tables.NothingNewer)
}

// Root implements [store.Reader].
func (r *reader) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	return findRoot(r.c, id)
}

// conditions collects the terms of a WHERE clause. States are written out, since only then SQLite sees that a partial
// index serves.
type conditions struct {
	terms []string
	args  []driver.Value
}

func (w *conditions) add(term string, values ...driver.Value) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, values...)
}

// addID adds the term unless the id is zero. The term may hold the id more than once.
func addID[T any](w *conditions, term string, id workitem.Key[T]) {
	if id.IsZero() {
		return
	}
	for range strings.Count(term, "?") {
		w.args = append(w.args, textOf(id))
	}
	w.terms = append(w.terms, term)
}

// addRoots adds the term, which ends where a list of ids may follow, unless there are no root cases.
func (w *conditions) addRoots(term string, roots []workitem.CaseID) {
	if roots == nil {
		return
	}
	list := idList(roots)
	for range strings.Count(term, "?") {
		w.args = append(w.args, list)
	}
	w.terms = append(w.terms, term)
}

// idList is a list of ids as JSON.
func idList(ids []workitem.CaseID) string {
	text, _ := json.Marshal(ids) // an id is always a text
	return string(text)
}

func (w *conditions) addText(term, value string) {
	if value != "" {
		w.add(term, value)
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
		w.add(live)
	}
	if len(words) == 1 {
		w.add(column + " = " + words[0])
	} else {
		w.add(column + " IN (" + strings.Join(words, ", ") + ")")
	}
	return onlyLive
}

// page adds the cursor, and returns the end of the statement for rows in the order of the column of ids.
func (w *conditions) page(p store.Page, column string) string {
	compare, order := " > ?", ""
	if p.Desc {
		compare, order = " < ?", " DESC"
	}
	w.addText(column+compare, p.After)
	return " ORDER BY " + column + order + w.limit(p.Limit)
}

// limit must be called last, since its value is bound last.
func (w *conditions) limit(n int) string {
	if n <= 0 {
		n = store.DefaultLimit
	}
	w.args = append(w.args, int64(n))
	return " LIMIT ?"
}

func (w *conditions) where() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

const ofTree = " IN (SELECT id FROM cases WHERE id = ? " +
	"UNION ALL SELECT id FROM cases WHERE root = ? AND parent IS NOT NULL)"

const (
	bound   = "(SELECT value FROM json_each(?))"
	ofTrees = " IN (SELECT id FROM cases WHERE id IN " + bound +
		" UNION ALL SELECT id FROM cases WHERE root IN " + bound + " AND parent IS NOT NULL)"
)

// Cases implements [store.Reader].
func (r *reader) Cases(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	var w conditions
	addID(&w, "c.id = ?", f.ID)
	addID(&w, "c.id"+ofTree, f.Root)
	w.addRoots("c.id"+ofTrees, f.Roots)
	addStates(&w, "c.state", f.States, func(s state.CaseState) bool { return s == state.CaseStarted },
		"c.state = 'started'")
	w.addText("c.workflow = ?", f.Workflow)
	w.addText("c.fingerprint = ?", f.Fingerprint)
	if f.RootOnly {
		w.add("c.parent IS NULL")
	}
	if !f.Before.IsZero() {
		w.add("c.created < ?", state.Micros(f.Before))
	}
	if !f.Since.IsZero() {
		w.add("c.created >= ?", state.Micros(f.Since))
	}
	end := ""
	if f.Removable.IsZero() {
		end = w.page(f.Page, "c.id")
	} else {
		end = w.removable(f)
	}
	var all []*state.Case
	err := r.c.each("SELECT "+tables.Cases.List("c.")+" FROM cases c"+w.where()+end, w.args, func(row *tables.Row) error {
		c, err := tables.ReadCase(row, func(fp string) (*net.Net, error) { return r.nets.Get(r.c, fp) })
		all = append(all, c)
		return err
	})
	return all, err
}

// removable selects what may be removed, and returns the end of the statement for the order in which it should be.
func (w *conditions) removable(f store.CaseFilter) string {
	const undone = " AND (j." + liveJob + " OR j.state = 'failed' AND j.detached = 1))"
	w.add("c.keep_until <= ?", state.Micros(f.Removable))
	w.add("NOT EXISTS (SELECT 1 FROM jobs j WHERE j.case_id = c.id" + undone)
	w.add("NOT EXISTS (SELECT 1 FROM cases k CROSS JOIN jobs j ON j.case_id = k.id " +
		"WHERE k.root = c.id AND k.parent IS NOT NULL" + undone)
	compare, order := ">", ""
	if f.Desc {
		compare, order = "<", " DESC"
	}
	w.addText("(c.keep_until, c.id) "+compare+" (SELECT keep_until, id FROM cases WHERE id = ?)", f.After)
	return " ORDER BY c.keep_until" + order + ", c.id" + order + w.limit(f.Limit)
}

// Items implements [store.Reader].
func (r *reader) Items(_ context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	return queryItems(r.c, f)
}

// itemSource is where items are read from, with the root and the workflow of their case, and the prefix of those two.
// CROSS JOIN keeps the order of the tables: the items are what is selected and sorted.
func itemSource(c *conn) (from, of string) {
	if c.overlaid {
		return locatedItems + " i", "i."
	}
	return "work_items i CROSS JOIN cases c ON c.id = i.case_id", "c."
}

func queryItems(c *conn, f store.ItemFilter) ([]*store.ItemRow, error) {
	var w conditions
	addID(&w, "i.id = ?", f.ID)
	addID(&w, "i.case_id = ?", f.Case)
	addID(&w, "i.case_id"+ofTree, f.Root)
	w.addRoots("i.case_id"+ofTrees, f.Roots)
	from, of := itemSource(c)
	addStates(&w, "i.state", f.States, workitem.State.Live, "i."+liveItem)
	w.addText(of+"workflow = ?", f.Workflow)
	w.addText("i.task = ?", f.Task)
	if f.Queue != nil {
		w.add("i.queue = ?", *f.Queue)
	}
	if f.Attempt > 0 {
		w.add("i.attempt >= ?", int64(f.Attempt))
	}
	w.addText("i.failure ->> '$.code' = ?", f.Code)
	if !f.Before.IsZero() {
		w.add("i.created < ?", state.Micros(f.Before))
	}
	if !f.Since.IsZero() {
		w.add("i.created >= ?", state.Micros(f.Since))
	}
	end, order := "", ""
	if f.ByPriority() {
		order = ", -i.priority" // a reader merges the rows of two tables by what it selects
		var err error
		if end, err = w.queueOrder(c, f); err != nil {
			return nil, err
		}
	} else {
		end = w.page(f.Page, "i.id")
	}
	var all []*store.ItemRow
	query := "SELECT " + tables.Items.List("i.") + ", " + of + "root, " + of + "workflow" + order + " FROM " + from + w.where() + end
	err := c.each(query, w.args, func(row *tables.Row) error {
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
		priority, found, err := c.number("SELECT priority FROM work_items WHERE id = ?", f.After)
		if err == nil && !found {
			err = fmt.Errorf("work item %s, behind which the list goes on: %w: it was removed; begin from the first page",
				f.After, store.ErrNotFound)
		}
		if err != nil {
			return "", err
		}
		w.add("(-i.priority, i.id) > (?, ?)", -priority, f.After)
	}
	return " ORDER BY -i.priority, i.id" + w.limit(f.Limit), nil
}

// Jobs implements [store.Reader].
func (r *reader) Jobs(_ context.Context, f store.JobFilter) ([]*state.Job, error) {
	var w conditions
	addID(&w, "j.id = ?", f.ID)
	addID(&w, "j.case_id = ?", f.Case)
	addID(&w, "j.case_id"+ofTree, f.Root)
	w.addRoots("j.case_id"+ofTrees, f.Roots)
	addID(&w, "j.case_id = (SELECT case_id FROM work_items WHERE id = ?) AND j.item = ?", f.Item)
	onlyLive := addStates(&w, "j.state", f.States, state.JobState.Live, "j."+liveJob)
	w.addText("(SELECT workflow FROM cases WHERE id = j.case_id) = ?", f.Workflow)
	w.addText("j.task = ?", f.Task)
	w.addText("j.kind = ?", f.Kind)
	if f.Queue != nil {
		w.add("j.queue = ?", *f.Queue)
	}
	if !f.Due.IsZero() {
		w.add("j.due <= ? AND j.due > ?", state.Micros(f.Due), state.Micros(time.Time{}))
	}
	var end string
	if onlyLive {
		end = w.dueOrder(f.Page)
	} else {
		end = w.page(f.Page, "j.id")
	}
	var all []*state.Job
	err := r.c.each("SELECT "+tables.Jobs.List("j.")+" FROM jobs j"+w.where()+end, w.args, func(row *tables.Row) error {
		j, err := tables.ReadJob(row)
		all = append(all, j)
		return err
	})
	return all, err
}

// stepsOf selects the steps of cases by their owners, of which there is an index.
func stepsOf(cases string) string {
	return "s.owner IN (SELECT id FROM work_items WHERE case_id" + cases +
		" UNION ALL SELECT id FROM jobs WHERE case_id" + cases + ")"
}

// Steps implements [store.Reader].
func (r *reader) Steps(_ context.Context, f store.StepFilter) ([]*workitem.Step, error) {
	var w conditions
	addID(&w, "s.owner = ?", f.Item)
	addID(&w, "s.owner IN (?, (SELECT item FROM jobs WHERE id = ?)) AND s.job = ?", f.Job)
	addID(&w, stepsOf(" = ?"), f.Case)
	addID(&w, stepsOf(ofTree), f.Root)
	w.addRoots(stepsOf(ofTrees), f.Roots)
	w.addText("s.kind = ?", string(f.Kind))
	w.addText("s.target = ?", f.Target)
	if f.Topic {
		w.add("s.topic = 1")
	}
	addStates(&w, "s.state", f.States, func(s workitem.StepState) bool { return s == workitem.StepWaiting }, "s."+liveStep)
	end := w.page(f.Page, "s.id")
	var all []*workitem.Step
	err := r.c.each("SELECT "+tables.Steps.List("s.")+" FROM steps s"+w.where()+end, w.args, func(row *tables.Row) error {
		s, err := tables.ReadStep(row)
		all = append(all, s)
		return err
	})
	return all, err
}

// Messages implements [store.Reader].
func (r *reader) Messages(_ context.Context, f store.MessageFilter) ([]*state.Message, error) {
	var w conditions
	addID(&w, "m.case_id = ?", f.Case)
	addID(&w, "m.case_id"+ofTree, f.Root)
	w.addRoots("m.case_id"+ofTrees, f.Roots)
	w.addText("m.name = ?", f.Name)
	if f.Unread {
		w.add("m." + unread)
	}
	end := w.page(f.Page, "m.id")
	var all []*state.Message
	err := r.c.each("SELECT "+tables.Messages.List("m.")+" FROM messages m"+w.where()+end, w.args, func(row *tables.Row) error {
		m, err := tables.ReadMessage(row)
		all = append(all, m)
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
	w.addText("(j.due, j.id) "+compare+" (SELECT due, id FROM jobs WHERE id = ?)", p.After)
	return " ORDER BY j.due" + order + ", j.id" + order + w.limit(p.Limit)
}
