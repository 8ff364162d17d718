package commit

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Several engines may have a store open. What a writer has in memory is a cache then: each commit is refused if one of the trees that
// its requests opened was changed by another engine, and the requests run again on what the store has.
//
//	batch: A B C ──▶ commit ──▶ case of B is stale ──▶ A B C again, on fresh trees ──▶ commit
//	                                                     B apart, with a lock, if the case was stale a moment ago

const (
	// maxTries is how often a request runs before its caller gets the conflict.
	maxTries = 10

	// hot is how long after a conflict the next one on the same root case has its requests run apart. Engines that change one case all
	// the time so queue for its lock, instead of starving one another.
	hot = time.Second

	// maxConflicts bounds how many root cases are remembered as hot.
	maxConflicts = 1000
)

func isStale(err error) bool {
	var stale *store.StaleError
	return errors.As(err, &stale)
}

// staleOf takes the requests of a transaction that another engine was faster than. It returns those that are to be done again together,
// and those that are to be done again apart. One that may not run twice gets the error.
func (w *Writer) staleOf(batch []*Request, err error) (again, apart []*Request) {
	var stale *store.StaleError
	errors.As(err, &stale)
	if errors.Is(err, store.ErrFenced) {
		w.o.Fenced()
	}
	repeated := w.conflicts.note(stale.Roots, w.o.Now())
	for _, root := range stale.Roots {
		w.trees.evict(root)
	}
	for _, r := range batch {
		if r.tx == nil { // it was withdrawn before it began
			w.answered(r)
			continue
		}
		w.trees.forget(r.tx)
		r.endExtension(err)
		r.tries++
		switch {
		case r.Once && r.err != nil:
			w.answered(r)
		case r.Once:
			r.err = conflict(err)
			w.answered(r)
		case r.tries >= maxTries:
			r.err = refusedBy(err)
			w.answered(r)
		default:
			r.err = nil
			if r.separate = r.separate || r.tx.openedAny(repeated); r.separate {
				apart = append(apart, r)
			} else {
				again = append(again, r)
			}
		}
	}
	return again, apart
}

// conflict is the error of a request that is not done again.
func conflict(err error) error {
	return fmt.Errorf("%w; repeat the command", err)
}

// conflicts remembers which root cases were stale when.
type conflicts map[workitem.CaseID]time.Time

// note takes the root cases of a conflict, and returns those that had one a moment ago.
func (c conflicts) note(roots []workitem.CaseID, now time.Time) map[workitem.CaseID]bool {
	if len(c) > maxConflicts {
		clear(c)
	}
	repeated := make(map[workitem.CaseID]bool)
	for _, root := range roots {
		if last, known := c[root]; known && now.Sub(last) < hot {
			repeated[root] = true
		}
		c[root] = now
	}
	return repeated
}

// expect has the commit depend on a tree that a request opens, whatever becomes of the request.
func (tx *Tx) expect(tree *state.Tree) {
	if tx.shared != nil {
		tx.opened = append(tx.opened, tree.Root)
		tx.shared.Expect(tree)
	}
}

// openedAny reports whether the request opened one of some root cases.
func (tx *Tx) openedAny(roots map[workitem.CaseID]bool) bool {
	for _, root := range tx.opened {
		if roots[root] {
			return true
		}
	}
	return false
}

// lock keeps other engines from a root case that is to be opened, if the request is to lock what it opens. A tree in memory that is
// not the newest is dropped.
func (tx *Tx) lock(root workitem.CaseID) error {
	if !tx.locks {
		return nil
	}
	last, err := tx.shared.LockCase(tx.ctx, root)
	if err != nil {
		return fmt.Errorf("case %s: %w", root, err)
	}
	if c := tx.w.trees.byRoot[root]; c != nil && c.tree.Case(root).LastSeq != last {
		tx.w.trees.evict(root)
	}
	return nil
}

// Shared is the transaction of a store that several engines have open; nil if the store is this engine's alone.
func (tx *Tx) Shared() store.SharedTx { return tx.shared }

// raise has ids rise above those of a tree, which another engine may have made by a clock that is ahead.
func raise(ids *workitem.Generator, tree *state.Tree) {
	tree.Each(func(c *state.Case) {
		ids.Above(c.ID)
		for it := range c.Items.All() {
			ids.Above(it.ID)
		}
		for j := range c.Jobs.All() {
			ids.Above(j.ID)
		}
		for s := range c.Steps.All() {
			ids.Above(s.ID)
		}
		for m := range c.Mail.All() {
			ids.Above(m.ID)
		}
	})
}
