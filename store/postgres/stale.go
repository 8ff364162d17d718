package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Several engines may change one root case. Each commit locks the rows of the root cases that it is about, in the order of their
// ids, and compares where their journals end with where the engine believes that they do. So of two commits on one root case the
// second waits for the first, finds that it is stale, and is undone.

// given is a table u of root cases, each with the position of its last entry as the engine knows it.
//
// Rows are found by their keys with LATERAL: once for each root case that is given, in the order in which they are. As a
// plain join, the server might hash or sort the tables, and lock the rows in an order of its own.
const given = "(SELECT root, root AS id, last FROM unnest($1::uuid[], $2::bigint[]) e(root, last)) u"

// stored is the rows t of the root cases that are given.
const stored = "(SELECT t.root, t.last_seq FROM @.cases t WHERE " + byKey + " "

// lockRoots locks root cases, in the order in which they are given, and fails, by a division by zero, if one of them has changed, or was removed.
//
// NO KEY UPDATE, the weakest lock that keeps two commits apart: a foreign key of the user's on cases, which takes KEY SHARE,
// does not wait for it.
//
//	engine A                               engine B
//	lock case 5, compare: 17 = 17
//	                                       lock case 5: waits
//	INSERT entry 18; UPDATE cases; COMMIT
//	                                       compares: 18 is not 17; fails
const lockRoots = "SELECT 1 / CASE WHEN count(*) = 0 THEN 1 ELSE 0 END FROM (SELECT FROM " + given + " LEFT JOIN LATERAL " + stored +
	"FOR NO KEY UPDATE) t ON true WHERE t.last_seq IS DISTINCT FROM u.last) stale"

// lockRoot is lockRoots for one root case.
const lockRoot = "SELECT 1 / COALESCE((SELECT 1 FROM @.cases WHERE (root, id) >= ($1, $1) AND (root, id) <= ($1, $1) AND last_seq = $2 " +
	"FOR NO KEY UPDATE), 0)"

// findStale lists the root cases that have changed, or were removed.
// OFFSET 0 keeps the server from merging the subquery into the join, whose order and method it would then choose.
const findStale = "SELECT u.root FROM " + given + " LEFT JOIN LATERAL " + stored + "OFFSET 0) t ON true " +
	"WHERE t.last_seq IS DISTINCT FROM u.last"

// Expect implements [store.SharedTx].
func (tx *transaction) Expect(t *state.Tree) {
	if root := t.Case(t.Root); root != nil && root.LastSeq > 0 {
		if tx.expected == nil {
			tx.expected = make(map[workitem.CaseID]int64)
		}
		if _, known := tx.expected[t.Root]; !known {
			tx.expected[t.Root] = root.LastSeq
		}
	}
}

// lockCase locks the row of a root case.
const lockCase = "SELECT last_seq FROM @.cases WHERE (root, id) >= ($1, $1) AND (root, id) <= ($1, $1) FOR NO KEY UPDATE"

// LockCase implements [store.SharedTx].
func (tx *transaction) LockCase(_ context.Context, root workitem.CaseID) (int64, error) {
	if err := tx.readable(); err != nil {
		return 0, err
	}
	if c := tx.appended.Case(root); c != nil {
		return c.LastSeq, nil // its row is not there, or is locked at the commit
	}
	if err := tx.begin(); err != nil {
		return 0, err
	}
	last, found, err := tx.w.number(lockCase, uuid(root))
	if err == nil && !found {
		err = fmt.Errorf("root case %s: %w", root, store.ErrNotFound)
	}
	return last, tx.met(err)
}

// begin begins the server's transaction.
func (tx *transaction) begin() error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	if tx.useAheadLocked(); tx.begun {
		return nil
	}
	if _, err := tx.w.begin(context.Background(), "BEGIN"); err != nil {
		return tx.failLocked(err)
	}
	tx.begun = true
	return nil
}

