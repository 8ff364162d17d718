package sqlite

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// orphans returns orphaned rows: rows whose case, and cases whose root or parent, does not exist.
//
// Each part scans a whole table, which takes seconds for millions of rows. Only "tasq doctor" and tests use it, not the
// engine.
const orphans = "SELECT 'case', id, root FROM cases WHERE root NOT IN (SELECT id FROM cases WHERE parent IS NULL) " +
	"UNION ALL SELECT 'item', id, case_id FROM work_items WHERE case_id NOT IN (SELECT id FROM cases) " +
	"UNION ALL SELECT 'job', id, case_id FROM jobs WHERE case_id NOT IN (SELECT id FROM cases) " +
	"UNION ALL SELECT 'step', id, case_id FROM steps WHERE case_id NOT IN (SELECT id FROM cases) " +
	"UNION ALL SELECT 'event', id, case_id FROM messages WHERE case_id NOT IN (SELECT id FROM cases) " +
	"UNION ALL SELECT 'journal entry', CAST(seq AS TEXT), root FROM journal " +
	"WHERE root NOT IN (SELECT id FROM cases WHERE parent IS NULL) LIMIT +?"

// Audit implements [store.Auditor].
func (r *reader) Audit(_ context.Context, max int) (store.Audit, error) {
	var a store.Audit
	var err error
	if a.Entries, _, err = r.c.number("SELECT count(*) FROM journal"); err != nil || max == 0 {
		return a, err
	}
	err = r.c.each(orphans, args(int64(max)), func(row *tables.Row) error {
		a.Orphans = append(a.Orphans, store.Orphan{What: row.Text(), ID: row.Text(), Case: row.Text()})
		return row.Err
	})
	return a, err
}
