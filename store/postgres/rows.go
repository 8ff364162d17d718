package postgres

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// rowsOf holds the rows of one kind that a transaction writes, each in its latest state: a row that several commands
// change is written once.
type rowsOf[K ~[16]byte, T comparable] map[K]row[T]

// put adds a row or replaces its state. The state before the transaction (was) stays that of the first put.
func (all rowsOf[K, T]) put(id K, r row[T]) {
	if earlier, ok := all[id]; ok {
		r.was = earlier.was
	}
	all[id] = r
}

// rows holds the changed rows of commands.
//
// Two commands:
//
//	command 1 opens case A and item a    cases {A: was nil}   items {a: was nil}
//	command 2 starts item a              cases {A: was nil}   items {a: was nil}, both in their newer state
//	written                              INSERT of A and of a, with what command 2 has left
//	counted                              one more started case, one more started item
type rows struct {
	cases        rowsOf[workitem.CaseID, *state.Case]
	items        rowsOf[workitem.ID, *workitem.Item]
	jobs         rowsOf[workitem.JobID, *state.Job]
	fresh, steps map[workitem.StepID]stepRow
	messages     map[workitem.MessageID]messageRow
}

func newRows() *rows {
	return &rows{make(rowsOf[workitem.CaseID, *state.Case]), make(rowsOf[workitem.ID, *workitem.Item]), make(rowsOf[workitem.JobID, *state.Job]),
		make(map[workitem.StepID]stepRow), make(map[workitem.StepID]stepRow), make(map[workitem.MessageID]messageRow)}
}

// add adds what commands have changed.
func (r *rows) add(entries []tables.Command, holderOf func(*state.Job) int64) {
	was := make(map[workitem.CaseID]*state.Case)
	for _, c := range entries {
		root := c.Entry.Root
		clear(was)
		// Later commands of the transaction may change the same row: put keeps the state from before the
		// first of them.
		// Cases come before items and jobs of the same command: these take the workflow and the state before the
		// command from their case, which changes whenever one of them does.
		for i, v := range c.Dirty.Cases {
			was[v.ID] = c.Dirty.Was[i]
			r.cases.put(v.ID, caseRow{v: v, was: c.Dirty.Was[i], root: root, workflow: v.Workflow})
		}
		for _, v := range c.Dirty.Items {
			row := itemRow{v: v, root: root, workflow: r.cases[v.Case].workflow}
			if before := was[v.Case]; before != nil {
				row.was = before.Item(v.ID)
			}
			r.items.put(v.ID, row)
		}
		for _, v := range c.Dirty.Jobs {
			row := jobRow{v: v, root: root, workflow: r.cases[v.Case].workflow, holder: holderOf(v)}
			if before := was[v.Case]; before != nil {
				row.was = before.Job(v.ID)
			}
			r.jobs.put(v.ID, row)
		}
		// A step that the transaction opens has no row yet, and is inserted. Any other is written by an upsert, which
		// costs more.
		opened := openedSteps(c)
		for _, v := range c.Dirty.Steps {
			if _, is := r.fresh[v.ID]; is || opened[v.ID] {
				r.fresh[v.ID] = stepRow{v: v, root: root}
			} else {
				r.steps[v.ID] = stepRow{v: v, root: root}
			}
		}
		for _, v := range c.Dirty.Messages {
			r.messages[v.ID] = messageRow{v: v, root: root}
		}
	}
}

// queue adds the statements that write the rows, and counts the changes.
func (r *rows) queue(tx *transaction, b *batch) {
	if tx.counts == nil {
		tx.counts = newTally()
	}
	write(tx, b, caseRows, r.cases, tx.counts.cases)
	tx.partIfLarge(b)
	write(tx, b, itemRows, r.items, tx.counts.items)
	tx.partIfLarge(b)
	write(tx, b, jobRows, r.jobs, tx.counts.jobs)
	if len(r.fresh) > 0 {
		insertSteps.queue(b, len(r.fresh), stepColumns(values(r.fresh)))
	}
	if len(r.steps) > 0 {
		upsertSteps.queue(b, len(r.steps), stepColumns(values(r.steps)))
	}
	if len(r.messages) > 0 {
		upsertMessages.queue(b, len(r.messages), messageColumns(values(r.messages)))
	}
}

