package postgres

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// conditions are the conditions of a PostgreSQL statement.
//
// The indexes that serve the queries, for tables whose key is root and id:
//
//	of a root case                  the primary key of each table, which begins with the root
//	by id                           cases_id, work_items_id, jobs_id, steps_id, messages_id: an id does not have its root
//	live items of a queue           work_items_live, by priority and then id: no sort
//	live, or failed, of a task      work_items_task_live, work_items_task_failed
//	started items, of a holder      work_items_started
//	with the same failure code      cases_code, work_items_code
//	by business key, by labels      cases_key, case_labels
//	all items of a named queue      work_items_named, by priority and then id: no sort
//	due jobs, free, held            jobs_due, jobs_free, jobs_held
//	jobs of a named queue           jobs_named, by state and then due time
//	all, in the order of creation   the indexes on id
//
// Partial indexes have only live or failed rows: a row that is opened and completes is in none of them afterwards.
type conditions struct{ tables.Conditions }

func newConditions() conditions {
	return conditions{tables.Conditions{Dialect: tables.Dialect{Numbered: true, ID: "?::text::uuid"}}}
}

// addID adds the term unless the id is zero.
func addID[T any](w *conditions, term string, id workitem.Key[T]) {
	if !id.IsZero() {
		w.Add(term, [16]byte(id))
	}
}

// addIDs selects the ids of a column, unless the list is nil.
func addIDs[T any](w *conditions, column string, ids []workitem.Key[T]) {
	if ids != nil {
		w.Add(column+" = ANY(?)", uuids(ids))
	}
}

// from returns a table under an alias, or its rows of some root cases. Nil means any root case; an empty list means
// none, and finds nothing.
//
// OFFSET 0 makes the planner find the rows by the primary key, once for each root case. With root = ANY(...) and the
// limit of a page, a planner without statistics, as after a copy, expects more rows than a page: it reads the table in
// the order of its ids until a page is full, which is the whole table for each page.
func (w *conditions) from(table, alias string, roots []workitem.CaseID) string {
	if roots == nil {
		return "@." + table + " " + alias
	}
	w.Args = append(w.Args, uuids(roots))
	return fmt.Sprintf("(SELECT DISTINCT root FROM unnest($%d::uuid[]) t(root)) u CROSS JOIN LATERAL "+
		"(SELECT * FROM @.%s WHERE root = u.root OFFSET 0) %s", len(w.Args), table, alias)
}

// fewCases is the largest number of cases of a workflow for which rows are looked up by case. For a workflow with more,
// a scan of the rows of all workflows finds enough of its rows soon.
const fewCases = 1000

// addWorkflow selects the rows of the cases of a workflow by the given term, unless the workflow is "".
func (w *conditions) addWorkflow(c *conn, root, term, workflow string) error {
	if workflow == "" {
		return nil
	}
	w.Add(term, workflow)
	// This reads at most a thousand entries of cases_workflow; a count would read all.
	_, many, err := c.number("SELECT 1 FROM @.cases WHERE workflow = $1 ORDER BY id OFFSET $2 LIMIT 1", workflow, fewCases)
	if err == nil && !many {
		// ARRAY evaluates the roots before the rest of the query, so that rows are looked up by the primary key. With a
		// join, the planner would estimate their number, and might scan the whole table.
		w.Add(root+" = ANY(ARRAY(SELECT root FROM @.cases WHERE workflow = ?))", workflow)
	}
	return err
}

// codeOf is the SQL expression for the code of a failure in its text, as in the indexes. Parsing the text as JSON fails
// if it has a \u0000. E'...' means the same whatever standard_conforming_strings is.
func codeOf(prefix string) string {
	return "substring(" + prefix + `failure from E'^{"retryable":[truefals]+,"code":"(([^"\\\\]|\\\\.)*)"')`
}

// codeText is the text of a code within the JSON of a failure.
// The expression returns the code as it is written in the text, with its escapes. So the code that is searched is
// written the same way, by the same function.
func codeText(code string) string {
	text := string(state.AppendFailure(nil, &workitem.Failure{Code: code}))
	return strings.TrimSuffix(strings.TrimPrefix(text, `{"retryable":false,"code":"`), `"}`)
}

// addCode adds the condition on the code of the failure, unless it is nil.
func (w *conditions) addCode(prefix string, code *string) {
	if code == nil {
		return
	}
	if *code == "" {
		w.Plain(prefix + "failure IS NOT NULL") // the condition of the partial index
		w.Plain(codeOf(prefix) + " IS NULL")
		return
	}
	// It implies the condition of the index. With that as a second term, the planner would take both for independent,
	// expect few rows, and sort all failures with this code instead of reading the newest.
	w.Add(codeOf(prefix)+" = ?", codeText(*code))
}

