package postgres

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// orphans lists rows without their case, and cases without their root or parent. Each part scans a whole table. Only
// "tasq doctor" and tests use it, not a running engine.
const orphans = "SELECT 'case', c.id::text, c.root::text FROM @.cases c " +
	"WHERE NOT EXISTS (SELECT FROM @.cases r WHERE r.root = c.root AND r.id = c.root AND r.parent IS NULL) " +
	"UNION ALL SELECT 'item', t.id::text, t.case_id::text FROM @.work_items t WHERE " + without +
	"UNION ALL SELECT 'job', t.id::text, t.case_id::text FROM @.jobs t WHERE " + without +
	"UNION ALL SELECT 'step', t.id::text, t.case_id::text FROM @.steps t WHERE " + without +
	"UNION ALL SELECT 'event', t.id::text, t.case_id::text FROM @.messages t WHERE " + without +
	"UNION ALL SELECT 'journal entry', j.seq::text, j.root::text FROM @.journal j " +
	"WHERE j.seq <= $2 AND NOT EXISTS (SELECT FROM @.cases r WHERE r.root = j.root AND r.id = j.root AND r.parent IS NULL) LIMIT $1"

const without = "NOT EXISTS (SELECT FROM @.cases c WHERE c.root = t.root AND c.id = t.case_id) "

// Audit implements [store.Auditor].
func (r *reader) Audit(_ context.Context, max int) (store.Audit, error) {
	var a store.Audit
	var err error
	if a.Entries, _, err = r.c.number("SELECT count(*) FROM @.journal WHERE seq <= $1", r.last()); err != nil || max == 0 {
		return a, err
	}
	err = r.c.each(orphans, []any{max, r.last()}, func(row *tables.Row) error {
		a.Orphans = append(a.Orphans, store.Orphan{What: row.Text(), ID: row.Text(), Case: row.Text()})
		return row.Err
	})
	return a, err
}
