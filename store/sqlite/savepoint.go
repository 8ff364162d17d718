package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

// Savepoint implements [store.Tx].
//
// Two commands of a batch, of which the second runs SQL of the user's in a callback:
//
//	Update                    BEGIN IMMEDIATE
//	  Savepoint, command 1      depth 1, nothing in the database
//	    Append                  in memory
//	  its end                   depth 0
//	  Savepoint, command 2      depth 1
//	    Savepoint, callback       depth 2
//	      DB().ExecContext          SAVEPOINT tasq; SAVEPOINT tasq; the statement       saved 2
//	    it fails                  ROLLBACK TO tasq; RELEASE tasq                        saved 1
//	  its end                   RELEASE tasq                                            saved 0
//
// Most commands run no SQL, and pay for no savepoint. All have the same name: SQLite takes the innermost one of a name, and
// that is always the one that is meant.
func (tx *transaction) Savepoint(_ context.Context, f func() error) (err error) {
	if err := tx.usable(); err != nil {
		return err
	}
	seq, entries, replies, settings, buf := tx.seq, len(tx.appended), len(tx.replies), len(tx.settings), len(tx.buf)
	level, user := tx.enter()
	done := false
	defer func() { // also when f panics
		keep := done && err == nil
		// ROLLBACK TO undoes what came after the savepoint and leaves it open; RELEASE ends it.
		if !keep {
			tx.seq, tx.replies, tx.settings, tx.buf = seq, tx.replies[:replies], tx.settings[:settings], tx.buf[:buf]
			clear(tx.appended[entries:])
			tx.appended = tx.appended[:entries]
		}
		err = errors.Join(err, tx.leave(level, user, keep))
	}()
	err = f()
	done = true
	return err
}

// enter begins a savepoint function. Handles that DB gives within it end with it, so that a callback that was left
// behind cannot reach into the next command.
func (tx *transaction) enter() (level int, user *sqlkit.UserDB) {
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	// The savepoints of the functions around this one may still be to be made: they are not this one's to release.
	level, user, tx.user = tx.depth, tx.user, nil
	tx.depth++
	return level, user
}

// leave ends a savepoint function, and keeps or undoes what it did to the database.
func (tx *transaction) leave(level int, user *sqlkit.UserDB, keep bool) error {
	if tx.user != nil {
		tx.user.End()
	}
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	tx.user = user
	tx.depth--
	for tx.saved > level && tx.broken == nil {
		if user != nil {
			user.CloseRows() // a query that is under way would stand in the way
		}
		if err := tx.leaveSavepoint(keep); err != nil {
			return tx.failLocked(err)
		}
		tx.saved--
	}
	return tx.broken
}

func (tx *transaction) leaveSavepoint(keep bool) error {
	if !keep {
		if _, err := tx.s.w.changeLocked("ROLLBACK TO tasq"); err != nil {
			return err
		}
	}
	_, err := tx.s.w.changeLocked("RELEASE tasq")
	return err
}

// failLocked remembers that the transaction can only be rolled back.
//
// From then on every call returns the error, and Update never reaches its COMMIT. The engine runs the
// other commands of the batch again, without the one that caused it.
func (tx *transaction) failLocked(err error) error {
	if tx.broken == nil {
		tx.broken = fmt.Errorf("%w: %w", store.ErrUndone, explain(tx.s.path, err))
	}
	return tx.broken
}

// met takes the error of one of the store's own reads. SQLite rolls the transaction back by itself when the disk or the memory fails
// within any statement, also one that only reads, and what followed would then be committed one by one.
func (tx *transaction) met(err error) error {
	if code(err) == 0 {
		return explain(tx.s.path, err)
	}
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	// SQLite has no question for this that the driver passes on, so it is asked by an attempt to begin; see
	// inTransactionLocked.
	if tx.s.w.inTransactionLocked() {
		return explain(tx.s.path, err)
	}
	return tx.failLocked(err)
}

// Lock implements [sqlkit.Scope].
func (tx *transaction) Lock() { tx.s.w.mu.Lock() }

// Unlock implements [sqlkit.Scope].
func (tx *transaction) Unlock() { tx.s.w.mu.Unlock() }

// Do implements [sqlkit.Scope].
func (tx *transaction) Do(_ string, f func() error) error {
	if err := tx.before(); err != nil {
		return err
	}
	return tx.Met(tx.s.w.guard.run(f))
}

// before makes, with the lock held, the savepoints that the running Savepoint calls stand for: without the user's SQL there is nothing in the database to
// undo.
func (tx *transaction) before() error {
	if err := tx.usableLocked(); err != nil {
		return err
	}
	for tx.saved < tx.depth {
		if _, err := tx.s.w.changeLocked("SAVEPOINT tasq"); err != nil {
			return tx.failLocked(err)
		}
		tx.saved++
	}
	return nil
}

// Met implements [sqlkit.Scope]. Some errors undo the transaction
// and not only the statement, and what followed would then be committed one by one.
func (tx *transaction) Met(err error) error {
	if err != nil && (undoesAll(err) || !tx.s.w.inTransactionLocked()) {
		return tx.failLocked(err)
	}
	return err
}
