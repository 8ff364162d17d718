package postgres

import (
	"context"
	"strconv"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// queuesOf lists the queues of a table that have live rows. It skips from one name to the next in the index, whatever
// the number of rows in between; the last row is NULL.
// With the queues a and b, q has the rows a, b and NULL: three lookups in the index.
func queuesOf(table, live string) string {
	next := func(after string) string {
		return "(SELECT queue FROM @." + table + " WHERE " + live + after + " ORDER BY queue LIMIT 1)"
	}
	return "WITH RECURSIVE q AS (SELECT " + next("") + " AS queue UNION ALL SELECT " + next(" AND queue > q.queue") + " FROM q WHERE q.queue IS NOT NULL), " +
		"n AS (SELECT queue FROM q WHERE queue IS NOT NULL LIMIT " + strconv.Itoa(store.MaxQueues+1) + ") "
}

// Queues implements [store.Reader].
func (r *reader) Queues(_ context.Context, most int) ([]store.QueueCount, bool, error) {
	q := tables.QueueCounts{Most: most}
	var queues []string // the queues in the result, each as often as it has states
	items := make(map[string]func(*tables.Row) error)
	bound := strconv.Itoa(most) // a literal, so that the planner knows it; see Limit
	err := r.c.each(queuesOf("work_items", liveItem)+"SELECT n.queue, i.* FROM n CROSS JOIN LATERAL (SELECT state, count(*), min(created) FROM "+
		"(SELECT state, created FROM @.work_items WHERE "+liveItem+" AND queue = n.queue ORDER BY -priority, id LIMIT "+bound+") f GROUP BY state) i ORDER BY 1, 2",
		nil, func(row *tables.Row) error {
			name := row.Text()
			if items[name] == nil {
				items[name], queues = q.Items(name), append(queues, name)
			}
			return items[name](row)
		})
	if err != nil {
		return nil, false, err
	}
	// One name more than are returned was asked for, which shows whether there are more.
	q.More = q.More || len(queues) > store.MaxQueues
	const named = liveJob + " AND queue <> ''"
	seen := make(map[string]bool)
	err = r.c.each(queuesOf("jobs", named)+"SELECT n.queue, s.state, j.* FROM n CROSS JOIN unnest($1::text[]) s(state) CROSS JOIN LATERAL "+
		"(SELECT count(*), count(*) FILTER (WHERE kind IN ('run', 'call')), min(created) FILTER (WHERE kind IN ('run', 'call')) FROM "+
		"(SELECT kind, created FROM @.jobs WHERE "+named+" AND queue = n.queue AND state = s.state ORDER BY due, id LIMIT "+bound+") f) j ORDER BY 1, 2",
		[]any{tables.LiveJobStates}, func(row *tables.Row) error {
			name, state := row.Text(), row.Text()
			seen[name] = true
			return q.Jobs(row, name, state)
		})
	q.More = q.More || len(seen) > store.MaxQueues
	if err == nil {
		err = r.c.each(tables.CountUnnamed("SELECT queue, state, kind, created FROM @.jobs WHERE "+liveJob+" ORDER BY due, id LIMIT "+
			strconv.Itoa(q.Unnamed())), nil, q.UnnamedJobs())
	}
	return q.All, !q.More, err
}
