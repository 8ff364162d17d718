package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The rows of a transaction are written many at a time, each kind by two statements: those of what it opened are inserted, and of those that are
// there, what can change is updated. So what is settled of a row, such as an input, is sent once. Steps and events, which are mostly written
// once, are written by one statement.
var (
	caseRows = written[*state.Case]{
		table: tables.Cases, settled: caseSettled, changes: caseChanges,
		key: columns[*state.Case]{[]string{"id", "root", "workflow"}, func(l []*state.Case) []any {
			return []any{
				ids(l, func(c *state.Case) workitem.CaseID { return c.ID }),
				ids(l, func(c *state.Case) workitem.CaseID { return c.Root }),
				texts(l, func(c *state.Case) string { return c.Workflow }),
			}
		}},
	}.counted("case", "''")

	itemRows = written[itemRow]{
		table: tables.Items, settled: itemSettled, changes: itemChanges,
		key: columns[itemRow]{[]string{"id", "task"}, func(l []itemRow) []any {
			return []any{ids(l, func(r itemRow) workitem.ID { return r.v.ID }), texts(l, func(r itemRow) string { return r.v.Task })}
		}},
		further: columns[itemRow]{[]string{"root", "workflow"}, func(l []itemRow) []any {
			return []any{ids(l, func(r itemRow) workitem.CaseID { return r.root }), texts(l, func(r itemRow) string { return r.workflow })}
		}},
	}.counted("item", "u.task")

	jobRows = written[jobRow]{
		table: tables.Jobs, settled: jobSettled, changes: jobChanges,
		key: columns[jobRow]{[]string{"id", "root", "task"}, func(l []jobRow) []any {
			return []any{
				ids(l, func(r jobRow) workitem.JobID { return r.v.ID }),
				ids(l, func(r jobRow) workitem.CaseID { return r.root }),
				texts(l, func(r jobRow) string { return r.v.Task }),
			}
		}},
		further: columns[jobRow]{[]string{"workflow", "holder"}, func(l []jobRow) []any {
			return []any{texts(l, func(r jobRow) string { return r.workflow }), numbers(l, func(r jobRow) int64 { return r.holder })}
		}},
	}.counted("job", "u.task")

	upsertSteps    = upsert(tables.Steps, stepColumns(nil))
	upsertMessages = upsert(tables.Messages, messageColumns(nil))
)

// columns are some columns of rows, and how their values are found.
type columns[V any] struct {
	names  []string
	values func([]V) []any
}

// written is how the rows of a table are written whose numbers are kept by state.
type written[V any] struct {
	table            tables.Table
	settled, changes func([]V) []any
	key              columns[V] // by which a row that is there is found, and what it counts as
	further          columns[V] // beyond those of the table; values may be nil

	insert, update string
}

// inserted are the arguments of insert.
func (w written[V]) inserted(l []V) []any {
	return slices.Concat(w.settled(l), w.changes(l), w.beyond(l))
}

// updated are the arguments of update.
func (w written[V]) updated(l []V) []any {
	return slices.Concat(w.key.values(l), w.changes(l), w.beyond(l))
}

func (w written[V]) beyond(l []V) []any {
	if w.further.values == nil {
		return nil
	}
	return w.further.values(l)
}

// counted makes the statements. The updated rows are compared with what they were: all parts of a statement see the same state.
func (w written[V]) counted(what, task string) written[V] {
	columns, values, sets := w.table.Columns(), prefixed("u.", w.table.Columns()), prefixed("", w.table.Changes)
	for i, c := range sets {
		sets[i] = c + " = u." + c
	}
	switch w.table.Name {
	case tables.Cases.Name: // which revision of the tree wrote the row
		const rev = "(SELECT j.rev FROM @.journal j WHERE j.root = u.root ORDER BY j.rev DESC LIMIT 1)"
		columns, values, sets = append(columns, "rev"), append(values, rev), append(sets, "rev = "+rev)
	case tables.Items.Name:
		columns, values = append(columns, "root"), append(values, "u.root")
	case tables.Jobs.Name: // a job that another engine is at work on stays with it
		columns, values = append(columns, "holder"), append(values, "u.holder")
		sets = append(sets, "holder = CASE WHEN t.state = 'running' AND u.state = 'running' AND t.fence = u.fence THEN t.holder ELSE u.holder END")
	}
	name := "@." + w.table.Name
	was := "u CROSS JOIN LATERAL (SELECT * FROM " + name + " t WHERE " + byKey + " OFFSET 0) t"
	now := "SELECT u.workflow, " + task + " AS task, u.state, 1 AS n FROM u"
	w.insert = "WITH " + source(slices.Concat(w.table.Columns(), w.further.names), w.inserted(nil)) +
		", w AS (INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM u)" +
		w.ended("") + countedBy(what, now)
	w.update = "WITH " + source(slices.Concat(w.key.names, w.table.Changes, w.further.names), w.updated(nil)) +
		", w AS (UPDATE " + name + " t SET " + strings.Join(sets, ", ") + " FROM u WHERE " + byKey + ")" +
		w.ended(was) + countedBy(what, now+" UNION ALL SELECT u.workflow, "+task+", t.state, -1 FROM "+was)
	return w
}