// queueTables adds the statements that write the changed rows, and counts the changes.
func (tx *transaction) queueTables(b *batch, entries []tables.Command) {
	r := newRows()
	r.add(entries, tx.holderOf)
	r.queue(tx, b)
}

// openedSteps returns the steps that an entry opens. Their ids are unique.
func openedSteps(c tables.Command) map[workitem.StepID]bool {
	if len(c.Dirty.Steps) == 0 {
		return nil
	}
	opened := make(map[workitem.StepID]bool)
	for _, e := range c.Entry.Changes {
		if o, is := e.(*state.StepOpened); is {
			opened[o.Step.ID] = true
		}
	}
	return opened
}

// write adds the statements that insert new rows of one kind and update existing ones, and counts them. Rows are sorted
// by key, and the kinds are written in a fixed order: transactions that write the same rows lock them in the
// same order, so they wait for each other and cannot deadlock.
func write[K ~[16]byte, T comparable](tx *transaction, b *batch, how written[T], all rowsOf[K, T], count func(r row[T])) {
	var none T
	var fresh, known []row[T]
	for _, r := range all {
		if count(r); r.was == none {
			fresh = append(fresh, r)
		} else {
			known = append(known, r)
		}
	}
	if len(fresh) > 0 {
		tx.queueNew(b, how.insert, len(fresh), how.inserted(how.sorted(fresh)))
	}
	if len(known) > 0 {
		how.update.queue(b, len(known), how.updated(how.sorted(known)))
	}
}

// sorted sorts rows by their keys.
// The root comes first, as in the primary keys: the rows of one tree are adjacent, in the table and in the index.
func (w written[T]) sorted(l []row[T]) []row[T] {
	slices.SortFunc(l, func(a, b row[T]) int {
		x, y := w.id(a), w.id(b)
		return cmp.Or(bytes.Compare(a.root[:], b.root[:]), bytes.Compare(x[:], y[:]))
	})
	return l
}

// values returns the values of a map in the order of their ids.
// A map has no order, and the order of the rows is that in which the server locks them.
func values[K interface {
	comparable
	~[16]byte
}, V any](all map[K]V) []V {
	list := make([]V, 0, len(all))
	for _, id := range sorted(maps.Keys(all)) {
		list = append(list, all[id])
	}
	return list
}

func sorted[K ~[16]byte](keys func(func(K) bool)) []K {
	return slices.SortedFunc(keys, func(a, b K) int {
		x, y := [16]byte(a), [16]byte(b)
		return bytes.Compare(x[:], y[:])
	})
}

// tally collects by how much a transaction changes the counts of cases, items and jobs, and of ended items and cases.
// It is computed from the states in memory; queueCheck fails the commit if these are not the states in the database.
//
// The changes are inserted as rows of count_deltas, which Idle later adds to counts. Updating counts directly would
// make nearly all commits wait for each other, since they change the same few rows.
type tally struct {
	counts map[store.Count]int64
	ended  store.EndedCounts
}

func newTally() *tally {
	return &tally{make(map[store.Count]int64), make(store.EndedCounts)}
}

func (t *tally) cases(r caseRow) {
	count := func(c *state.Case, n int64) {
		t.counts[store.Count{What: "case", Workflow: r.workflow, State: c.State.String()}] += n
		t.ended.AddCase(c, n)
	}
	if count(r.v, 1); r.was != nil {
		count(r.was, -1) // a failed case may be resumed
	}
}

func (t *tally) items(r itemRow) {
	count := func(it *workitem.Item, n int64) {
		t.counts[store.Count{What: "item", Workflow: r.workflow, Task: it.Task, State: it.State.String()}] += n
		t.ended.AddItem(r.workflow, it, n)
	}
	if count(r.v, 1); r.was != nil {
		count(r.was, -1)
	}
}

// Jobs have no histogram of durations: how long work takes is counted with its items.
func (t *tally) jobs(r jobRow) {
	if r.was != nil {
		t.counts[store.Count{What: "job", Workflow: r.workflow, Task: r.v.Task, State: r.was.State.String()}]--
	}
	t.counts[store.Count{What: "job", Workflow: r.workflow, Task: r.v.Task, State: r.v.State.String()}]++
}

