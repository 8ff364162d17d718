package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// A transaction with slow SQL of the user, or another program, may have locked a root case for as long as it likes. A commit that waits for it
// makes all its commands wait, so it waits for lock_timeout once; from then on, the engine tries the lock before it opens the case.

// rootRow selects the row of the root case $1.
const rootRow = "(root, id) >= ($1, $1) AND (root, id) <= ($1, $1)"

// lockCase locks the row of a root case.
const lockCase = "SELECT last_seq FROM @.cases WHERE " + rootRow + " FOR NO KEY UPDATE"

// LockCase implements [store.SharedTx].
func (tx *transaction) LockCase(_ context.Context, root workitem.CaseID, wait bool) (int64, error) {
	if err := tx.readable(); err != nil {
		return 0, err
	}
	if c := tx.appended.Case(root); c != nil {
		return c.LastSeq, nil // it has no row yet, or the commit locks its row
	}
	if err := tx.begin(); err != nil {
		return 0, err
	}
	query := lockCase
	if !wait {
		query += " SKIP LOCKED"
	}
	last, found, err := tx.w.number(query, uuid(root))
	switch {
	case code(err) == lockNotAvailable: // the server has aborted the transaction
		tx.w.mu.Lock()
		defer tx.w.mu.Unlock()
		return 0, tx.failLocked(tx.lockedError([]workitem.CaseID{root}, tx.s.db.explain(err)))
	case err != nil || found:
		return last, tx.met(err)
	}
	_, exists, err := tx.w.number("SELECT 1 FROM @.cases WHERE "+rootRow, uuid(root))
	switch {
	case err != nil:
		return 0, tx.met(err)
	case exists && !wait:
		holder, err := tx.w.lockHolder()
		if err != nil {
			return 0, tx.met(err)
		}
		return 0, tx.lockedError([]workitem.CaseID{root}, fmt.Errorf("%w; %s", store.ErrUnavailable, holder))
	}
	return 0, fmt.Errorf("root case %s: %w", root, store.ErrNotFound)
}

// notLocked lists the root cases that another transaction has locked.
const notLocked = "SELECT u.root FROM " + given + " LEFT JOIN LATERAL " + stored + "FOR NO KEY UPDATE SKIP LOCKED) t ON true WHERE t.root IS NULL"

// lockedOut returns the error of a commit that waited too long for a root case that another transaction has locked,
// such as a function with slow SQL.
//
// For example, one of a hundred commands in a batch is about a case that has been locked for minutes. SKIP LOCKED finds
// the case: its command fails, and the others do not wait for it.
func (tx *transaction) lockedOut(err error) error {
	tx.rollback()
	roots, last := tx.known(tx.appended)
	var locked []workitem.CaseID
	if failed := tx.w.each(notLocked, []any{roots, last}, func(r *tables.Row) error {
		locked = append(locked, tables.ID[workitem.CaseID](r))
		return r.Err
	}); failed != nil {
		return errors.Join(err, failed)
	}
	if len(locked) == 0 { // the other transaction has just ended
		return tx.staleError(nil, tx.s.db.explain(err))
	}
	if errors.As(err, new(*waited)) { // it names the session
		return tx.lockedError(locked, fmt.Errorf("%w: %w", store.ErrUnavailable, err))
	}
	holder, failed := tx.w.lockHolder()
	if failed != nil {
		return errors.Join(err, failed)
	}
	return tx.lockedError(locked, fmt.Errorf("%w; %s: %w", store.ErrUnavailable, holder, err))
}

func (tx *transaction) lockedError(roots []workitem.CaseID, err error) error {
	return tx.s.db.at("%w", &store.StaleError{Roots: roots, Err: err, Locked: true})
}

// findLockHolder finds the session whose transaction has held locks of rows in cases for longest. Which rows these are is not known to the server.
const findLockHolder = "SELECT a.pid" + ofSession + " FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND " +
	"EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.granted AND l.relation = '@.cases'::regclass AND l.mode <> 'AccessShareLock') " +
	"ORDER BY a.xact_start LIMIT 1"

// lockHolder says what to do about a locked root case, with the session that probably holds the lock.
func (c *conn) lockHolder() (holder string, err error) {
	holder = "try again when that has ended"
	err = c.each(findLockHolder, nil, func(r *tables.Row) error {
		holder += "; it may be that of " + readSession(r)
		return r.Err
	})
	return holder, err
}
