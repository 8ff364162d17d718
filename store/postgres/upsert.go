package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The rows of a transaction are written many at a time, each kind by two statements: new rows are inserted, and of
// existing rows only the changing columns are updated. So settled columns of a row, such as an input, are sent once.
// Steps and events are mostly written only once; they are inserted, or written by an upsert if they may exist.
var (
	caseRows = written[*state.Case]{
		table: tables.Cases, id: func(r caseRow) [16]byte { return r.v.ID }, settled: caseSettled, changes: caseChanges,
		beyond: func([]caseRow) []any { return nil },
	}.statements()

	itemRows = written[*workitem.Item]{
		table: tables.Items, id: func(r itemRow) [16]byte { return r.v.ID }, settled: itemSettled, changes: itemChanges,
		beyond: func([]itemRow) []any { return nil },
	}.statements()

	jobRows = written[*state.Job]{
		table: tables.Jobs, id: func(r jobRow) [16]byte { return r.v.ID }, settled: jobSettled, changes: jobChanges,
		beyond: func(l []jobRow) []any { return []any{numbers(l, func(r jobRow) int64 { return r.holder })} },
	}.statements("holder")

	insertSteps    = insert(tables.Steps, stepColumns(nil))
	upsertSteps    = upsert(tables.Steps, stepColumns(nil))
	upsertMessages = upsert(tables.Messages, messageColumns(nil))
)

// written has the statements for the rows of a table.
//
// There are two statements instead of one with ON CONFLICT, which would send all columns also for existing rows, insert
// an entry into the primary key before it finds the conflict, and fire BEFORE INSERT triggers.
//
//		INSERT   id, root, settled columns, changes      of a case once, when it is opened
//		UPDATE   id, root, changes                       with each later command
//
//	 An UPDATE that finds no row changes nothing, and an INSERT that finds one fails. Neither happens, since a tree
//	 that differs from the one in the database is stale.
type written[T comparable] struct {
	table            tables.Table
	id               func(row[T]) [16]byte
	settled, changes func([]row[T]) []any
	beyond           func([]row[T]) []any // further arguments of the statements

	insert, update statement
}

// statement writes rows that are given as columns. A commit of a single caller often has one row of a kind: as plain
// values, it takes the server and the driver two thirds of the time of arrays of length one (decision 030).
//
//	many   ... FROM unnest($1::uuid[], $2::text[]) AS u(id, state)
//	one    ... FROM (SELECT $1::uuid AS id, $2::text AS state) u
//
// Rows of new cases, items, jobs and entries are also written by COPY, see copy.go.
type statement struct{ many, one, copy string }

// newStatement returns the statements of a text, with the rows u in place of "%s".
func newStatement(text string, names []string, given []any) statement {
	return statement{many: fmt.Sprintf(text, unnest(names, given)), one: fmt.Sprintf(text, single(names, given))}
}

// queue adds the statement for n rows.
func (s statement) queue(b *batch, n int, columns []any) {
	if n == 1 {
		b.queue(s.one, onlyValues(columns)...)
		return
	}
	b.queue(s.many, columns...)
}

// inserted returns the arguments of insert.
func (w written[T]) inserted(l []row[T]) []any {
	values := slices.Concat(w.settled(l), w.changes(l))
	if !w.hasRoot() {
		values = append(values, rootsOf(l))
	}
	return append(values, w.beyond(l)...)
}

// hasRoot reports whether the root is one of the settled columns.
func (w written[T]) hasRoot() bool { return slices.Contains(w.table.Settled, "root") }

// updated returns the arguments of update.
func (w written[T]) updated(l []row[T]) []any {
	key := []any{rootsOf(l), ids(l, func(r row[T]) workitem.ID { return w.id(r) })}
	return slices.Concat(key, w.changes(l), w.beyond(l))
}

func rootsOf[T comparable](l []row[T]) uuidArray {
	return ids(l, func(r row[T]) workitem.CaseID { return r.root })
}

