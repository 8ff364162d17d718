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
	goOn  map[workitem.CaseID]struct{} // root cases in memory that have not ended, by what is committed
}

func newIndex() index {
	return index{mu: new(sync.RWMutex), roots: make(map[workitem.ID]workitem.CaseID), goOn: make(map[workitem.CaseID]struct{})}
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

// setGoesOn notes what was committed of a root case.
func (x index) setGoesOn(root workitem.CaseID, goesOn bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if goesOn {
		x.goOn[root] = struct{}{}
	} else {
		delete(x.goOn, root)
	}
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
