package commit

import (
	"sync"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// index finds the root case of the items that are in memory. It is safe for concurrent use: queries ask it, too.
type index struct {
	mu    *sync.RWMutex
	roots map[workitem.ID]workitem.CaseID
}

func newIndex() index {
	return index{mu: new(sync.RWMutex), roots: make(map[workitem.ID]workitem.CaseID)}
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

// drop forgets the items of a tree that leaves memory.
func (x index) drop(tree *state.Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			delete(x.roots, it.ID)
		}
	})
}
