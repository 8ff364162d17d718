package postgres

import (
	"maps"

	"github.com/tasq-dev/tasq/workitem"
)

// queueRemoved deletes everything of the trees that the transaction removed, and returns their root cases.
func (tx *transaction) queueRemoved(b *batch) map[workitem.CaseID]bool {
	gone := make(map[workitem.CaseID]bool)
	for _, c := range tx.appended {
		if c.Dirty.Removed {
			gone[c.Entry.Root] = true
		}
	}
	if len(gone) == 0 {
		return gone
	}
	// Sorted, as all rows that a transaction locks: see write.
	roots := ids(sorted(maps.Keys(gone)), func(id workitem.CaseID) workitem.CaseID { return id })
	for _, query := range removals {
		b.queue(query, roots)
	}
	return gone
}

// removals delete everything of the given root cases, and subtract it from the counts.
//
// The counts come first, since they read the rows, and count what ended as [store.EndedCounts] does; then the rows are deleted by the primary keys, which begin with the
// root. This is part of the transaction of the entry that removes the case, so a crash leaves all of it or nothing.
var removals = []string{
	"INSERT INTO @.count_deltas (what, workflow, task, state, n) " +
		"SELECT 'case', workflow, '', state, -count(*) FROM unnest($1::uuid[]) u(root) " +
		"CROSS JOIN LATERAL (SELECT * FROM @.cases WHERE root = u.root OFFSET 0) t GROUP BY 2, 4 " +
		"UNION ALL SELECT 'item', u.workflow, t.task, t.state, -count(*) FROM " + removedFrom("work_items") + " GROUP BY 2, 3, 4 " +
		"UNION ALL SELECT 'job', u.workflow, t.task, t.state, -count(*) FROM " + removedFrom("jobs") + " GROUP BY 2, 3, 4",
	"INSERT INTO @.ended_deltas (hour, workflow, task, state, took, n) " +
		"SELECT floor(d.ended / 3600000000.0)::bigint, d.workflow, d.task, k.state, " + tookClass("k.us") + ", -count(*) FROM (" +
		"SELECT u.workflow, t.task, t.state, greatest(t.created, t.due) AS due, t.started, t.ended FROM " + removedFrom("work_items") +
		" UNION ALL SELECT t.workflow, '', t.state, NULL, t.created, t.ended FROM @.cases t WHERE t.root = ANY($1::uuid[])) d " +
		"CROSS JOIN LATERAL (VALUES (d.state, CASE WHEN d.state = 'completed' AND d.started IS NOT NULL THEN d.ended - d.started ELSE 0 END), " +
		"('started', d.started - d.due)) k(state, us) WHERE d.state IN ('completed', 'failed') AND k.us IS NOT NULL GROUP BY 1, 2, 3, 4, 5",
	"DELETE FROM @.idempotency_keys WHERE key = ANY(ARRAY(SELECT sha256(convert_to(key, 'UTF8')) FROM @.journal " +
		"WHERE root = ANY($1::uuid[]) AND key IS NOT NULL)) AND root = ANY($1::uuid[])",
	"DELETE FROM @.journal WHERE root = ANY($1::uuid[])",
	"DELETE FROM @.messages WHERE root = ANY($1::uuid[])",
	"DELETE FROM @.steps WHERE root = ANY($1::uuid[])",
	"DELETE FROM @.jobs WHERE root = ANY($1::uuid[])",
	"DELETE FROM @.work_items WHERE root = ANY($1::uuid[])",
	"DELETE FROM @.cases WHERE root = ANY($1::uuid[])",
}

// removedFrom returns the rows t of a table for those root cases, each with the workflow of its case in u. Rows are
// found as by byKey.
func removedFrom(table string) string {
	return "@." + table + " t CROSS JOIN LATERAL (SELECT c.workflow FROM @.cases c WHERE (c.root, c.id) >= (t.root, t.case_id) AND " +
		"(c.root, c.id) <= (t.root, t.case_id) OFFSET 0) u WHERE t.root = ANY($1::uuid[])"
}

// tookClass is [store.TookClass] of microseconds: if p is the position of the highest 1 among 64 bits, its power of two is
// 64 - p.
func tookClass(us string) string {
	return "(SELECT CASE WHEN us < 8 THEN us ELSE 8 * (62 - p) + ((us >> (61 - p)) & 7) END FROM (SELECT us, position('1' IN us::bit(64)::text) AS p " +
		"FROM (SELECT greatest(" + us + ", 0) AS us) a) b)"
}
