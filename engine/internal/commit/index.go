package commit

import (
	"sync"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// index has the root cases of the items in memory, and the root cases that have not ended. It has a lock, unlike the
// other state of the writer, because queries read it from their own goroutines.
type index struct {
	mu    *sync.RWMutex
	roots map[workitem.ID]workitem.CaseID
	live  map[workitem.CaseID]bool // the committed root cases in memory that have not ended; the value is that of hasJob
}

func newIndex() index {
	return index{mu: new(sync.RWMutex), roots: make(map[workitem.ID]workitem.CaseID), live: make(map[workitem.CaseID]bool)}
}

func (x index) get(id workitem.ID) (workitem.CaseID, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	root, ok := x.roots[id]
	return root, ok
}

// An item never moves to another root case, so an entry needs no update.
func (x index) put(id workitem.ID, root workitem.CaseID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roots[id] = root
}

// isLive reports whether a root case is known not to have ended.
func (x index) isLive(root workitem.CaseID) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.live[root]
	return ok
}

// hasJob reports whether a root case is known not to have ended, and to have a job that is no incident.
func (x index) hasJob(root workitem.CaseID) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.live[root]
}

// committed updates the index after a commit to a tree in memory.
// Only what is committed is live here: a caller that waits for the end of a case must not wait for one whose start is
// rolled back.
func (x index) committed(tree *state.Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if tree.Ended() {
		delete(x.live, tree.Root)
	} else {
		x.live[tree.Root] = hasJob(tree.Case(tree.Root))
	}
}

// hasJob reports whether one of the first four jobs of a case is no incident. It runs after each commit, so it does not
// search a case with many incidents to the end; false then only costs its caller a query.
func hasJob(c *state.Case) bool {
	const first = 4
	n := 0
	for j := range c.Jobs.All() {
		if n++; j.Kind != state.JobIncident || n == first {
			return j.Kind != state.JobIncident
		}
	}
	return false
}

// drop removes a tree that leaves memory, with its items.
// After that the root case is unknown and not known to have ended, so callers ask the store.
func (x index) drop(tree *state.Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.live, tree.Root)
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			delete(x.roots, it.ID)
		}
	})
}