// statements returns w with its statements; beyond names the further arguments.
func (w written[T]) statements(beyond ...string) written[T] {
	columns, values, sets := w.table.Columns(), prefixed("u.", w.table.Columns()), prefixed("", w.table.Changes)
	for i, c := range sets {
		sets[i] = c + " = u." + c
	}
	switch w.table.Name {
	case tables.Items.Name:
		columns, values = append(columns, "root"), append(values, "u.root")
	case tables.Jobs.Name: // a job that another engine is running stays with it
		columns, values = append(columns, "holder"), append(values, "u.holder")
		// A command of this engine may write a job that another engine runs, for example with another lease. The fence
		// counts attempts: the same attempt stays with its engine, a new one belongs to this engine.
		sets = append(sets, "holder = CASE WHEN t.state = 'running' AND u.state = 'running' AND t.fence = u.fence THEN t.holder ELSE u.holder END")
	}
	name, given := "@."+w.table.Name, w.table.Columns()
	if !w.hasRoot() {
		given = append(given, "root")
	}
	given = append(given, beyond...)
	w.insert = newStatement("INSERT INTO "+name+" ("+strings.Join(columns, ", ")+") SELECT "+strings.Join(values, ", ")+" FROM %s", given, w.inserted(nil))
	w.insert.copy = copying(w.table.Name, given)
	given = append(append([]string{"root", "id"}, w.table.Changes...), beyond...)
	w.update = newStatement("UPDATE "+name+" t SET "+strings.Join(sets, ", ")+" FROM %s WHERE "+byKey, given, w.updated(nil))
	return w
}

// byKey finds the row t with the key of a row u by the primary key. For "t.root = u.root AND t.id = u.id" the planner
// may scan another index that has an id, which costs the same for a table that was small when it was last analyzed. A
// row comparison can only use an index that begins with the root, and no other index does.
const byKey = "(t.root, t.id) >= (u.root, u.id) AND (t.root, t.id) <= (u.root, u.id)"

func prefixed(prefix string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = prefix + name
	}
	return list
}

// unnest returns SQL for the given rows as a table u.
//
// Each column is one array parameter. So the statement has the same text for two rows and for a thousand, and is
// planned once.
func unnest(names []string, given []any) string {
	params := make([]string, len(given))
	for i, column := range given {
		params[i] = fmt.Sprintf("$%d::%s[]", i+1, typeOf(column))
	}
	return "unnest(" + strings.Join(params, ", ") + ") AS u(" + strings.Join(names, ", ") + ")"
}

// single returns SQL for a single row as a table u.
func single(names []string, given []any) string {
	values := make([]string, len(given))
	for i, column := range given {
		values[i] = fmt.Sprintf("$%d::%s AS %s", i+1, typeOf(column), names[i])
	}
	return "(SELECT " + strings.Join(values, ", ") + ") u"
}

func typeOf(column any) string {
	switch column.(type) {
	case uuidArray:
		return "uuid"
	case textArray:
		return "text"
	case bigintArray:
		return "bigint"
	case integerArray:
		return "integer"
	case boolArray:
		return "boolean"
	}
	panic(fmt.Sprintf("%T is no type of a column", column))
}

// upsert returns the statement that writes rows of a table that may exist. The given columns include the root.
func upsert(t tables.Table, given []any) statement {
	columns := append(t.Columns(), "root")
	sets := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		sets[i] = c + " = excluded." + c
	}
	return newStatement("INSERT INTO @."+t.Name+" ("+strings.Join(columns, ", ")+") SELECT u.* FROM %s"+
		" ORDER BY u.root, u.id ON CONFLICT (root, id) DO UPDATE SET "+strings.Join(sets, ", "), columns, given)
}

// insert returns the statement that writes new rows of a table.
func insert(t tables.Table, given []any) statement {
	columns := append(t.Columns(), "root")
	return newStatement("INSERT INTO @."+t.Name+" ("+strings.Join(columns, ", ")+") SELECT u.* FROM %s", columns, given)
}
