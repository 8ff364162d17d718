package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// reader implements [store.Reader] on a connection with an open read transaction.
//
// A filter becomes a statement with its terms. SQLite chooses the index, without statistics. It uses a partial index
// only if the statement contains the condition of the index, so the terms are written as in the indexes.
//
//	live items of a queue           work_items_queue       by priority, then id: no sort
//	live, or failed, of a task      work_items_task_live, work_items_task_failed
//	live, failed, canceled items    work_items_live, work_items_failed, work_items_canceled
//	started items, those of a holder  work_items_started, see addItemStates
//	with the same failure code      cases_code, work_items_code
//	cases of a workflow             cases_workflow
//	by business key, by label       cases_key, case_labels
//	all items of a named queue      work_items_named, by priority, then id: no sort; newest first, see newestOfQueue
//	due jobs                        jobs_due; jobs_named in one state of a named queue
//	of one case                     work_items_case, jobs_case, steps_case, messages_case
//	all                             the primary key, whose order is that of creation
//
// Pages continue after an id, not after a number of rows, so each page costs the same.
type reader struct {
	c      *conn
	nets   *tables.Nets
	user   *sqlkit.UserDB
	ended  bool
	walked walk       // the positions that Journal has walked
	ways   *waypoints // of long histories, shared by all views
	shared bool       // the connection is also the writer's, so the user's SQL must not write
}

// Tree implements [store.Reader].
func (r *reader) Tree(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	return loadTree(r.c, r.nets, root, tables.NothingNewer)
}

// Trees implements [store.Reader].
func (r *reader) Trees(_ context.Context, roots []workitem.CaseID) ([]*state.Tree, error) {
	return loadTrees(r.c, r.nets, roots)
}

// Root implements [store.Reader].
func (r *reader) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	return findRoot(r.c, id)
}

// conditions are the conditions of a SQLite statement.
type conditions struct{ tables.Conditions }

func newConditions() conditions {
	return conditions{tables.Conditions{Dialect: tables.Dialect{ID: "?"}}}
}

// addCode adds the condition on the code of the failure, unless it is nil.
func (w *conditions) addCode(prefix string, code *string) {
	if code == nil {
		return
	}
	w.Plain(prefix + "failure IS NOT NULL") // the condition of the partial index
	if *code == "" {
		w.Plain(prefix + "failure ->> '$.code' IS NULL")
		return
	}
	w.Add(prefix+"failure ->> '$.code' = ?", *code)
}

// addID adds the term unless the id is zero. The term may use the id more than once.
func addID[T any](w *conditions, term string, id workitem.Key[T]) {
	if !id.IsZero() {
		w.Add(term, textOf(id))
	}
}

// addRoots adds the term, followed by a list of ids, unless there are no root cases.
// Nil means any root case; an empty list means none, and finds nothing.
func (w *conditions) addRoots(term string, roots []workitem.CaseID) {
	if roots != nil {
		w.Add(term, idList(roots))
	}
}

// addIDs selects the ids of a column, unless the list is nil.
func addIDs[T any](w *conditions, column string, ids []workitem.Key[T]) {
	if ids != nil {
		w.Add(column+" IN "+bound, idList(ids))
	}
}

// idList returns a list of ids as JSON.
// One parameter for any number of ids: a statement with a parameter for each would be another text, to be prepared,
// for each number.
func idList[T any](ids []workitem.Key[T]) string {
	text, _ := json.Marshal(ids) // an id is always valid text
	return string(text)
}

// values returns the values of the statement in the type that the driver takes.
// The conditions are shared with PostgreSQL, whose driver takes other types.
func (w *conditions) values() []driver.Value {
	list := make([]driver.Value, len(w.Args))
	for i, v := range w.Args {
		list[i] = v
	}
	return list
}

// The root itself and its descendants are two parts: "root = ?" alone cannot use cases_children, which has no root
// cases.
const ofTree = " IN (SELECT id FROM cases WHERE id = ? " +
	"UNION ALL SELECT id FROM cases WHERE root = ? AND parent IS NOT NULL)"

