package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Load implements [store.Tx]. Cases that are newer than the tables are taken from memory.
// The tree is the caller's to change: values from the window are shared with readers, and are copied before their
// first change (see state.Tree).
func (tx *transaction) Load(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if tx.gone(root) {
		return nil, removed(root)
	}
	t, err := loadTree(tx.s.w, tx.s.nets, root, tx.newer)
	return t, tx.met(err)
}

// newer returns a case if memory has a newer value than the tables; nil if not.
//
// The sources, in the order in which they are searched; the first that has an id has its newest value:
//
//	appended    what this transaction has changed, in memory
//	window      what was committed, in memory
//	tables      what was written, by SQL
func (tx *transaction) newer(id workitem.CaseID) *state.Case {
	return cmp.Or(tx.appended.Case(id), tx.s.window.cases[id])
}

// Root implements [store.Tx].
func (tx *transaction) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	if err := tx.usable(); err != nil {
		return workitem.CaseID{}, err
	}
	root, err := tx.findRoot(id)
	if err == nil && tx.gone(root) {
		return workitem.CaseID{}, removed(root)
	}
	return root, tx.met(err)
}

// The case of a newer item may be unchanged itself; then the tables have it.
func (tx *transaction) findRoot(id [16]byte) (workitem.CaseID, error) {
	if c := tx.newer(id); c != nil {
		return c.Root, nil
	}
	if it := cmp.Or(tx.appended.Item(id), tx.s.window.items[id]); it != nil {
		if c := tx.newer(it.Case); c != nil {
			return c.Root, nil
		}
		id = it.Case
	}
	if j := cmp.Or(tx.appended.Job(id), tx.s.window.jobs[id]); j != nil {
		return j.Root, nil
	}
	return findRoot(tx.s.w, id)
}

// Item implements [store.Tx].
func (tx *transaction) Item(_ context.Context, id workitem.ID) (*store.ItemRow, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	row, err := tx.findItem(id)
	if err == nil && tx.gone(row.Root) {
		return nil, removed(row.Root)
	}
	return row, tx.met(err)
}

// An item in memory has no root and no workflow of its own, so its case is needed too, from wherever its newest value
// is. These two never change, so a row that is older serves as well.
func (tx *transaction) findItem(id workitem.ID) (*store.ItemRow, error) {
	it := cmp.Or(tx.appended.Item(id), tx.s.window.items[id])
	if it == nil {
		return findItem(tx.s.w, id)
	}
	row := &store.ItemRow{Item: it}
	c := tx.newer(it.Case)
	if c == nil {
		var err error
		if c, err = loadCase(tx.s.w, tx.s.nets, it.Case); err != nil {
			return nil, err
		}
	}
	row.Root, row.Workflow = c.Root, c.Workflow
	return row, nil
}

// Steps implements [store.Tx]. Ids increase with time, so a sort by id merges the newer values.
func (tx *transaction) Steps(_ context.Context, owner [16]byte) ([]*workitem.Step, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	all, err := ownedSteps(tx.s.w, owner)
	if err != nil {
		return nil, tx.met(err)
	}
	// From the oldest source to the newest, so that the newest value of a step replaces the others: the table, the
	// window, this transaction.
	for _, id := range tx.s.window.owned[owner] {
		all = tables.PutStep(all, tx.s.window.steps[id])
	}
	return tx.appended.Steps(all, owner), nil
}

// KeyHolders implements [store.Tx].
func (tx *transaction) KeyHolders(_ context.Context, workflow, key string) ([]workitem.CaseID, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	w := conditions{tables.KeyHolders(tables.Dialect{ID: "?"}, workflow, key)}
	// The tables may be out of date: HoldersOf drops a holder that has ended since, using its newer value, and the two
	// other lists have new holders. By the index cases_key.
	w.Plain("key_unique = 1")
	ids := slices.Concat(tx.appended.Keyed(key), tx.s.window.keyed[key])
	err := tx.s.w.each("SELECT id FROM cases"+w.Where(), w.values(), func(r *tables.Row) error {
		ids = append(ids, tables.ID[workitem.CaseID](r))
		return r.Err
	})
	holders := tables.HoldersOf(workflow, key, ids, tx.newer)
	return slices.DeleteFunc(holders, tx.gone), tx.met(err)
}

// KeyStarts implements [store.Tx].
func (tx *transaction) KeyStarts(_ context.Context, workflow, key string, after time.Time) ([]store.KeyStart, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	w := conditions{tables.KeyStarts(tables.Dialect{ID: "?"}, workflow, key, after)}
	var all []store.KeyStart
	err := tx.s.w.each("SELECT id, created FROM cases"+w.Where(), w.values(), func(r *tables.Row) error {
		all = append(all, store.KeyStart{Case: tables.ID[workitem.CaseID](r), At: r.Time()})
		return r.Err
	})
	newer := tx.appended.Starts()
	for _, id := range tx.s.window.started[key] {
		if c := tx.s.window.cases[id]; c != nil { // it was not removed since
			newer = append(newer, c)
		}
	}
	all = tables.MergeStarts(all, newer, workflow, key, after)
	return slices.DeleteFunc(all, func(s store.KeyStart) bool { return tx.gone(s.Case) }), tx.met(err)
}

// Successors implements [store.Tx].
func (tx *transaction) Successors(_ context.Context, id workitem.CaseID) (all []workitem.CaseID, err error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	w := newConditions()
	addID(&w, "predecessor = ?", id)
	err = tx.s.w.each("SELECT id FROM cases"+w.Where(), w.values(), func(r *tables.Row) error {
		all = append(all, tables.ID[workitem.CaseID](r))
		return r.Err
	})
	newer := tx.appended.Starts()
	for _, fresh := range tx.s.window.successors[id] {
		if c := tx.s.window.cases[fresh]; c != nil { // it was not removed since
			newer = append(newer, c)
		}
	}
	all = tables.MergeSuccessors(all, newer, id)
	return slices.DeleteFunc(all, tx.gone), tx.met(err)
}

// Answered implements [store.Tx].
//
// The key of a removed case is free again, although its row may be in the table until the window is written.
func (tx *transaction) Answered(_ context.Context, key string) (*store.Entry, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	e, err := tx.answered(key)
	return e, tx.met(err)
}

func (tx *transaction) answered(key string) (*store.Entry, error) {
	// A key that was used earlier in this transaction is in no table yet.
	for i := range tx.appended {
		if e := tx.appended[i].Entry; e.Key == key && !tx.gone(e.Root) {
			return e, nil
		}
	}
	var seq int64
	// Two lookups by primary key. Keys belong to the journal and not to the tables that lag, so the window has none.
	err := tx.s.w.each("SELECT k.seq, j.root FROM idempotency_keys k JOIN journal j ON j.seq = k.seq WHERE k.key = ?",
		args(key), func(r *tables.Row) error {
			at, root := r.Number(), tables.ID[workitem.CaseID](r)
			if !tx.gone(root) {
				seq = at
			}
			return r.Err
		})
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, fmt.Errorf("no command with key %q: %w", key, store.ErrNotFound)
	}
	return findEntry(tx.s.w, tx.s.nets, seq, tx.newer)
}
