package commit

import (
	"iter"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// writes are the trees that a transaction is about, in the order in which it began with them. Most transactions are about one, and an
// Update may start thousands of cases, each of which asks for its root case and for the cases with its business key. So a longer list has
// indexes: without them, 10,000 starts with a business key in batches of 5,000 took 2.4 s of 9 s of CPU to go through the list.
type writes struct {
	list   []*TreeWrite
	byRoot map[workitem.CaseID]*TreeWrite // nil while the list is short

	byKey   map[businessKey][]*TreeWrite
	indexed int // how many of the list byKey has
}

// businessKey is one of a workflow. That of a case does not change.
type businessKey struct{ workflow, key string }

// shortList is how long a list is gone through instead of indexed.
const shortList = 8

func (w *writes) add(u *TreeWrite) {
	w.list = append(w.list, u)
	switch {
	case w.byRoot != nil:
		w.byRoot[u.Tree.Root] = u
	case len(w.list) > shortList:
		w.byRoot = make(map[workitem.CaseID]*TreeWrite, 2*shortList)
		for _, u := range w.list {
			w.byRoot[u.Tree.Root] = u
		}
	}
}

// of finds what is written to the tree of a root case; nil if nothing is.
func (w *writes) of(root workitem.CaseID) *TreeWrite {
	if w.byRoot != nil {
		return w.byRoot[root]
	}
	for _, u := range w.list {
		if u.Tree.Root == root {
			return u
		}
	}
	return nil
}

// withKey yields the root cases that have a business key, whether they hold it or not. One that is being created has none yet.
func (w *writes) withKey(k businessKey) iter.Seq[*state.Case] {
	return func(yield func(*state.Case) bool) {
		w.indexKeys()
		for _, u := range w.byKey[k] {
			if c := u.Tree.Case(u.Tree.Root); c != nil && !yield(c) {
				return
			}
		}
		for _, u := range w.list[w.indexed:] {
			if c := u.Tree.Case(u.Tree.Root); c != nil && keyOf(c) == k && !yield(c) {
				return
			}
		}
	}
}

func keyOf(c *state.Case) businessKey { return businessKey{c.Workflow, c.Key} }

// indexKeys takes up the cases that were created since it was called last.
func (w *writes) indexKeys() {
	if len(w.list) <= shortList {
		return
	}
	for ; w.indexed < len(w.list); w.indexed++ {
		u := w.list[w.indexed]
		c := u.Tree.Case(u.Tree.Root)
		if c == nil {
			return
		}
		if w.byKey == nil {
			w.byKey = make(map[businessKey][]*TreeWrite)
		}
		w.byKey[keyOf(c)] = append(w.byKey[keyOf(c)], u)
	}
}

// cut drops all but the first n.
func (w *writes) cut(n int) {
	if n == len(w.list) {
		return
	}
	for _, u := range w.list[n:] {
		delete(w.byRoot, u.Tree.Root)
	}
	clear(w.list[n:])
	w.list = w.list[:n]
	if w.indexed > n {
		w.byKey, w.indexed = nil, 0
	}
}
