package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

// Savepoint implements [store.Tx]. After an error of the user's SQL, the server refuses the later statements of the
// savepoint, and Savepoint returns the error even if f did not.
//
// Two commands of a batch; the second runs the user's SQL in a callback:
//
//	Savepoint, command 1      depth 1, nothing in the server
//	Savepoint, command 2      depth 1
//	  Savepoint, callback       depth 2
//	    DB().ExecContext          BEGIN; SAVEPOINT tasq; SAVEPOINT tasq; the statement       saved 2
//	    it fails                  the server refuses all but ROLLBACK TO: spoiled
//	  its end                   ROLLBACK TO SAVEPOINT tasq; RELEASE SAVEPOINT tasq           saved 1
//	its end                   deferred constraints are checked; RELEASE SAVEPOINT tasq       saved 0
//	                          what the SQL has SET LOCAL is as it was before: see local
//
// All have the same name: the server uses the innermost one, which is always the right one.
func (tx *transaction) Savepoint(_ context.Context, f func() error) (err error) {
	if err := tx.usable(); err != nil {
		return err
	}
	seq, entries, replies, settings, buf := tx.seq, len(tx.appended), len(tx.replies), len(tx.settings), len(tx.buf)
	level, user := tx.enter()
	done := false
	defer func() { // also when f panics
		if done && err == nil {
			err = tx.spoiledBy(level)
		}
		if done && err == nil {
			err = tx.checkDeferred(level)
		}
		keep := done && err == nil
		if !keep {
			tx.seq, tx.replies, tx.settings, tx.buf = seq, tx.replies[:replies], tx.settings[:settings], tx.buf[:buf]
			clear(tx.appended[entries:])
			tx.appended = tx.appended[:entries]
			tx.cut(entries)
		}
		if undone := tx.leave(level, user, keep); !errors.Is(err, undone) {
			err = errors.Join(err, undone) // f has not returned it
		}
		if keep && level == 0 && err == nil {
			tx.sendEnded()
		}
	}()
	err = f()
	done = true
	return err
}

// enter begins a savepoint function. Handles that DB returns within it end with it, so that a callback that has timed
// out cannot write into the next command.
func (tx *serverTransaction) enter() (level int, user *sqlkit.UserDB) {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	level, user, tx.user = tx.depth, tx.user, nil
	tx.depth++
	return level, user
}

// spoiledBy returns the error of the user's SQL that the function of a savepoint did not return.
//
// A function may ignore an error of its SQL and continue. On SQLite that works, since only the statement is undone; on
// PostgreSQL the commit would fail later, for all commands of the batch.
func (tx *serverTransaction) spoiledBy(level int) error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	if tx.spoiled == nil || tx.saved <= level {
		return nil
	}
	return tx.spoiledError()
}

func (tx *serverTransaction) spoiledError() error {
	return fmt.Errorf("an SQL statement failed, and PostgreSQL rolls back the whole command: %w", tx.spoiled)
}

// leave ends a savepoint function, and keeps or rolls back its changes.
func (tx *serverTransaction) leave(level int, user *sqlkit.UserDB, keep bool) error {
	if tx.user != nil {
		tx.user.End()
	}
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	tx.user = user
	tx.depth--
	if level == 0 {
		tx.local = nil // restored, or undone below
	}
	for tx.saved > level && tx.broken == nil {
		query := "RELEASE SAVEPOINT tasq"
		if !keep {
			query = "ROLLBACK TO SAVEPOINT tasq; " + query
		}
		if err := tx.w.exec(context.Background(), query); err != nil {
			return tx.failLocked(err)
		}
		tx.saved--
		tx.spoiled = nil
	}
	return tx.broken
}

// Lock implements [sqlkit.Scope].
func (tx *serverTransaction) Lock() { tx.w.mu.Lock() }

// Unlock implements [sqlkit.Scope].
func (tx *serverTransaction) Unlock() { tx.w.mu.Unlock() }

// Interrupt implements [sqlkit.Interrupter]. The server is asked on another connection, and does not say whether it has canceled a statement. If
// it cannot be reached, statement_timeout or [conn.supervise] end the wait.
func (tx *serverTransaction) Interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), tx.s.db.set.attention)
	defer cancel()
	_ = tx.w.pg.PgConn().CancelRequest(ctx)
}

// Do implements [sqlkit.Scope].
func (tx *serverTransaction) Do(statement string, f func() error) error {
	if err := tx.usableLocked(); err != nil {
		return err
	}
	if err := tx.awaitParts(); err != nil {
		return err
	}
	if err := allowed(statement); err != nil {
		return err
	}
	if tx.spoiled != nil {
		return fmt.Errorf("an earlier statement failed, and PostgreSQL executes no further one of the command: %w", tx.spoiled)
	}
	if err := tx.beginForUser(); err != nil {
		return tx.failLocked(err)
	}
	tx.noteConstraints(statement)
	if err := tx.noteLocal(statement); err != nil {
		return tx.failLocked(err)
	}
	return tx.Met(tx.w.supervise(f))
}

// Met implements [sqlkit.Scope]. An error of the server ends the innermost savepoint; some errors end the whole
// transaction.
func (tx *serverTransaction) Met(err error) error {
	if err == nil {
		if tx.w.pg.PgConn().TxStatus() == 'I' {
			return tx.failLocked(errors.New("the statement ended the transaction of the command"))
		}
		return nil
	}
	status, c := tx.w.pg.PgConn().TxStatus(), code(err)
	if c == lockNotAvailable || c == queryCanceled {
		err = tx.s.db.explain(err)
	}
	switch {
	// A deadlock is resolved only if the transaction releases all its locks; a savepoint would keep earlier ones. A full disk is no fault of
	// the command, which is to be tried again when there is space.
	// Status 'I' is a transaction that the server has ended, 'E' one in which it refuses statements.
	case tx.w.gone():
		return tx.failLocked(fmt.Errorf("%w: %w", store.ErrDisconnected, err))
	case c == serializationFailure, c == deadlockDetected, c == diskFull, status == 'I', status == 'E' && tx.saved == 0:
		return tx.failLocked(err)
	case status == 'E' && tx.spoiled == nil:
		tx.spoiled = err
	}
	return err
}
