package commit

import (
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// A transaction can roll back a part of itself: a command of an Update whose function continues after its error, or a
// failed completion handler. Such a part is a savepoint, and savepoints nest. A savepoint records the state of a tree
// when it first touches the tree, and not when it begins: in an Update with 10,000 starts, each savepoint costs one
// tree and not all before it.

// savepoint is a part of a transaction that can be undone alone.
type savepoint struct {
	writes int // the number of tree writes when it began; later ones are rolled back completely
	points []point
}

// point is the state of a tree write when a savepoint first touched it.
type point struct {
	write   *TreeWrite
	mark    state.Mark
	done    int
	entry   store.Entry // with its changes so far
	further []string
}

// Savepoint runs f. If f fails, everything that it did in the transaction is rolled back, and nothing else.
func (tx *Tx) Savepoint(f func() error) error {
	tx.savepoints = append(tx.savepoints, savepoint{writes: len(tx.writes.list)})
	// The store has its own savepoint, for the user's SQL and the appended entries; both are rolled back together.
	err := tx.s.Savepoint(tx.ctx, f)
	if err != nil {
		tx.undo()
	} else {
		tx.keep()
	}
	return err
}

// touch records the state of a tree write for all open savepoints that have not touched it yet. Call it before each
// change of u.
func (tx *Tx) touch(u *TreeWrite) {
	for ; u.touched < len(tx.savepoints); u.touched++ {
		l := &tx.savepoints[u.touched]
		l.points = append(l.points, point{write: u, mark: u.Tree.Mark(), done: len(u.done), entry: u.entry, further: u.further})
	}
}

// pop ends the innermost savepoint.
func (tx *Tx) pop() savepoint {
	l := tx.savepoints[len(tx.savepoints)-1]
	tx.savepoints = tx.savepoints[:len(tx.savepoints)-1]
	return l
}

// keep ends the innermost savepoint, and keeps its changes. The outer savepoints have recorded the same trees, since
// touch records for all of them, so they can still roll the changes back.
func (tx *Tx) keep() {
	l := tx.pop()
	for _, p := range l.points {
		p.write.Tree.Keep(p.mark)
		p.write.touched = len(tx.savepoints)
	}
	for _, u := range tx.writes.list[l.writes:] {
		u.touched = len(tx.savepoints)
	}
}

// undo ends the innermost savepoint, and rolls its changes back.
func (tx *Tx) undo() {
	l := tx.pop()
	for _, u := range tx.writes.list[l.writes:] {
		u.Tree.Rollback()
	}
	tx.writes.cut(l.writes)
	for _, p := range l.points {
		p.write.Tree.Undo(p.mark)
		p.write.done, p.write.entry, p.write.further = p.write.done[:p.done], p.entry, p.further
		p.write.touched = len(tx.savepoints)
	}
}