// byKey finds, for a row u, the row t that has its key, by the primary key. As "t.root = u.root AND t.id = u.id" the server could read all of
// another index that has an id: of a table that was small when it was last analyzed, that costs no more. A comparison of rows is looked up only in
// an index that begins with the root, which no other does.
const byKey = "(t.root, t.id) >= (u.root, u.id) AND (t.root, t.id) <= (u.root, u.id)"

func prefixed(prefix string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = prefix + name
	}
	return list
}

// ended is the part of a statement that counts which items have ended. The rows were there before if was says where.
func (w written[V]) ended(was string) string {
	if w.table.Name != tables.Items.Name {
		return ""
	}
	rows := "SELECT " + endedColumns("u") + ", 1 AS n FROM u WHERE " + hasEnded("u")
	if was != "" {
		rows += " UNION ALL SELECT " + endedColumns("t") + ", -1 FROM " + was + " WHERE " + hasEnded("t")
	}
	return ", e AS (INSERT INTO @.ended_deltas (hour, workflow, task, state, took, n) SELECT hour, workflow, task, state, took, sum(n) FROM (" +
		rows + ") d GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0)"
}

// countedBy ends a statement, and counts rows.
func countedBy(what, rows string) string {
	return " INSERT INTO @.count_deltas (what, workflow, task, state, n) SELECT '" + what + "', d.workflow, d.task, d.state, sum(d.n) " +
		"FROM (" + rows + ") d GROUP BY 1, 2, 3, 4 HAVING sum(d.n) <> 0"
}

// source is the rows that are given, as a table u of a statement. They are in the order in which all statements lock rows.
func source(names []string, given []any) string {
	return "u AS MATERIALIZED (SELECT * FROM " + unnest(names, given) + " ORDER BY u.root, u.id)"
}

func unnest(names []string, given []any) string {
	params := make([]string, len(given))
	for i, column := range given {
		params[i] = fmt.Sprintf("$%d::%s[]", i+1, typeOf(column))
	}
	return "unnest(" + strings.Join(params, ", ") + ") AS u(" + strings.Join(names, ", ") + ")"
}

func typeOf(column any) string {
	switch column.(type) {
	case []pgtype.UUID:
		return "uuid"
	case []string, []pgtype.Text:
		return "text"
	case []int64, []pgtype.Int8:
		return "bigint"
	case []bool:
		return "boolean"
	}
	panic(fmt.Sprintf("%T is no type of a column", column))
}

// upsert is the statement that writes rows of a table, which are there or not. What is given has the root, too.
func upsert(t tables.Table, given []any) string {
	columns := append(t.Columns(), "root")
	sets := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		sets[i] = c + " = excluded." + c
	}
	return "INSERT INTO @." + t.Name + " (" + strings.Join(columns, ", ") + ") SELECT u.* FROM " + unnest(columns, given) +
		" ORDER BY u.root, u.id ON CONFLICT (root, id) DO UPDATE SET " + strings.Join(sets, ", ")
}

// hasEnded is the condition that an item counts as one that ended.
func hasEnded(table string) string { return table + ".state IN ('completed', 'failed')" }

// endedColumns are the hour, workflow, task, state and class of duration that an item of a table counts as, see [store.EndedOf]; a table u has the
// workflows.
func endedColumns(table string) string {
	return strings.NewReplacer("t.", table+".").Replace("floor(t.ended / 3600000000.0)::bigint AS hour, ") + "u.workflow, " +
		strings.NewReplacer("t.", table+".").Replace("t.task, t.state, CASE WHEN t.state = 'completed' AND t.started IS NOT NULL THEN "+tookClass+" ELSE 0 END AS took")
}

// tookClass is [store.TookClass]: the position of the highest one among 64 bits is 64 less its power of two.
const tookClass = "(SELECT CASE WHEN us < 8 THEN us ELSE 8 * (62 - p) + ((us >> (61 - p)) & 7) END FROM (SELECT us, position('1' IN us::bit(64)::text) AS p " +
	"FROM (SELECT greatest(t.ended - t.started, 0) AS us) a) b)"
