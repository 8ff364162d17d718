package tables

import (
	"cmp"
	"slices"

	"github.com/tasq-dev/tasq/store"
)

// BacklogOfItems returns the statement that counts the live work items of each queue; see [Backlog]. prefix precedes
// the names of tables.
func BacklogOfItems(prefix string) string {
	return "SELECT queue, count(*), min(created), sum(CASE state WHEN 'started' THEN 1 ELSE 0 END) FROM " + prefix +
		"work_items WHERE state IN ('initialized', 'started') GROUP BY queue"
}

// BacklogOfJobs returns the statement that counts the live jobs of each queue. now is the SQL of the time by which they
// are due.
func BacklogOfJobs(prefix, now string) string {
	due := "state = 'pending' AND kind IN ('run', 'call') AND due <= " + now
	return "SELECT queue, count(*), min(created), sum(CASE state WHEN 'running' THEN 1 ELSE 0 END), sum(CASE WHEN " + due +
		" THEN 1 ELSE 0 END), min(CASE WHEN " + due + " THEN due END) FROM " + prefix +
		"jobs WHERE state IN ('pending', 'running', 'waiting') GROUP BY queue"
}

// Backlog sums the results of the two statements.
type Backlog struct {
	all map[string]*store.QueueBacklog
}

// Items adds a row of [BacklogOfItems].
func (b *Backlog) Items(r *Row) error {
	q, n := b.of(r)
	q.Items, q.Started = n, int(r.Number())
	return r.Err
}

// Jobs adds a row of [BacklogOfJobs].
func (b *Backlog) Jobs(r *Row) error {
	q, n := b.of(r)
	q.Jobs, q.Running, q.Due, q.Since = n, int(r.Number()), int(r.Number()), r.Time()
	return r.Err
}

// of reads the common columns of both statements.
func (b *Backlog) of(r *Row) (q *store.QueueBacklog, n int) {
	name := r.Text()
	if b.all == nil {
		b.all = make(map[string]*store.QueueBacklog)
	}
	if q = b.all[name]; q == nil {
		q = &store.QueueBacklog{Queue: name}
		b.all[name] = q
	}
	n = int(r.Number())
	if created := r.Time(); q.Oldest.IsZero() || created.Before(q.Oldest) {
		q.Oldest = created
	}
	return q, n
}

// Queues lists the queues, sorted by name.
func (b *Backlog) Queues() []store.QueueBacklog {
	list := make([]store.QueueBacklog, 0, len(b.all))
	for _, q := range b.all {
		list = append(list, *q)
	}
	slices.SortFunc(list, func(a, b store.QueueBacklog) int { return cmp.Compare(a.Queue, b.Queue) })
	return list
}
