package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// Mark is a point within a command. What a command did after it can be undone alone.
type Mark struct {
	saved   saves
	changes changes
	removed bool
}

// Mark remembers where the command stands. Every mark is ended by [Tree.Keep] or [Tree.Undo], the last one first.
func (t *Tree) Mark() Mark {
	m := Mark{saved: t.saved, changes: t.changes.clone(), removed: t.removed}
	t.saved = saves{}
	return m
}

// Keep makes what was done since the mark a part of the command.
func (t *Tree) Keep(m Mark) {
	for _, s := range t.saved.list {
		if !m.saved.has(s.id) {
			m.saved.add(s.id, s.was)
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
	for _, s := range t.saved.list {
		now := t.Case(s.id)
		if s.was == nil {
			t.recount(now, now.Stands(), workitem.None)
			t.drop(s.id)
		} else {
			t.recount(now, now.Stands(), s.was.Stands())
			t.put(s.was)
		}
	}
}

// saves are cases as they were before a command changed them.
type saves struct {
	list []save
	ids  map[workitem.CaseID]struct{} // of the list; nil while it is short
}

type save struct {
	id  workitem.CaseID
	was *Case // nil for a new one
}

func (s *saves) has(id workitem.CaseID) bool {
	if s.ids != nil {
		_, ok := s.ids[id]
		return ok
	}
	for i := range s.list {
		if s.list[i].id == id {
			return true
		}
	}
	return false
}

func (s *saves) add(id workitem.CaseID, was *Case) {
	s.list = append(s.list, save{id, was})
	if s.ids == nil && len(s.list) > few {
		s.ids = make(map[workitem.CaseID]struct{}, 2*few)
		for i := range s.list {
			s.ids[s.list[i].id] = struct{}{}
		}
	}
	if s.ids != nil {
		s.ids[id] = struct{}{}
	}
}

// reset forgets everything, and keeps a little memory for the next command.
func (s *saves) reset() {
	if s.ids != nil {
		*s = saves{}
		return
	}
	clear(s.list)
	s.list = s.list[:0]
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
	for k := range t.all() {
		if k.Jobs.Len() > 0 {
			return fmt.Errorf("case %s is removed, and %d jobs of case %s are still to be done", c.ID, k.Jobs.Len(), k.ID)
		}
	}
	t.removed = true
	return nil
}
