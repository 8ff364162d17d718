package commit

import (
	"sync"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// index finds the root case of the items that are in memory, and says which root cases go on. It is safe for concurrent use: queries
// ask it, too.
type index struct {
	mu    *sync.RWMutex
	roots map[workitem.ID]workitem.CaseID
	goOn  map[workitem.CaseID]bool // root cases in memory that have not ended, by what is committed, and whether they have a job that is no incident
}

func newIndex() index {
	return index{mu: new(sync.RWMutex), roots: make(map[workitem.ID]workitem.CaseID), goOn: make(map[workitem.CaseID]bool)}
}

func (x index) get(id workitem.ID) (workitem.CaseID, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	root, ok := x.roots[id]
	return root, ok
}

func (x index) put(id workitem.ID, root workitem.CaseID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roots[id] = root
}

// goesOn reports whether a root case is known to go on.
func (x index) goesOn(root workitem.CaseID) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.goOn[root]
	return ok
}

// hasJob reports whether a root case is known to go on with a job that is no incident.
func (x index) hasJob(root workitem.CaseID) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.goOn[root]
}

// committed notes what was committed of a tree that stays in memory.
func (x index) committed(tree *state.Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if tree.Ended() {
		delete(x.goOn, tree.Root)
	} else {
		x.goOn[tree.Root] = hasJob(tree.Case(tree.Root))
	}
}

// hasJob reports whether one of the first jobs of a case is no incident. A case with many incidents, which this would have to look through after
// each commit, counts as one that has none.
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

// drop forgets a tree that leaves memory, with its items.
func (x index) drop(tree *state.Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.goOn, tree.Root)
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			delete(x.roots, it.ID)
		}
	})
}