// Cases implements [store.Reader].
func (r *reader) Cases(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	w := newConditions()
	from, id, err := w.labeled(r.c, f)
	if err != nil {
		return nil, err
	}
	addID(&w, "c.id = ?", f.ID)
	addIDs(&w, "c.id", f.IDs)
	addID(&w, "c.root = ?", f.Root)
	tables.AddStates(&w.Conditions, "c.state", f.States, func(s state.CaseState) bool { return s == state.CaseStarted }, "c.state = 'started'")
	w.AddText("c.workflow = ?", f.Workflow)
	w.AddText("c.fingerprint = ?", f.Fingerprint)
	w.addCode("c.", f.Code)
	w.AddText("c.business_key = ?", f.Key)
	addIDs(&w, "c.predecessor", f.Predecessors)
	if f.Suspended {
		w.Plain("c.suspended IS NOT NULL")
	}
	if f.RootOnly {
		w.Plain("c.parent IS NULL")
	}
	w.AddCreated("c.", f.Since, f.Before)
	end := ""
	if f.Removable.IsZero() {
		end = w.Page(f.Page, id)
	} else {
		end = w.removable(f)
	}
	var all []*state.Case
	err = r.c.each("SELECT "+tables.Cases.List("c.")+" FROM "+from+w.Where()+end, w.Args, func(row *tables.Row) error {
		c, err := readCase(row, r.c, r.nets)
		all = append(all, c)
		return err
	})
	return all, err
}

// labeled selects the cases that have all of the labels of a filter, and are of its root cases. It returns the tables to
// read them from, and the column of their ids, in whose order a label has its cases. The rarest label finds the cases;
// the others are looked up in their rows.
func (w *conditions) labeled(c *conn, f store.CaseFilter) (from, id string, err error) {
	labels := f.Labels
	if len(labels) == 0 {
		return w.from("cases", "c", f.Roots), "c.id", nil
	}
	if f.Roots != nil {
		w.Add("c.root = ANY(?)", uuids(f.Roots))
	}
	first, err := rareLabel(c, labels)
	if err != nil {
		return "", "", err
	}
	w.AddEach("l.name = ? AND l.value = ?", first, labels[first])
	if len(labels) > 1 {
		w.Plain("c.labels IS NOT NULL")
		w.Add("c.labels::jsonb @> ?::text::jsonb", string(state.AppendLabels(nil, labels)))
	}
	// OFFSET keeps the planner from reading the cases first: the labels are in the order of the page.
	return "@.case_labels l CROSS JOIN LATERAL (SELECT * FROM @.cases WHERE root = l.root AND id = l.id OFFSET 0) c", "l.id", nil
}

// rareLabel returns the name of a label that few cases have, or any of them if each has many. It reads at most a thousand
// entries of each.
func rareLabel(c *conn, labels map[string]string) (string, error) {
	names := slices.Sorted(maps.Keys(labels))
	for _, name := range names[:len(names)-1] {
		_, many, err := c.number("SELECT 1 FROM @.case_labels WHERE name = $1 AND value = $2 ORDER BY id OFFSET $3 LIMIT 1", name, labels[name], fewCases)
		if err != nil || !many {
			return name, err
		}
	}
	return names[len(names)-1], nil
}

// removable selects the cases that may be removed, and returns the ORDER BY for it.
func (w *conditions) removable(f store.CaseFilter) string {
	w.Add("c.keep_until <= ?", state.Micros(f.Removable))
	// Jobs of the whole tree, since a detached job may outlive its case. By the primary key of jobs, once for each case
	// of the page.
	w.Plain("NOT EXISTS (SELECT FROM @.jobs j WHERE j.root = c.id AND j." + liveJob + ")")
	return w.PageBy(f.Page, "@.cases", "c.", "keep_until")
}

// Items implements [store.Reader].
func (r *reader) Items(_ context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	return queryItems(r.c, f)
}

var itemColumns = "SELECT " + tables.Items.List("i.") + ", i.root, c.workflow FROM "

// ofCases joins the cases of items by the id alone, which is unique. With the root case in the condition, the planner
// would take the two columns for independent, expect almost no rows, and scan both tables for each page. For the items
// of some root cases, the case of each is looked up: the planner does not know how few these are.
func ofCases(roots []workitem.CaseID) string {
	if roots != nil {
		return " CROSS JOIN LATERAL (SELECT workflow FROM @.cases WHERE id = i.case_id OFFSET 0) c"
	}
	return " JOIN @.cases c ON c.id = i.case_id"
}

