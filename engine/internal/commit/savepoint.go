package commit

import (
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// A transaction can undo a part of itself: a command of an Update whose function goes on after its error, or a completion
// handler that failed. Such a part is a savepoint; savepoints lie within each other. What is written to a tree is marked when a savepoint
// first touches it, so a savepoint costs what it touches, however much the transaction holds.

// savepoint is a part of a transaction that can be undone alone.
type savepoint struct {
	writes int // how many there were when it began
	points []point
}

// point is where the write of a tree stood when a savepoint first touched it.
type point struct {
	write *TreeWrite
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

// touch notes where the write of a tree stands, for the savepoints that have not touched it yet.
func (tx *Tx) touch(u *TreeWrite) {
	for ; u.touched < len(tx.savepoints); u.touched++ {
		l := &tx.savepoints[u.touched]
		l.points = append(l.points, point{write: u, mark: u.Tree.Mark(), done: len(u.done), entry: u.entry, also: u.also})
	}
}

// pop ends the innermost savepoint.
func (tx *Tx) pop() savepoint {
	l := tx.savepoints[len(tx.savepoints)-1]
	tx.savepoints = tx.savepoints[:len(tx.savepoints)-1]
	return l
}

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

func (tx *Tx) undo() {
	l := tx.pop()
	for _, u := range tx.writes.list[l.writes:] {
		u.Tree.Rollback()
	}
	tx.writes.cut(l.writes)
	for _, p := range l.points {
		p.write.Tree.Undo(p.mark)
		p.write.done, p.write.entry, p.write.also = p.write.done[:p.done], p.entry, p.also
		p.write.touched = len(tx.savepoints)
	}
}
