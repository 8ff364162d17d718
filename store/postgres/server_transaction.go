package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

// serverTransaction is the transaction on the server of an Update: when it is begun, with which id, and the savepoints in
// which the user's SQL of each command runs. What the Update writes is that of [transaction].
//
// It is begun late: by the first entry, which needs its id, or by the user's SQL. A command without either needs no round
// trip.
type serverTransaction struct {
	s     *Store
	w     *conn
	xact  int64 // its id; 0 until an entry is appended
	first int64 // position before its first entry

	// awaitParts waits until the server has executed the parts of the commit that were sent early, with the lock of the
	// connection held. The user's SQL comes after them.
	awaitParts func() error

	user *sqlkit.UserDB // of the running savepoint function, or of the whole transaction; nil until DB is called
	gave bool           // DB was called: the user may hold the connection

	// Guarded by the connection's lock, since the user's SQL uses them.
	begun   bool  // the server has a transaction
	users   bool  // the user's SQL ran in it
	depth   int   // number of running savepoint functions
	saved   int   // number of those that have a savepoint on the server
	checks  int   // number of commands whose deferred constraints were checked
	runs    bool  // these checks are not rolled back
	local   local // what the user's SQL of the running command has set
	spoiled error // the first error since the innermost savepoint: the server refuses its further statements
	broken  error // why the transaction can only be rolled back
	ended   bool
}

func (tx *serverTransaction) usable() error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	return tx.usableLocked()
}

// The lock is that of the connection, since a callback that has overrun its time may ask while the transaction ends.
func (tx *serverTransaction) usableLocked() error {
	if tx.ended {
		return sqlkit.ErrOver
	}
	return tx.broken
}

// settled makes the tables have everything that is committed.
func (tx *serverTransaction) settled() error {
	if !tx.s.window.on {
		return nil
	}
	return tx.s.window.flush()
}

// begin begins the server's transaction.
func (tx *serverTransaction) begin() error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	if err := tx.beginLocked(); err != nil {
		return tx.failLocked(err)
	}
	return nil
}

func (tx *serverTransaction) beginLocked() error {
	if tx.useAheadLocked(); tx.begun {
		return nil
	}
	_, err := tx.w.begin(context.Background(), begin)
	tx.begun = err == nil
	return err
}

// beginForUser begins the server's transaction, and creates the savepoints of the running Savepoint calls: without the
// user's SQL there is nothing on the server to roll back.
func (tx *serverTransaction) beginForUser() error {
	if !tx.users {
		if err := tx.settled(); err != nil {
			return err
		}
	}
	if err := tx.beginLocked(); err != nil {
		return err
	}
	// In the same round trip as the settings. A command without the user's SQL has no savepoint on the server.
	query := strings.Repeat("SAVEPOINT tasq; ", max(0, tx.depth-tx.saved))
	if !tx.users {
		query = usersPlans + query
	}
	if query != "" {
		if err := tx.w.exec(context.Background(), query); err != nil {
			return err
		}
	}
	tx.users, tx.saved = true, max(tx.saved, tx.depth)
	return nil
}

// failLocked records that the transaction can only be rolled back.
func (tx *serverTransaction) failLocked(err error) error {
	if tx.broken != nil {
		return tx.broken
	}
	if err = tx.s.db.explain(err); tx.w.gone() && !errors.Is(err, store.ErrDisconnected) {
		err = tx.notCommitted(err)
	}
	tx.broken = fmt.Errorf("%w: %w", store.ErrUndone, err)
	return tx.broken
}

// notCommitted is the error of a transaction whose connection was lost before the commit.
func (tx *serverTransaction) notCommitted(err error) error {
	return fmt.Errorf("%w: %w", store.ErrNotCommitted, tx.s.db.explain(err))
}

// met handles the error of one of the store's own reads. An error of the server aborts the transaction, if there is
// one. If a statement of the user's SQL has failed before, the server refuses all others, and that error is the cause: it ends the
// command, and not the transaction.
func (tx *serverTransaction) met(err error) error {
	if err == nil {
		return nil
	}
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	if tx.spoiled != nil && code(err) == failedTransaction {
		return tx.spoiledError()
	}
	if tx.w.gone() || tx.begun && code(err) != "" {
		return tx.failLocked(err)
	}
	return tx.s.db.explain(err)
}

// DB implements [store.Tx].
func (tx *serverTransaction) DB() domain.DB {
	if tx.usable() != nil {
		return sqlkit.DeadDB()
	}
	tx.gave = true
	// One value for the whole transaction, which its end makes unusable.
	if tx.user == nil {
		tx.user = sqlkit.NewUserDB(userConn{tx.w.raw}, tx, domain.Postgres, tx.w.sql.schema)
	}
	return tx.user
}

// end makes the transaction unusable.
func (tx *serverTransaction) end() {
	tx.w.mu.Lock()
	tx.ended = true
	tx.w.mu.Unlock()
	if tx.user != nil {
		tx.user.End()
	}
}

// rollback ends the server's transaction. One that was lost with its connection is undone by the server.
func (tx *serverTransaction) rollback() {
	if !tx.begun || tx.w.gone() {
		return
	}
	tx.begun = false
	if err := tx.w.exec(context.Background(), "ROLLBACK"); err != nil {
		tx.s.log.Error("a transaction could not be rolled back; the connection is closed, which does it", "database", tx.s.db.name,
			"error", err)
		// A connection in an unknown state is not reused: the next update could become part of this transaction.
		_ = tx.w.cut() // the next update reconnects
	}
}