const (
	bound   = "(SELECT value FROM json_each(?))"
	ofTrees = " IN (SELECT value FROM json_each(?) UNION ALL SELECT id FROM cases WHERE root IN " + bound + " AND parent IS NOT NULL)"
)

// Cases implements [store.Reader].
func (r *reader) Cases(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	w := newConditions()
	addID(&w, "c.id = ?", f.ID)
	addIDs(&w, "c.id", f.IDs)
	addID(&w, "c.id"+ofTree, f.Root)
	w.addRoots("c.id"+ofTrees, f.Roots)
	tables.AddStates(&w.Conditions, "c.state", f.States, func(s state.CaseState) bool { return s == state.CaseStarted },
		"c.state = 'started'")
	w.AddText("c.workflow = ?", f.Workflow)
	w.AddText("c.fingerprint = ?", f.Fingerprint)
	w.addCode("c.", f.Code)
	w.AddText("c.business_key = ?", f.Key)
	addIDs(&w, "c.predecessor", f.Predecessors)
	from, id := w.labeled(r.c, f.Labels)
	if f.Suspended {
		w.Plain("c.suspended IS NOT NULL")
	}
	if f.RootOnly {
		w.Plain("c.parent IS NULL")
	}
	w.AddCreated("c.", f.Since, f.Before)
	end := ""
	// Removable cases come in the order of cases_keep, all others in the order of ids.
	if f.Removable.IsZero() {
		end = w.Page(f.Page, id)
	} else {
		end = w.removable(f)
	}
	var all []*state.Case
	err := r.c.each("SELECT "+tables.Cases.List("c.")+" FROM "+from+w.Where()+end, w.values(), func(row *tables.Row) error {
		c, err := tables.ReadCase(row, func(fp string) (*net.Net, error) { return r.nets.Get(r.c, fp) })
		all = append(all, c)
		return err
	})
	return all, err
}

// labeled selects cases with all of these labels. It returns the tables to read cases from, and the column of their ids
// by which they are ordered. The first label finds the cases by its index. A reader with temporary tables checks the
// labels of each case instead.
func (w *conditions) labeled(c *conn, labels map[string]string) (from, id string) {
	from, id = "cases c", "c.id"
	for i, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case c.overlaid:
			w.AddEach("EXISTS (SELECT 1 FROM json_each(c.labels) WHERE key = ? AND value = ?)", name, labels[name])
		case i == 0:
			from, id = "case_labels l CROSS JOIN cases c ON c.id = l.case_id", "l.case_id"
			w.AddEach("l.name = ? AND l.value = ?", name, labels[name])
		default:
			w.AddEach("EXISTS (SELECT 1 FROM case_labels WHERE name = ? AND value = ? AND case_id = c.id)", name, labels[name])
		}
	}
	return from, id
}

// removable selects the cases that may be removed, and returns the ORDER BY for it.
func (w *conditions) removable(f store.CaseFilter) string {
	const undone = " AND j." + liveJob + ")"
	w.Add("c.keep_until <= ?", state.Micros(f.Removable))
	// A detached job may outlive its case. This is one lookup in jobs_live for each case of the page.
	w.Plain("NOT EXISTS (SELECT 1 FROM jobs j WHERE j.case_id = c.id" + undone)
	w.Plain("NOT EXISTS (SELECT 1 FROM cases k CROSS JOIN jobs j ON j.case_id = k.id " +
		"WHERE k.root = c.id AND k.parent IS NOT NULL" + undone)
	return w.PageBy(f.Page, "cases", "c.", "keep_until")
}

// Items implements [store.Reader].
func (r *reader) Items(_ context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	return queryItems(r.c, f)
}

// itemSource returns the tables to read items from, with the root and the workflow of their case, and the prefix of
// those two columns. CROSS JOIN fixes the order of the tables, since items are selected and sorted.
func itemSource(c *conn) (from, of string) {
	if c.overlaid {
		return locatedItems + " i", "i."
	}
	return "work_items i CROSS JOIN cases c ON c.id = i.case_id", "c."
}

// rareItems is the largest number of items of a workflow for which they are looked up by case. They must then be
// sorted, which costs more than a scan of all items in order if many of them match.
const rareItems = 5000

