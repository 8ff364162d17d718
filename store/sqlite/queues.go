package sqlite

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Queues implements [store.Reader]. It skips in the index from one queue name to the next, whatever the number of rows
// in between, and to the first items and jobs of each queue. Jobs of the default queue are not in that index, so they
// are counted among the first due jobs.
func (r *reader) Queues(_ context.Context, most int) ([]store.QueueCount, bool, error) {
	q := tables.QueueCounts{Most: most}
	err := r.eachQueue("work_items", liveItem, &q, func(queue string) error {
		return r.c.each("SELECT state, count(*), min(created) FROM (SELECT state, created FROM work_items WHERE "+liveItem+
			" AND queue = ? LIMIT +?) GROUP BY state ORDER BY state", args(queue, int64(most)), q.Items(queue))
	})
	if err != nil {
		return nil, false, err
	}
	// The condition of the index of jobs of named queues: most jobs have the default queue, and are not in it.
	const named = liveJob + " AND queue <> ''"
	err = r.eachQueue("jobs", named, &q, func(queue string) error {
		for _, state := range tables.LiveJobStates {
			err := r.c.each("SELECT count(*), sum(kind IN ('run', 'call')), min(CASE WHEN kind IN ('run', 'call') THEN created END) FROM "+
				"(SELECT kind, created FROM jobs WHERE "+named+" AND queue = ? AND state = '"+state+"' LIMIT +?)", args(queue, int64(most)),
				func(row *tables.Row) error { return q.Jobs(row, queue, state) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = r.c.each(tables.CountUnnamed("SELECT queue, state, kind, created FROM jobs WHERE "+liveJob+" ORDER BY due, id LIMIT +?"),
			args(int64(q.Unnamed())), q.UnnamedJobs())
	}
	return q.All, !q.More, err
}

// eachQueue calls f with the name of each queue of a table that has such rows.
// The first comparison is >=, which finds the queue with the empty name; each later one is > the name before. For the
// queues a and b, with a million rows each, that is three lookups: a, b, and nothing.
func (r *reader) eachQueue(table, live string, q *tables.QueueCounts, f func(queue string) error) error {
	name, compare := "", " >= "
	for range store.MaxQueues {
		found := false
		err := r.c.each("SELECT queue FROM "+table+" WHERE "+live+" AND queue"+compare+"? ORDER BY queue LIMIT 1", args(name), func(row *tables.Row) error {
			name, found = row.Text(), true
			return row.Err
		})
		if err != nil || !found {
			return err
		}
		if err := f(name); err != nil {
			return err
		}
		compare = " > "
	}
	// The bound is on the queues and not on their rows: a program that makes a queue for each customer must not make
	// a page read them all.
	q.More = true
	return nil
}
