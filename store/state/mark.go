package state

import "github.com/tasq-dev/tasq/workitem"

// Mark is a point within a command. What a command did after it can be undone alone. It costs what is done after it,
// however much the command did before.
type Mark struct {
	saved   saves   // before the mark; the tree has those of what came after
	changes changes // likewise
	removed bool
}

// Mark remembers where the command stands. Every mark is ended by [Tree.Keep] or [Tree.Undo], the last one first.
func (t *Tree) Mark() Mark {
	m := Mark{saved: t.saved, changes: t.changes, removed: t.removed}
	t.saved, t.changes = saves{}, changes{}
	return m
}

// Keep makes what was done since the mark a part of the command. A case that was changed before and after the mark was saved
// twice; the earlier one is how it was when the command began, and wins.
func (t *Tree) Keep(m Mark) {
	for _, s := range t.saved.list {
		if !m.saved.has(s.id) {
			m.saved.add(s.id, s.was)
		}
	}
	m.changes.merge(t.changes)
	t.saved, t.changes = m.saved, m.changes
}

// Undo goes back to the mark.
func (t *Tree) Undo(m Mark) {
	t.restore()
	t.saved, t.changes, t.removed = m.saved, m.changes, m.removed
}

// restore puts the saved cases back, and corrects the tallies by where each stands now and stood then.
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