// rareWorkflow reports whether the filter's workflow has so few items that they are looked up by case.
func rareWorkflow(c *conn, f store.ItemFilter) (bool, error) {
	// Another condition with an index of its own finds fewer rows than the workflow.
	narrow := !f.ID.IsZero() || f.IDs != nil || !f.Case.IsZero() || !f.Root.IsZero() || f.Roots != nil || f.Queue != nil
	if f.Workflow == "" || narrow || c.overlaid {
		return false, nil
	}
	n, _, err := c.number("SELECT COALESCE(sum(n), 0) FROM counts WHERE what = 'item' AND workflow = ?", f.Workflow)
	return n <= rareItems, err
}

// addItemStates adds the conditions on the state and the holder of items, and reports whether all of them are live.
//
// Most live items wait for a person, and few are started: those have an index of their own. Its order is that of the ids,
// so the items of a queue or a task are only selected by it, and then sorted, if they are few.
func (w *conditions) addItemStates(c *conn, f store.ItemFilter) (live bool, err error) {
	few := f.Holder != "" || slices.Equal(f.States, []workitem.State{workitem.Started})
	if few && f.Holder == "" && (f.Queue != nil || f.Task != "") {
		n, _, err := c.number("SELECT count(*) FROM (SELECT 1 FROM work_items WHERE state = 'started' LIMIT +?)", int64(rareItems)+1)
		if err != nil {
			return false, err
		}
		few = n <= rareItems
	}
	condition := liveItem
	if few { // without the condition of the other indexes, so that this one is used
		condition = "state = 'started'"
	}
	live = tables.AddStates(&w.Conditions, "i.state", f.States, workitem.State.Live, "i."+condition)
	if f.Holder != "" {
		w.Plain("i." + condition)
		w.Add("i.actor = ?", f.Holder)
	}
	return live || f.Holder != "", nil
}

func queryItems(c *conn, f store.ItemFilter) ([]*store.ItemRow, error) {
	w := newConditions()
	addID(&w, "i.id = ?", f.ID)
	addIDs(&w, "i.id", f.IDs)
	addID(&w, "i.case_id = ?", f.Case)
	addID(&w, "i.case_id"+ofTree, f.Root)
	w.addRoots("i.case_id"+ofTrees, f.Roots)
	from, of := itemSource(c)
	if rare, err := rareWorkflow(c, f); err != nil {
		return nil, err
		// From the cases of the workflow, by cases_workflow, to the items of each, by work_items_case.
	} else if rare {
		from = "cases c CROSS JOIN work_items i ON i.case_id = c.id"
	}
	live, err := w.addItemStates(c, f)
	if err != nil {
		return nil, err
	}
	w.AddText(of+"workflow = ?", f.Workflow)
	w.AddText("i.task = ?", f.Task)
	switch {
	case f.Queue == nil:
	case f.Desc:
		if err := w.newestOfQueue(c, f, live); err != nil {
			return nil, err
		}
	default:
		w.Add("i.queue = ?", *f.Queue)
		if !live && *f.Queue != "" {
			w.Plain("i.queue <> ''") // the condition of the partial index
		}
	}
	if f.Attempt > 1 {
		w.Plain("i.attempt > 1") // the condition of the partial index
	}
	if f.Attempt > 0 {
		w.Add("i.attempt >= ?", int64(f.Attempt))
	}
	w.addCode("i.", f.Code)
	w.AddCreated("i.", f.Since, f.Before)
	end, order := "", ""
	if f.ByPriority() {
		order = ", -i.priority" // selected, so that SQLite can merge two tables
		if end, err = w.PageByPriority(f.Page, func(id string) (int64, bool, error) {
			return c.number("SELECT priority FROM work_items WHERE id = ?", id)
		}); err != nil {
			return nil, err
		}
	} else {
		end = w.Page(f.Page, "i.id")
	}
	var all []*store.ItemRow
	query := "SELECT " + tables.Items.List("i.") + ", " + of + "root, " + of + "workflow" + order + " FROM " + from + w.Where() + end
	err = c.each(query, w.values(), func(row *tables.Row) error {
		it, err := tables.ReadItem(row)
		all = append(all, &store.ItemRow{Item: it, Root: tables.ID[workitem.CaseID](row), Workflow: row.Text()})
		if err == nil {
			err = row.Err
		}
		return err
	})
	return all, err
}

