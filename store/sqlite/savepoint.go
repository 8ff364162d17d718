package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	sqlite3 "modernc.org/sqlite/lib"
)

// Savepoint implements [store.Tx].
//
// Two commands of a batch; the second runs the user's SQL in a callback:
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
// Most commands run no SQL and need no savepoint. All have the same name: SQLite uses the innermost one, which is
// always the right one.
func (tx *transaction) Savepoint(_ context.Context, f func() error) (err error) {
	if err := tx.usable(); err != nil {
		return err
	}
	seq, entries, replies, settings, buf := tx.seq, len(tx.appended), len(tx.replies), len(tx.settings), len(tx.buf)
	level, user := tx.enter()
	done := false
	defer func() { // also when f panics
		keep := done && err == nil
		// ROLLBACK TO undoes what followed the savepoint and leaves it open; RELEASE ends it.
		if !keep {
			tx.seq, tx.replies, tx.settings, tx.buf = seq, tx.replies[:replies], tx.settings[:settings], tx.buf[:buf]
			clear(tx.appended[entries:])
			tx.appended = tx.appended[:entries]
		}
		if undone := tx.leave(level, user, keep); !errors.Is(err, undone) {
			err = errors.Join(err, undone) // f has not returned it
		}
	}()
	err = f()
	done = true
	return err
}

// enter begins a savepoint function. Handles that DB returns within it end with it, so that a callback that has timed
// out cannot write into the next command.
func (tx *transaction) enter() (level int, user *sqlkit.UserDB) {
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	// The savepoints of the enclosing functions may not have been created yet; this function must not release them.
	level, user, tx.user = tx.depth, tx.user, nil
	tx.depth++
	return level, user
}

// leave ends a savepoint function, and keeps or rolls back its changes.
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
			user.CloseRows() // a query in progress would block the rollback
		}
		if err := tx.leaveSavepoint(keep); err != nil {
			return tx.failLocked(err)
		}
		tx.saved--
	}
	return tx.broken
}

// ROLLBACK TO leaves the savepoint open, so both cases end with RELEASE.
func (tx *transaction) leaveSavepoint(keep bool) error {
	if !keep {
		if _, err := tx.s.w.changeLocked("ROLLBACK TO tasq"); err != nil {
			return err
		}
	}
	_, err := tx.s.w.changeLocked("RELEASE tasq")
	return err
}

// failLocked records that the transaction can only be rolled back.
//
// From then on every call returns the error, and Update does not commit. The engine runs the other commands of the
// batch again, without the one that failed.
func (tx *transaction) failLocked(err error) error {
	if tx.broken == nil {
		tx.broken = fmt.Errorf("%w: %w", store.ErrUndone, explain(tx.s.path, err))
	}
	return tx.broken
}

// met handles the error of one of the store's own reads. SQLite rolls back the transaction if the disk or the memory
// fails in any statement, even one that only reads; later statements would then be committed one by one.
func (tx *transaction) met(err error) error {
	if code(err) == 0 {
		return explain(tx.s.path, err)
	}
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	// SQLite's function for this is not available in the driver, so it tries to begin a transaction; see
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

// Interrupt implements [sqlkit.Interrupter]. SQLite rolls back the transaction for that: the command whose function has timed out fails, and
// the engine runs the others of the batch again.
func (tx *transaction) Interrupt() { interrupt(tx.s.w.raw) }

// Do implements [sqlkit.Scope].
// The guard is on during f alone: it refuses what the statements of this package are allowed to do.
func (tx *transaction) Do(_ string, f func() error) error {
	if err := tx.before(); err != nil {
		return err
	}
	return tx.Met(tx.s.w.guard.run(f))
}

// before creates the savepoints of the running Savepoint calls, with the lock held: without the user's SQL there is
// nothing in the database to roll back.
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

// Met implements [sqlkit.Scope]. Some errors roll back the transaction and not only the statement, and later statements
// would then be committed one by one.
func (tx *transaction) Met(err error) error {
	if code(err) == sqlite3.SQLITE_INTERRUPT && tx.broken == nil {
		// By Interrupt. It is no fault of the store, after which the engine would run the same statement again.
		tx.broken = fmt.Errorf("%w: the statement was interrupted, as the time of its function was over: %w", store.ErrUndone, err)
		return tx.broken
	}
	if err != nil && (undoesAll(err) || !tx.s.w.inTransactionLocked()) {
		return tx.failLocked(err)
	}
	return err
}
