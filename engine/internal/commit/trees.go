package commit

import (
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// trees is a cache of trees. They have the committed state plus the changes of the current batch. If the commit fails,
// the changed trees are evicted and read again, since there is no other copy of the committed state in memory.
type trees struct {
	byRoot   map[workitem.CaseID]*cached
	maxTrees int    // the maximum number of root cases after a commit
	uses     uint64 // the number of loads so far: a logical clock for cached.used
	steps    int    // the number of cached steps of all trees
	index    index
}

// cached is a tree in memory between commands.
type cached struct {
	tree  *state.Tree
	used  uint64
	steps stepCache
}

func newTrees(most int) *trees {
	return &trees{byRoot: make(map[workitem.CaseID]*cached), maxTrees: most, index: newIndex()}
}

func (t *trees) has(root workitem.CaseID) bool { return t.byRoot[root] != nil }

// load returns a tree from memory, or reads it from the store.
func (t *trees) load(tx *Tx, root workitem.CaseID) (*state.Tree, error) {
	t.uses++
	if c := t.byRoot[root]; c != nil {
		c.used = t.uses
		return c.tree, nil
	}
	// The store sees what earlier requests of the batch have appended, so a tree that is read in the middle of a
	// batch is as new as one in memory.
	tree := tx.ahead[root]
	if tree == nil {
		var err error
		if tree, err = tx.s.Load(tx.ctx, root); err != nil {
			return nil, fmt.Errorf("case %s: %w", root, err)
		}
	}
	delete(tx.ahead, root)
	// Without other engines all ids come from the generator of this one.
	if tx.shared != nil {
		raiseIDs(tx.w.o.IDs, tree)
	}
	if tree.Ended() {
		return tree, nil // not cached: it will hardly be needed again
	}
	// The tree is cached before its request has changed it. If the request fails, the tree is rolled back and stays.
	t.byRoot[root] = &cached{tree: tree, used: t.uses}
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			t.index.put(it.ID, root)
		}
	})
	return tree, nil
}

// appended caches a tree that a transaction has written.
// It is called before the commit, so that later requests of the batch find the tree. If the commit fails, forget
// drops it.
func (t *trees) appended(u *TreeWrite) {
	if !t.has(u.Tree.Root) {
		t.uses++
		t.byRoot[u.Tree.Root] = &cached{tree: u.Tree, used: t.uses}
	}
	for _, change := range u.changes() {
		if opened, ok := change.(*state.ItemOpened); ok {
			t.index.put(opened.Item.ID, u.Tree.Root)
		}
	}
}

// committed evicts a tree that will not be needed soon, and updates the cached steps of any other.
// An ended case may be asked for its result, which a query reads; only further commands would need its tree.
func (t *trees) committed(u *TreeWrite) {
	if u.Tree.Ended() || sleepsLong(u) {
		t.evict(u.Tree.Root)
	} else if c := t.byRoot[u.Tree.Root]; c != nil {
		t.updateSteps(c, u)
	}
}

// forget evicts the trees of a request whose commit failed, since they have changes that are not in the store.
func (t *trees) forget(tx *Tx) {
	if tx == nil {
		return // the transaction could not be begun
	}
	for _, u := range tx.writes.list {
		t.evict(u.Tree.Root)
	}
}

// evict drops a tree from memory.
func (t *trees) evict(root workitem.CaseID) {
	c := t.byRoot[root]
	if c == nil {
		return
	}
	t.dropSteps(c)
	// The index has an entry for each item of the tree, and must not keep those of a tree that is gone.
	delete(t.byRoot, root)
	t.index.drop(c.tree)
}

// trim bounds the size of the cache. It evicts the least recently used of eight random trees: nearly as good as an
// exact LRU list, and a use of a tree costs nothing.
func (t *trees) trim() {
	for len(t.byRoot) > t.maxTrees {
		var oldest workitem.CaseID
		seen, used := 0, ^uint64(0)
		for root, c := range t.byRoot {
			if c.used < used {
				oldest, used = root, c.used
			}
			if seen++; seen == 8 {
				break
			}
		}
		t.evict(oldest)
	}
}