// Jobs implements [store.Reader].
func (r *reader) Jobs(_ context.Context, f store.JobFilter) ([]*state.Job, error) {
	w := newConditions()
	addID(&w, "j.id = ?", f.ID)
	addIDs(&w, "j.id", f.IDs)
	addID(&w, "j.case_id = ?", f.Case)
	addID(&w, "j.case_id"+ofTree, f.Root)
	w.addRoots("j.case_id"+ofTrees, f.Roots)
	// Jobs have no index by item. They are found by its case, which has few jobs of other items.
	addID(&w, "j.case_id = (SELECT case_id FROM work_items WHERE id = ?) AND j.item = ?", f.Item)
	onlyLive := tables.AddStates(&w.Conditions, "j.state", f.States, state.JobState.Live, "j."+liveJob)
	w.AddText("(SELECT workflow FROM cases WHERE id = j.case_id) = ?", f.Workflow)
	w.AddText("j.task = ?", f.Task)
	w.AddKind("j.", f.Kind)
	if f.Queue != nil {
		w.Add("j.queue = ?", *f.Queue)
		// The index has the jobs of each state in due order. The jobs of several states would have to be sorted.
		if onlyLive && *f.Queue != "" && len(f.States) == 1 {
			w.Plain("j.queue <> ''") // the condition of the partial index
		}
	}
	if !f.Due.IsZero() {
		w.Add("j.due <= ?", state.Micros(f.Due))
		// A job that is not started by time, such as one that waits for an event, has the zero time.
		w.Add("j.due > ?", state.Micros(time.Time{}))
	}
	var end string
	if onlyLive {
		end = w.PageBy(f.Page, "jobs", "j.", "due")
	} else {
		end = w.Page(f.Page, "j.id")
	}
	return listOf(r.c, "SELECT "+tables.Jobs.List("j.")+" FROM jobs j"+w.Where()+end, w.values(), tables.ReadJob)
}

// Steps implements [store.Reader].
// Steps have no index by workflow or task, as they are asked for by their owner or their case.
func (r *reader) Steps(_ context.Context, f store.StepFilter) ([]*workitem.Step, error) {
	w := newConditions()
	addID(&w, "s.owner = ?", f.Item)
	// The owner of a step is the item of its job, if it has one, and else the job itself. Steps are indexed by owner;
	// an item may have had several jobs.
	addID(&w, "s.owner IN (?, (SELECT item FROM jobs WHERE id = ?)) AND s.job = ?", f.Job)
	addID(&w, "s.case_id = ?", f.Case)
	addID(&w, "s.case_id"+ofTree, f.Root)
	w.addRoots("s.case_id"+ofTrees, f.Roots)
	w.AddText("s.kind = ?", string(f.Kind))
	w.AddText("s.target = ?", f.Target)
	if f.Topic {
		w.Plain("s.topic = 1")
	}
	tables.AddStates(&w.Conditions, "s.state", f.States, func(s workitem.StepState) bool { return s == workitem.StepWaiting }, "s."+liveStep)
	end := w.Page(f.Page, "s.id")
	return listOf(r.c, "SELECT "+tables.Steps.List("s.")+" FROM steps s"+w.Where()+end, w.values(), tables.ReadStep)
}

// Messages implements [store.Reader].
// Unread messages are in a partial index; those that were taken are read by case only.
func (r *reader) Messages(_ context.Context, f store.MessageFilter) ([]*state.Message, error) {
	w := newConditions()
	addID(&w, "m.case_id = ?", f.Case)
	addID(&w, "m.case_id"+ofTree, f.Root)
	w.addRoots("m.case_id"+ofTrees, f.Roots)
	w.AddText("m.name = ?", f.Name)
	if f.Unread {
		w.Plain("m." + unread)
	}
	end := w.Page(f.Page, "m.id")
	return listOf(r.c, "SELECT "+tables.Messages.List("m.")+" FROM messages m"+w.Where()+end, w.values(), tables.ReadMessage)
}
