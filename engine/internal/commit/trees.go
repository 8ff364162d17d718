package commit

import (
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// trees are the trees that stay in memory between commands. What they hold is what is committed, or what the batch that is
// under way has done; a tree whose commit failed is dropped, and read again.
type trees struct {
	byRoot map[workitem.CaseID]*cached
	most   int    // how many root cases stay
	uses   uint64 // counts loads, as the time by which the oldest is found
	steps  int    // how many steps they remember, of all together
	index  index
}

// cached is a tree in memory between commands.
type cached struct {
	tree  *state.Tree
	used  uint64
	steps stepCache
}

func newTrees(most int) *trees {
	return &trees{byRoot: make(map[workitem.CaseID]*cached), most: most, index: newIndex()}
}

func (t *trees) has(root workitem.CaseID) bool { return t.byRoot[root] != nil }

// load finds a tree in memory, or has the store read it.
func (t *trees) load(tx *Tx, root workitem.CaseID) (*state.Tree, error) {
	t.uses++
	if c := t.byRoot[root]; c != nil {
		c.used = t.uses
		return c.tree, nil
	}
	tree, err := tx.s.Load(tx.ctx, root)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", root, err)
	}
	if tx.shared != nil {
		raise(tx.w.o.IDs, tree)
	}
	if tree.Ended() {
		return tree, nil // it will not change, and most likely nothing asks for it again
	}
	t.byRoot[root] = &cached{tree: tree, used: t.uses}
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			t.index.put(it.ID, root)
		}
	})
	return tree, nil
}

// appended takes in a tree that a transaction has written.
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

// committed drops a tree that will not be needed soon, and keeps the steps of another up to date.
func (t *trees) committed(u *TreeWrite) {
	if u.Tree.Ended() || sleepsLong(u) {
		t.evict(u.Tree.Root)
	} else if c := t.byRoot[u.Tree.Root]; c != nil {
		t.updateSteps(c, u)
	}
}

// forget drops the trees of a request whose commit failed: what they hold never happened.
func (t *trees) forget(tx *Tx) {
	if tx == nil {
		return // the store did not even begin
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
	delete(t.byRoot, root)
	t.index.drop(c.tree)
}

// trim keeps the cache within its size. It looks at a handful of trees and drops the one that was used longest ago: nearly
// as good as a list in order of use, and it costs nothing while a tree is used.
func (t *trees) trim() {
	for len(t.byRoot) > t.most {
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
