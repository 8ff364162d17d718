package engine

import (
	"sync"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// index finds the root case of the items that are in memory.
type index struct {
	mu    sync.RWMutex
	roots map[workitem.ID]workitem.CaseID
}

func (x *index) init() { x.roots = make(map[workitem.ID]workitem.CaseID) }

func (x *index) get(id workitem.ID) (workitem.CaseID, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	root, ok := x.roots[id]
	return root, ok
}

func (x *index) put(id workitem.ID, root workitem.CaseID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roots[id] = root
}

// drop forgets the items of a tree that leaves memory.
func (x *index) drop(tree *state.Tree) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			delete(x.roots, it.ID)
		}
	})
}

// activity counts what is under way: queued commands, jobs that are due or running. It tells when there is nothing left.
type activity struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
}

func (a *activity) init() {
	a.zero = make(chan struct{})
	close(a.zero)
}

func (a *activity) add(d int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.n
	a.n += d
	switch {
	case before == 0 && a.n > 0:
		a.zero = make(chan struct{})
	case before > 0 && a.n == 0:
		close(a.zero)
	}
}

// quiet returns a channel that is closed once nothing is under way.
func (a *activity) quiet() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.zero
}
