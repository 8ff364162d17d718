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
	roots := ids(sorted(maps.Keys(gone)), func(id workitem.CaseID) workitem.CaseID { return id })
	for _, query := range removals {
		b.queue(query, roots)
	}
	return gone
}

// removals delete everything of the given root cases, and subtract it from the counts.
//
// The counts come first, since they read the rows; then the rows are deleted by the primary keys, which begin with the
// root. This is part of the transaction of the entry that removes the case, so a crash leaves all of it or nothing.
var removals = []string{
	"INSERT INTO @.count_deltas (what, workflow, task, state, n) " +
		"SELECT 'case', workflow, '', state, -count(*) FROM unnest($1::uuid[]) u(root) " +
		"CROSS JOIN LATERAL (SELECT * FROM @.cases WHERE root = u.root OFFSET 0) t GROUP BY 2, 4 " +
		"UNION ALL SELECT 'item', u.workflow, t.task, t.state, -count(*) FROM " + removedFrom("work_items") + " GROUP BY 2, 3, 4 " +
		"UNION ALL SELECT 'job', u.workflow, t.task, t.state, -count(*) FROM " + removedFrom("jobs") + " GROUP BY 2, 3, 4",
	"INSERT INTO @.ended_deltas (hour, workflow, task, state, took, n) " +
		"SELECT hour, workflow, task, state, took, -count(*) FROM (SELECT " + endedColumns("u.workflow, t.task", "started") + " FROM " + removedFrom("work_items") +
		" AND t.state IN ('completed', 'failed') UNION ALL SELECT " + endedColumns("t.workflow, ''", "created") +
		" FROM @.cases t WHERE t.root = ANY($1::uuid[]) AND t.state IN ('completed', 'failed')) d GROUP BY 1, 2, 3, 4, 5",
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

// endedColumns are the hour, workflow, task, state and class of duration under which an item or a case t is counted,
// see [store.EndedOf] and [store.EndedCase]. The parameter of is the SQL of the workflow and the task, from is the
// column with the start time. The class is [store.TookClass]: if p is the position of the highest 1 among 64 bits, its
// power of two is 64 - p.
func endedColumns(of, from string) string {
	return "floor(t.ended / 3600000000.0)::bigint AS hour, " + of + " AS task, t.state, " +
		"CASE WHEN t.state = 'completed' AND t." + from + " IS NOT NULL THEN " +
		"(SELECT CASE WHEN us < 8 THEN us ELSE 8 * (62 - p) + ((us >> (61 - p)) & 7) END FROM (SELECT us, position('1' IN us::bit(64)::text) AS p " +
		"FROM (SELECT greatest(t.ended - t." + from + ", 0) AS us) a) b) ELSE 0 END AS took"
}