var (
	addCounts = newDeltas("count_deltas", "what text", "workflow text", "task text", "state text", "n bigint")
	addEnded  = newDeltas("ended_deltas", "hour bigint", "workflow text", "task text", "state text", "took bigint", "n bigint")
)

// fewDeltas is the largest number of rows that are sent as values: each number of rows needs its own statement.
const fewDeltas = 8

// deltas are the statements that insert rows into a table without a key. A few rows are sent as values, which the
// server processes faster than arrays.
type deltas struct {
	many string
	few  [fewDeltas + 1]string // by the number of rows
}

// newDeltas returns the statements for a table with the given columns and types.
// For a table t with the columns what and n:
//
//	many     INSERT INTO @.t (what, n) SELECT * FROM unnest($1::text[], $2::bigint[])
//	few[2]   INSERT INTO @.t (what, n) VALUES ($1::text, $2::bigint), ($3::text, $4::bigint)
func newDeltas(table string, columns ...string) (d deltas) {
	var names, types, arrays []string
	for i, c := range columns {
		name, of, _ := strings.Cut(c, " ")
		names, types, arrays = append(names, name), append(types, of), append(arrays, fmt.Sprintf("$%d::%s[]", i+1, of))
	}
	into := "INSERT INTO @." + table + " (" + strings.Join(names, ", ") + ") "
	d.many = into + "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")"
	var rows []string
	for n := 1; n <= fewDeltas; n++ {
		row := make([]string, len(types))
		for i, of := range types {
			row[i] = fmt.Sprintf("$%d::%s", (n-1)*len(types)+i+1, of)
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
		d.few[n] = into + "VALUES " + strings.Join(rows, ", ")
	}
	return d
}

// queue adds the statement for n rows: row returns a single row, columns returns all as columns.
// Only one of both functions is called, since each encodes all values.
func (d deltas) queue(b *batch, n int, row func(i int) []any, columns func() []any) {
	switch {
	case n == 0:
	case n > fewDeltas:
		b.queue(d.many, columns()...)
	default:
		var all []any
		for i := range n {
			all = append(all, row(i)...)
		}
		b.queue(d.few[n], all...)
	}
}

// queue adds the statements that write the changes of the counts.
func (t *tally) queue(b *batch) {
	counts := changedCounts(t.counts, func(c *store.Count, n int64) { c.N = n })
	addCounts.queue(b, len(counts), func(i int) []any {
		c := counts[i]
		return []any{c.What, c.Workflow, c.Task, c.State, c.N}
	}, func() []any {
		return []any{texts(counts, func(c store.Count) string { return c.What }), texts(counts, func(c store.Count) string { return c.Workflow }),
			texts(counts, func(c store.Count) string { return c.Task }), texts(counts, func(c store.Count) string { return c.State }),
			numbers(counts, func(c store.Count) int64 { return c.N })}
	})
	ended := changedCounts(t.ended, func(e *store.Ended, n int64) { e.N = n })
	addEnded.queue(b, len(ended), func(i int) []any {
		e := ended[i]
		return []any{hourOf(e), e.Workflow, e.Task, e.State.String(), e.Took, e.N}
	}, func() []any {
		return []any{numbers(ended, hourOf), texts(ended, func(e store.Ended) string { return e.Workflow }),
			texts(ended, func(e store.Ended) string { return e.Task }), texts(ended, func(e store.Ended) string { return e.State.String() }),
			numbers(ended, func(e store.Ended) int64 { return int64(e.Took) }), numbers(ended, func(e store.Ended) int64 { return e.N })}
	})
}

// hourOf counts the hours since 1970.
func hourOf(e store.Ended) int64 { return e.Hour.Unix() / 3600 }

// changedCounts lists the changed counts with their changes.
// A transaction in which one item starts and another one ends leaves the number of started ones as it was, and
// inserts no row for it.
func changedCounts[C comparable](all map[C]int64, set func(*C, int64)) (list []C) {
	for c, n := range all {
		if n != 0 {
			set(&c, n)
			list = append(list, c)
		}
	}
	return list
}
