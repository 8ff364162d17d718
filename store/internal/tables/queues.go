package tables

import "github.com/tasq-dev/tasq/store"

// LiveJobStates are the states of live jobs, sorted.
var LiveJobStates = []string{"pending", "running", "waiting"}

// QueueCounts collects the counts of [store.Counter.Queues].
type QueueCounts struct {
	All  []store.QueueCount
	More bool // some counts reached the limit
	Most int  // limit for one queue, and for the jobs of one state in it
}

// Items adds the live items of a queue. Its rows have a state, a number and the time of the oldest item.
func (q *QueueCounts) Items(queue string) func(*Row) error {
	left := q.Most
	return func(r *Row) error {
		left -= q.add(r, store.QueueCount{Queue: queue, What: "item", State: r.Text(), N: int(r.Number()), Oldest: r.Time()})
		q.More = q.More || left <= 0
		return r.Err
	}
}

// Jobs adds the jobs of a queue in one state. Its row has how many jobs were read, how many of these are for workers,
// and the time of the oldest of those.
func (q *QueueCounts) Jobs(r *Row, queue, state string) error {
	q.More = q.More || int(r.Number()) >= q.Most
	q.add(r, store.QueueCount{Queue: queue, What: "job", State: state, N: int(r.Number()), Oldest: r.Time()})
	return r.Err
}

// Unnamed returns how many jobs are read to count those of the default queue, which has no index.
func (q *QueueCounts) Unnamed() int { return q.Most * len(LiveJobStates) }

// UnnamedJobs adds the jobs of the default queue. Its rows have a state, how many jobs were read, how many of these are
// for workers, and the time of the oldest of those.
func (q *QueueCounts) UnnamedJobs() func(*Row) error {
	left := q.Unnamed()
	return func(r *Row) error {
		state := r.Text()
		left -= int(r.Number())
		q.More = q.More || left <= 0
		q.add(r, store.QueueCount{What: "job", State: state, N: int(r.Number()), Oldest: r.Time()})
		return r.Err
	}
}

// CountUnnamed returns the statement for [QueueCounts.UnnamedJobs]. jobs is a query that ends with a limit.
func CountUnnamed(jobs string) string {
	const own = "queue = '' AND kind IN ('run', 'call')"
	return "SELECT state, count(*), sum(CASE WHEN " + own + " THEN 1 ELSE 0 END), min(CASE WHEN " + own + " THEN created END) FROM (" + jobs +
		") f GROUP BY state ORDER BY state"
}

func (q *QueueCounts) add(r *Row, c store.QueueCount) int {
	if c.N > 0 && r.Err == nil {
		q.All = append(q.All, c)
	}
	return c.N
}
