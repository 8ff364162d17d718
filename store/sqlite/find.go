package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Load implements [store.Tx]. What is newer than the tables is taken from memory.
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

// newer finds a case that the tables do not show as it is now; nil if there is none.
func (tx *transaction) newer(id workitem.CaseID) *state.Case {
	c := lastOf(tx, func(d *state.Dirty) []*state.Case { return d.Cases },
		func(c *state.Case) bool { return c.ID == id })
	if c == nil {
		c = tx.s.window.cases[id]
	}
	return c
}

// newerItem is like newer for an item.
func (tx *transaction) newerItem(id workitem.ID) *workitem.Item {
	it := lastOf(tx, func(d *state.Dirty) []*workitem.Item { return d.Items },
		func(it *workitem.Item) bool { return it.ID == id })
	if it == nil {
		it = tx.s.window.items[id]
	}
	return it
}

// newerJob is like newer for a job.
func (tx *transaction) newerJob(id workitem.JobID) *state.Job {
	j := lastOf(tx, func(d *state.Dirty) []*state.Job { return d.Jobs }, func(j *state.Job) bool { return j.ID == id })
	if j == nil {
		j = tx.s.window.jobs[id]
	}
	return j
}

// lastOf finds the newest value that the transaction has appended of something; nil if it has not.
func lastOf[T any](tx *transaction, list func(*state.Dirty) []*T, is func(*T) bool) *T {
	for i := len(tx.appended) - 1; i >= 0; i-- {
		all := list(&tx.appended[i].dirty)
		if at := slices.IndexFunc(all, is); at >= 0 {
			return all[at]
		}
	}
	return nil
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

func (tx *transaction) findRoot(id [16]byte) (workitem.CaseID, error) {
	if c := tx.newer(id); c != nil {
		return c.Root, nil
	}
	if it := tx.newerItem(id); it != nil {
		if c := tx.newer(it.Case); c != nil {
			return c.Root, nil
		}
		id = it.Case
	}
	if j := tx.newerJob(id); j != nil {
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

func (tx *transaction) findItem(id workitem.ID) (*store.ItemRow, error) {
	it := tx.newerItem(id)
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

// Steps implements [store.Tx]. Ids rise with time, so newer values fall into their places.
func (tx *transaction) Steps(_ context.Context, owner [16]byte) ([]*workitem.Step, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	all, err := ownedSteps(tx.s.w, owner)
	if err != nil {
		return nil, tx.met(err)
	}
	put := func(s *workitem.Step) {
		i, known := slices.BinarySearchFunc(all, s, func(a, b *workitem.Step) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		if known {
			all[i] = s
		} else {
			all = slices.Insert(all, i, s)
		}
	}
	for _, id := range tx.s.window.owned[owner] {
		put(tx.s.window.steps[id])
	}
	for i := range tx.appended {
		for _, s := range tx.appended[i].dirty.Steps {
			if s.Owner() == owner {
				put(s)
			}
		}
	}
	return all, nil
}

// Answered implements [store.Tx].
func (tx *transaction) Answered(_ context.Context, key string) (*store.Entry, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	e, err := tx.answered(key)
	return e, tx.met(err)
}

func (tx *transaction) answered(key string) (*store.Entry, error) {
	for i := range tx.appended {
		if e := tx.appended[i].entry; e.Key == key && !tx.gone(e.Root) {
			return e, nil
		}
	}
	var seq int64
	err := tx.s.w.each("SELECT k.seq, j.root FROM idempotency_keys k JOIN journal j ON j.seq = k.seq WHERE k.key = ?",
		args(key), func(r *row) error {
			at, root := r.number(), id[workitem.CaseID](r)
			if !tx.gone(root) {
				seq = at
			}
			return r.err
		})
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, fmt.Errorf("no command with key %q: %w", key, store.ErrNotFound)
	}
	return findEntry(tx.s.w, tx.s.nets, seq, tx.newer)
}
