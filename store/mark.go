package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// Mark is a point within a command. What a command did after it can be undone alone.
type Mark struct {
	saved   map[workitem.CaseID]*Case
	changes changes
	removed bool
}

// Mark remembers where the command stands. Every mark is ended by [Tree.Keep] or [Tree.Undo], the last one first.
func (t *Tree) Mark() Mark {
	m := Mark{saved: t.saved, changes: t.changes.clone(), removed: t.removed}
	t.saved = make(map[workitem.CaseID]*Case, 2)
	return m
}

// Keep makes what was done since the mark a part of the command.
func (t *Tree) Keep(m Mark) {
	for id, c := range t.saved {
		if _, ok := m.saved[id]; !ok {
			m.saved[id] = c
		}
	}
	t.saved = m.saved
}

// Undo goes back to the mark.
func (t *Tree) Undo(m Mark) {
	t.restore()
	t.saved, t.changes, t.removed = m.saved, m.changes, m.removed
}

// restore puts the saved cases back.
func (t *Tree) restore() {
	for id, c := range t.saved {
		if c == nil {
			t.recount(t.cases[id], t.cases[id].Stands(), workitem.None)
			delete(t.cases, id)
		} else {
			t.recount(c, t.cases[id].Stands(), c.Stands())
			t.cases[id] = c
		}
	}
}

// changes collects the newest value of all that a command changes, but the cases.
type changes struct {
	items changed[*workitem.Item]
	jobs  changed[*Job]
	steps changed[*workitem.Step]
	mail  changed[*Message]
}

func (c changes) clone() changes {
	return changes{items: c.items.clone(), jobs: c.jobs.clone(), steps: c.steps.clone(), mail: c.mail.clone()}
}

func (c changed[T]) clone() changed[T] {
	return changed[T]{list: slices.Clone(c.list), at: maps.Clone(c.at)}
}

// Removed reports whether the tree was removed: it can still be read, and nothing can be done with it any more.
func (t *Tree) Removed() bool { return t.removed }

// remove forgets a tree whose root case has ended. What its jobs have still to do would be lost, so there must be none.
func (t *Tree) remove(c *Case) error {
	if c.ID != t.Root || !c.State.Final() {
		return fmt.Errorf("case %s is removed, and it is %s; only a root case that has ended can be", c.ID, c.State)
	}
	for _, k := range t.cases {
		if k.Jobs.Len() > 0 {
			return fmt.Errorf("case %s is removed, and %d jobs of case %s are still to be done", c.ID, k.Jobs.Len(), k.ID)
		}
	}
	t.removed = true
	return nil
}
