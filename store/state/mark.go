package state

import "github.com/tasq-dev/tasq/workitem"

// Mark is a savepoint within a command: what the command did after it can be undone alone. Its cost depends only on
// what is done after it.
type Mark struct {
	saved   saves   // before the mark; those after it are in the tree
	changes changes // likewise
	removed bool
}

// Mark returns a savepoint. Each mark must be ended by [Tree.Keep] or [Tree.Undo], the last one first.
func (t *Tree) Mark() Mark {
	m := Mark{saved: t.saved, changes: t.changes, removed: t.removed}
	t.saved, t.changes = saves{}, changes{}
	return m
}

// Keep ends a mark, and keeps the changes after it. A case that was changed before and after the mark was saved twice;
// the earlier value, from the beginning of the command, is kept.
func (t *Tree) Keep(m Mark) {
	for _, s := range t.saved.list {
		if !m.saved.has(s.id) {
			m.saved.add(s.id, s.was)
		}
	}
	m.changes.merge(t.changes)
	t.saved, t.changes = m.saved, m.changes
}

// Undo ends a mark, and undoes the changes after it.
func (t *Tree) Undo(m Mark) {
	t.restore()
	t.saved, t.changes, t.removed = m.saved, m.changes, m.removed
}

// restore puts saved cases back, and corrects the tallies of their parents.
func (t *Tree) restore() {
	for _, s := range t.saved.list {
		now := t.Case(s.id)
		if s.was == nil {
			t.recount(now, now.ItemState(), workitem.None)
			t.drop(s.id)
		} else {
			t.recount(now, now.ItemState(), s.was.ItemState())
			t.put(s.was)
		}
	}
}
