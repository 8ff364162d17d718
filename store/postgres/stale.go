package postgres

import (
	"errors"
	"maps"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Several engines may change the same root case. Each commit locks the rows of its root cases, in the order of their
// ids, and compares the end of each journal with the position that the engine knows. So of two commits on the same root
// case the second waits for the first, finds that it is stale, and is rolled back.

// given is a table u of root cases, each with the position of its last entry as the engine knows it.
//
// LATERAL makes the server find the rows one by one in the given order, by key. With a plain join, it might hash or
// sort the tables, and lock the rows in another order.
const given = "(SELECT root, root AS id, last FROM unnest($1::uuid[], $2::bigint[]) e(root, last)) u"

// stored is the rows t of the given root cases.
const stored = "(SELECT t.root, t.last_seq FROM @.cases t WHERE " + byKey + " "

// lockRoots locks root cases in the given order, and fails, by a division by zero, if one of them has changed or was
// removed.
//
// NO KEY UPDATE is the weakest lock that excludes other commits: a user's foreign key to cases, which takes KEY SHARE,
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
const lockRoot = "SELECT 1 / COALESCE((SELECT 1 FROM @.cases WHERE " + rootRow + " AND last_seq = $2 " +
	"FOR NO KEY UPDATE), 0)"

// findStale lists the root cases that have changed or were removed. OFFSET 0 prevents the server from merging the
// subquery into the join, for which it would choose the order and the method.
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

// known lists the root cases that a commit depends on, with the ends of their journals. It does not list those that
// this transaction created, and for those that it changed it has the end before the given entries.
func (tx *transaction) known(entries []tables.Command) (roots [][16]byte, last []int64) {
	at := before(entries)
	// A tree that was only read matters too: a command may have found a case to be open and started another one for it.
	for root, seq := range tx.expected {
		_, changed := at[root]
		if _, sent := tx.parts.roots[root]; !changed && !sent {
			at[root] = seq
		}
	}
	return inOrder(at)
}

// before returns the root cases of entries, each with the position before these entries; 0 if it had none.
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

// inOrder lists root cases with their positions, in the order of their ids.
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

// checkExpected commits a transaction that changed nothing.
func (tx *transaction) checkExpected() error {
	roots, last := tx.known(nil)
	if !tx.s.shared || len(roots) == 0 {
		return nil
	}
	if alone, err := tx.s.window.isAlone(); err != nil || alone {
		return err
	}
	if err := tx.settled(); err != nil {
		return err
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

// findStale lists the root cases that fail the check of the commit. The transaction was rolled back before.
func (tx *transaction) findStale() (stale []workitem.CaseID) {
	tx.rollback()
	roots, last := tx.known(tx.appended)
	if err := tx.w.each(findStale, []any{roots, last}, func(r *tables.Row) error {
		stale = append(stale, tables.ID[workitem.CaseID](r))
		return r.Err
	}); err != nil {
		return nil // the stale ones fail again in the next attempt
	}
	return stale
}

func (tx *transaction) staleError(roots []workitem.CaseID, err error) error {
	return tx.s.db.at("%w", &store.StaleError{Roots: roots, Err: err})
}

// isConflict reports whether an error of a commit is a conflict with another engine, so that a retry may succeed.
func (db database) isConflict(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case serializationFailure, deadlockDetected, divisionByZero:
		return true
	// A violation of a constraint on the user's own tables is the user's error, so the table is checked.
	case uniqueViolation, notNullViolation:
		return e.SchemaName == db.set.schema && (e.TableName == "journal" || e.TableName == "idempotency_keys")
	}
	return false
}
