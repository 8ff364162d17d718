package commit

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Several engines may have a store open. The trees in memory are then a cache, and concurrency control is optimistic:
// the store refuses a commit if another engine has changed one of the trees that its requests opened, and the requests
// run again on current trees.
//
//	batch: A B C ──▶ commit ──▶ the case of B is stale ──▶ A B C again, with the current tree ──▶ commit
//	                                                         B in a transaction of its own, with a lock, if the case
//	                                                         was stale within the last second

const (
	// maxTries is the number of runs after which a caller gets the conflict as its error.
	maxTries = 10

	// maxDisconnects is how often the connection may end while a request runs.
	maxDisconnects = 3
)

func isStale(err error) bool {
	var stale *store.StaleError
	return errors.As(err, &stale)
}

// splitRolledBack handles the requests of a transaction that was refused because another engine has changed a case, or that did not happen because
// its connection was lost. It returns the requests to run again together, and those to run again each in its own transaction. A request that must
// not run twice gets the error.
func (w *Writer) splitRolledBack(batch []*Request, err error) (again, separate []*Request) {
	stale := &store.StaleError{}
	errors.As(err, &stale)
	// It is called before any request runs again: they would find jobs that this engine no longer has.
	if errors.Is(err, store.ErrFenced) {
		w.o.Fenced()
	}
	if stale.Locked {
		w.conflicts.noteLocked(stale.Roots...)
	}
	repeated := w.conflicts.note(stale.Roots, w.o.Now())
	changed, undone := make(map[workitem.CaseID]bool, len(stale.Roots)), false
	for _, root := range stale.Roots {
		changed[root] = true
		w.trees.evict(root)
	}
	for _, r := range batch {
		if r.tx == nil { // it was withdrawn before it began
			w.deliver(r)
			continue
		}
		w.trees.forget(r.tx)
		r.endExtension(err)
		r.tries++
		unconfirmed := r.isUnconfirmed(undone) && (undone || !isStale(err) || r.tx.openedAny(changed))
		undone = undone || r.err == nil && !r.Reads
		switch {
		case r.Once && unconfirmed:
			r.err = repeat(r.err)
			w.deliver(r)
		case r.Once && r.err != nil:
			w.deliver(r)
		case stale.Locked && r.tx.openedAny(changed):
			r.err = refusedBy(err)
			w.deliver(r)
		case r.Once && isStale(err):
			r.err = conflict(err)
			w.deliver(r)
		case r.Once || r.tries >= maxTries:
			r.err = refusedBy(err)
			w.deliver(r)
		default:
			r.err = nil
			if r.separate = r.separate || r.tx.openedAny(repeated); r.separate {
				separate = append(separate, r)
			} else {
				again = append(again, r)
			}
		}
	}
	return again, separate
}

// mayRepeat reports whether a request that ended its transaction is run again.
func (w *Writer) mayRepeat(failed *Request) bool {
	switch {
	case errors.Is(failed.err, store.ErrDisconnected):
		if failed.disconnects++; failed.disconnects < maxDisconnects {
			return true
		}
		failed.err = fmt.Errorf("%w, %d times: %w", fault.ErrOwnSQL, maxDisconnects, failed.err)
	// The connection ended while the request read something. The next transaction makes a new one; if it cannot, it fails before the request runs.
	case errors.Is(failed.err, store.ErrNotCommitted):
		failed.disconnects++
		return failed.disconnects < maxDisconnects
	case errors.Is(failed.err, store.ErrConflict):
		failed.tries++
		return failed.tries < maxTries
	}
	return false
}

// conflict returns the error of a request that must not run again.
func conflict(err error) error {
	return fmt.Errorf("%w; repeat the command", err)
}

// expect makes the commit depend on a tree that a request opens, also if the request fails: its error may be due to
// stale state, and the caller must not get it then.
func (tx *Tx) expect(tree *state.Tree) {
	if tx.shared != nil {
		tx.opened = append(tx.opened, tree.Root)
		tx.shared.Expect(tree)
	}
}

// openedAny reports whether the request opened one of the given root cases.
// The trees that the request has opened are listed also if it changed none of them.
func (tx *Tx) openedAny(roots map[workitem.CaseID]bool) bool {
	for _, root := range tx.opened {
		if roots[root] {
			return true
		}
	}
	return false
}

// Shared returns the transaction of a store that several engines have open; nil if only this engine has it open.
func (tx *Tx) Shared() store.SharedTx { return tx.shared }

// raiseIDs makes new ids greater than those of a tree. Another engine, whose clock is ahead, may have made these, and a
// case relies on the ids of its items, jobs and steps being in the order of their creation.
func raiseIDs(ids *workitem.Generator, tree *state.Tree) {
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