func queryItems(c *conn, f store.ItemFilter) ([]*store.ItemRow, error) {
	w := newConditions()
	from := w.from("work_items", "i", f.Roots) + ofCases(f.Roots)
	addID(&w, "i.id = ?", f.ID)
	addIDs(&w, "i.id", f.IDs)
	addID(&w, "i.case_id = ?", f.Case)
	if !f.Case.IsZero() { // there is no index by case alone
		addID(&w, "i.root = (SELECT root FROM @.cases WHERE id = ?)", f.Case)
	}
	addID(&w, "i.root = ?", f.Root)
	live := tables.AddStates(&w.Conditions, "i.state", f.States, workitem.State.Live, "i."+liveItem) || f.Holder != ""
	if err := w.addWorkflow(c, "i.root", "c.workflow = ?", f.Workflow); err != nil {
		return nil, err
	}
	w.AddText("i.task = ?", f.Task)
	if f.Queue != nil {
		w.Add("i.queue = ?", *f.Queue)
		if !live && *f.Queue != "" {
			w.Plain("i.queue <> ''") // the condition of the partial index
		}
	}
	if f.Holder != "" {
		w.Plain("i.state = 'started'")
		w.Add("i.actor = ?", f.Holder)
	}
	if f.Attempt > 1 {
		w.Plain("i.attempt > 1") // the condition of the partial index
	}
	if f.Attempt > 0 {
		w.Add("i.attempt >= ?", min(f.Attempt, math.MaxInt32)) // the type of the column
	}
	w.addCode("i.", f.Code)
	w.AddCreated("i.", f.Since, f.Before)
	end := ""
	if f.ByPriority() {
		var err error
		if end, err = w.PageByPriority(f.Page, func(id string) (int64, bool, error) {
			return c.number("SELECT priority FROM @.work_items WHERE id = $1::text::uuid", id)
		}); err != nil {
			return nil, err
		}
	} else {
		end = w.Page(f.Page, "i.id")
	}
	var all []*store.ItemRow
	err := c.each(itemColumns+from+w.Where()+end, w.Args, func(row *tables.Row) error {
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
	from := w.from("jobs", "j", f.Roots)
	addID(&w, "j.id = ?", f.ID)
	addIDs(&w, "j.id", f.IDs)
	// The root is looked up first, by cases_id, since jobs, steps and events have no index by case.
	addID(&w, "j.case_id = ? AND j.root = (SELECT root FROM @.cases WHERE id = ?)", f.Case)
	addID(&w, "j.root = ?", f.Root)
	addID(&w, "j.root = (SELECT root FROM @.work_items WHERE id = ?) AND j.item = ?", f.Item)
	onlyLive := tables.AddStates(&w.Conditions, "j.state", f.States, state.JobState.Live, "j."+liveJob)
	if err := w.addWorkflow(r.c, "j.root", "EXISTS (SELECT FROM @.cases c WHERE c.id = j.case_id AND c.workflow = ?)", f.Workflow); err != nil {
		return nil, err
	}
	w.AddText("j.task = ?", f.Task)
	w.AddKind("j.", f.Kind)
	if f.Queue != nil {
		w.Add("j.queue = ?", *f.Queue)
		if onlyLive && *f.Queue != "" {
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
		end = w.PageBy(f.Page, "@.jobs", "j.", "due")
	} else {
		end = w.Page(f.Page, "j.id")
	}
	return listOf(r.c, "SELECT "+tables.Jobs.List("j.")+" FROM "+from+w.Where()+end, w.Args, tables.ReadJob)
}

// Steps implements [store.Reader].
// Steps have no index by workflow or task, as they are asked for by their owner or their case.
func (r *reader) Steps(_ context.Context, f store.StepFilter) ([]*workitem.Step, error) {
	w := newConditions()
	from := w.from("steps", "s", f.Roots)
	addID(&w, "s.owner = ?", f.Item)
	// The root is looked up first: it begins the key of each table, and a job or a case is found by its own index on
	// id.
	addID(&w, "s.root = (SELECT root FROM @.jobs WHERE id = ?) AND s.job = ?", f.Job)
	addID(&w, "s.root = (SELECT root FROM @.cases WHERE id = ?) AND s.case_id = ?", f.Case)
	addID(&w, "s.root = ?", f.Root)
	w.AddText("s.kind = ?", string(f.Kind))
	w.AddText("s.target = ?", f.Target)
	if f.Topic {
		w.Plain("s.topic")
	}
	tables.AddStates(&w.Conditions, "s.state", f.States, func(s workitem.StepState) bool { return s == workitem.StepWaiting }, "s."+liveStep)
	end := w.Page(f.Page, "s.id")
	return listOf(r.c, "SELECT "+tables.Steps.List("s.")+" FROM "+from+w.Where()+end, w.Args, tables.ReadStep)
}

// Messages implements [store.Reader].
func (r *reader) Messages(_ context.Context, f store.MessageFilter) ([]*state.Message, error) {
	w := newConditions()
	from := w.from("messages", "m", f.Roots)
	addID(&w, "m.root = (SELECT root FROM @.cases WHERE id = ?) AND m.case_id = ?", f.Case)
	addID(&w, "m.root = ?", f.Root)
	w.AddText("m.name = ?", f.Name)
	if f.Unread {
		w.Plain("m." + unread)
	}
	end := w.Page(f.Page, "m.id")
	return listOf(r.c, "SELECT "+tables.Messages.List("m.")+" FROM "+from+w.Where()+end, w.Args, tables.ReadMessage)
}
