package commit

import (
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// A transaction can undo a part of itself: a command of an Update whose function goes on after its error, or a completion
// handler that failed. Such a part is a level; levels lie within each other. A unit is marked when a level first touches it,
// so a level costs what it touches, however much the transaction holds.

// level is a part of a transaction that can be undone alone.
type savepoint struct {
	writes int // how many there were when it began
	points []point
}

// point is where a unit stood when a level first touched it.
type point struct {
	unit  *TreeWrite
	mark  state.Mark
	done  int
	entry store.Entry // with its events
	also  []string
}

// Savepoint runs f, and undoes all that it did by means of the transaction, alone, if it fails.
func (tx *Tx) Savepoint(f func() error) error {
	tx.savepoints = append(tx.savepoints, savepoint{writes: len(tx.writes.list)})
	err := tx.s.Savepoint(tx.ctx, f)
	if err != nil {
		tx.undo()
	} else {
		tx.keep()
	}
	return err
}

// touch notes where a unit stands for the levels that have not touched it yet.
func (tx *Tx) touch(u *TreeWrite) {
	for ; u.touched < len(tx.savepoints); u.touched++ {
		l := &tx.savepoints[u.touched]
		l.points = append(l.points, point{unit: u, mark: u.Tree.Mark(), done: len(u.done), entry: u.entry, also: u.also})
	}
}

// pop ends the innermost level.
func (tx *Tx) pop() savepoint {
	l := tx.savepoints[len(tx.savepoints)-1]
	tx.savepoints = tx.savepoints[:len(tx.savepoints)-1]
	return l
}

func (tx *Tx) keep() {
	l := tx.pop()
	for _, p := range l.points {
		p.unit.Tree.Keep(p.mark)
		p.unit.touched = len(tx.savepoints)
	}
	for _, u := range tx.writes.list[l.writes:] {
		u.touched = len(tx.savepoints)
	}
}

func (tx *Tx) undo() {
	l := tx.pop()
	for _, u := range tx.writes.list[l.writes:] {
		u.Tree.Rollback()
	}
	tx.writes.cut(l.writes)
	for _, p := range l.points {
		p.unit.Tree.Undo(p.mark)
		p.unit.done, p.unit.entry, p.unit.also = p.unit.done[:p.done], p.entry, p.also
		p.unit.touched = len(tx.savepoints)
	}
}