// known lists the root cases that a commit depends on, with where their journals end. The trees that this transaction made are not among them, and
// those that it changed are what they were before the entries that are given.
func (tx *transaction) known(entries []tables.Command) (roots [][16]byte, last []int64) {
	at := before(entries)
	// A tree that was only read matters as well: a command that found a case to be open, say, and started another one for
	// it.
	for root, seq := range tx.expected {
		_, changed := at[root]
		if _, sent := tx.parts.roots[root]; !changed && !sent {
			at[root] = seq
		}
	}
	return inOrder(at)
}

// before are the root cases that entries are about, each with the entry before these; 0 if there is none.
func before(entries []tables.Command) map[workitem.CaseID]int64 {
	at := make(map[workitem.CaseID]int64, len(entries))
	for i := range entries {
		e := entries[i].Entry
		if _, seen := at[e.Root]; !seen {
			at[e.Root] = e.Prev
		}
	}
	return at
}

// inOrder lists root cases that have entries, in the order of their ids.
func inOrder(at map[workitem.CaseID]int64) (roots [][16]byte, last []int64) {
	for _, root := range sorted(maps.Keys(at)) {
		if at[root] != 0 {
			roots, last = append(roots, root), append(last, at[root])
		}
	}
	return roots, last
}

// queueCheck adds the statement that locks root cases, and fails if one of them is stale.
func (tx *transaction) queueCheck(b *batch, roots [][16]byte, last []int64) {
	if !tx.s.shared || len(roots) == 0 {
		return
	}
	tx.parts.checks = append(tx.parts.checks, tx.parts.n+b.b.Len())
	if len(roots) == 1 {
		b.queue(lockRoot, roots[0], last[0])
		return
	}
	b.queue(lockRoots, roots, last)
}

// checkExpected is the commit of a transaction that changed nothing.
func (tx *transaction) checkExpected() error {
	roots, last := tx.known(nil)
	if !tx.s.shared || len(roots) == 0 {
		return nil
	}
	var stale []workitem.CaseID
	err := tx.w.each(findStale, []any{roots, last}, func(r *tables.Row) error {
		stale = append(stale, tables.ID[workitem.CaseID](r))
		return r.Err
	})
	if err != nil || len(stale) == 0 {
		return err
	}
	return tx.staleError(stale, nil)
}

// findStale lists the root cases for which a check of the commit has failed. The transaction is undone before.
func (tx *transaction) findStale() (stale []workitem.CaseID) {
	tx.rollback()
	roots, last := tx.known(tx.appended)
	if err := tx.w.each(findStale, []any{roots, last}, func(r *tables.Row) error {
		stale = append(stale, tables.ID[workitem.CaseID](r))
		return r.Err
	}); err != nil {
		return nil // those who are stale meet it again
	}
	return stale
}

// notLocked lists the root cases that another transaction has locked.
const notLocked = "SELECT u.root FROM " + given + " LEFT JOIN LATERAL " + stored + "FOR NO KEY UPDATE SKIP LOCKED) t ON true WHERE t.root IS NULL"

// lockedOut is the error of a commit that waited too long for a root case that another transaction has locked, as that of a function with
// slow SQL. The requests on that case are to be done apart, where they wait alone, and the others again.
//
// Of a batch of a hundred commands one is about a case that another transaction has locked for minutes. SKIP LOCKED finds
// which: its command is done again apart, and the others do not wait for it.
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
	return tx.staleError(locked, tx.s.db.explain(err))
}

func (tx *transaction) staleError(roots []workitem.CaseID, err error) error {
	return tx.s.db.at("%w", &store.StaleError{Roots: roots, Err: err})
}

// isConflict reports whether an error of a commit says that another engine was faster, so that the same may succeed later.
func (db database) isConflict(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case serializationFailure, deadlockDetected, divisionByZero:
		return true
	// A uniqueness of the user's own tables is the user's error, hence the names.
	case uniqueViolation, notNullViolation:
		return e.SchemaName == db.set.schema && (e.TableName == "journal" || e.TableName == "idempotency_keys")
	}
	return false
}
