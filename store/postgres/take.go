package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

// take assigns free jobs to this engine, if the engine is live. It skips jobs of definitions that the engine does not
// have, jobs of the queues in $2 (without a free worker) or outside $4, and starts of cases that need a workflow outside $5.
//
// SKIP LOCKED lets engines take jobs at the same time without waiting for each other. FOR SHARE on the engine's own row
// makes an engine that declares it dead wait until this statement has ended, and then find and free the jobs that it
// took; otherwise jobs taken in between would stay with a dead engine. MATERIALIZED makes both parts run once: a plan
// that ran f again for each row of a join could lock more jobs than the limit.
//
// The index jobs_free has the order of ORDER BY: highest priority first, then due time. The fingerprints of the case, and of
// those that its end changes, are compared for each job that the index returns: during the deployment of a new version,
// an engine that lacks a definition leaves the job to one that has it.
//
//	engine 1    locks jobs 7, 8 and 9, and makes them its own
//	engine 2    the same statement at the same moment: skips these, and locks 10, 11 and 12
func take(condition string) string {
	return "WITH me AS MATERIALIZED (SELECT prints FROM @.processes WHERE id = $1 AND state = 'live' FOR SHARE), " +
		"f AS MATERIALIZED (SELECT j.root, j.id FROM @.jobs j WHERE j.holder = 0 AND j." + liveJob + " " +
		"AND (SELECT c.fingerprint FROM @.cases c WHERE c.root = j.root AND c.id = j.case_id) = ANY ((SELECT prints FROM me)::text[]) " +
		"AND (j.case_id = j.root OR NOT EXISTS (" + unknownAbove + ")) " +
		"AND ($5::text[] IS NULL OR j.kind <> 'start' OR COALESCE((SELECT c.options::json ->> 'needs' FROM @.cases c " +
		"WHERE c.root = j.root AND c.id = j.case_id) = ANY ($5), true)) " +
		"AND (j.kind NOT IN ('run', 'call') OR j.queue <> ALL ($2::text[]) AND ($4::text[] IS NULL OR j.queue = ANY ($4::text[]))) " +
		condition + "ORDER BY -j.priority, j.due, j.id LIMIT $3 FOR UPDATE OF j SKIP LOCKED), " +
		"t AS (UPDATE @.jobs j SET holder = $1 FROM f WHERE j.root = f.root AND j.id = f.id RETURNING j.*) SELECT "
}

// unknownAbove finds a case with a definition that the engine does not have, among the case of a job and those that its end
// changes; see [state.Tree.Chain].
const unknownAbove = "WITH RECURSIVE a AS (SELECT c.parent, c.caller, c.fingerprint FROM @.cases c WHERE c.root = j.root AND c.id = j.case_id " +
	"UNION ALL SELECT p.parent, p.caller, p.fingerprint FROM a JOIN @.cases p ON p.root = j.root AND p.id = a.parent WHERE a.caller IS NULL) " +
	"SELECT FROM a WHERE a.fingerprint <> ALL ((SELECT prints FROM me)::text[])"

// takeInOrder makes the planner scan free jobs in index order up to the limit. Most jobs in the table are done, so the
// planner expects few free ones and prefers to read and sort them all, which costs the length of the queue for each
// take.
var takeInOrder = slices.Concat(byIndex, []string{"SET LOCAL enable_bitmapscan = off", "SET LOCAL enable_sort = off"})

// Take implements [store.Fleet].
func (s *Store) Take(ctx context.Context, f store.TakeFilter) (jobs []*state.Job, err error) {
	without := f.Without
	if without == nil {
		without = []string{}
	}
	if err := s.window.flush(); err != nil {
		return nil, err
	}
	err = s.onFleetConn(ctx, func(c *conn, self int64) error {
		if jobs, err = s.fleetConn.confirm(c, self); err != nil {
			return err
		}
		var taken []*state.Job
		err := c.transaction(context.Background(), func() error {
			taken, err = takeFrom(c, f, []any{self, without, f.Max, f.Only, f.Workflows})
			return err
		}, takeInOrder...)
		if err == nil {
			jobs = append(jobs, taken...)
			return nil
		}
		// Not dropped: a job that the database gives to this engine is done by no other. The next Take asks which they
		// are.
		for _, j := range slices.Concat(jobs, taken) { // the commit may have happened
			s.fleetConn.unsure = append(s.fleetConn.unsure, j.ID)
		}
		jobs = nil
		return err
	})
	return jobs, err
}

// The statements that take jobs: the most urgent of all, and those of one priority.
var (
	takeAny = take("") + tables.Jobs.List("") + " FROM t"
	takeOne = take("AND -j.priority = $6 ") + tables.Jobs.List("") + " FROM t"
)

// urgentPriorities finds the negative priorities of free jobs, the one whose oldest job is the most urgent first. It reads one job of each priority, by the
// index jobs_free.
const urgentPriorities = "WITH RECURSIVE p AS ((SELECT -priority AS n, due FROM @.jobs WHERE holder = 0 AND " + liveJob + " ORDER BY -priority, due, id LIMIT 1) " +
	"UNION ALL SELECT next.n, next.due FROM p CROSS JOIN LATERAL (SELECT -j.priority AS n, j.due FROM @.jobs j WHERE j.holder = 0 AND j." + liveJob +
	" AND -j.priority > p.n ORDER BY -j.priority, j.due, j.id LIMIT 1) next) SELECT n::bigint FROM p ORDER BY due + n * $1::float8, n"

// takeFrom takes jobs as a filter has it. With aging, a job's urgency is its due time minus its head start, so the jobs of each priority are in
// order, and the priorities are tried by their most urgent jobs: a low one whose oldest job has waited long comes before a higher one.
func takeFrom(c *conn, f store.TakeFilter, args []any) ([]*state.Job, error) {
	if f.Aging <= 0 {
		return readJobs(c, takeAny, args...)
	}
	var priorities []int64
	if err := c.each(urgentPriorities, []any{f.Aging.Microseconds()}, func(r *tables.Row) error {
		priorities = append(priorities, r.Number())
		return r.Err
	}); err != nil {
		return nil, err
	}
	var all []*state.Job
	for _, n := range priorities {
		args[2] = f.Max - len(all)
		taken, err := readJobs(c, takeOne, append(args, n)...)
		if all = append(all, taken...); err != nil || len(all) >= f.Max {
			return all, err
		}
	}
	return all, nil
}

// scanned is how many jobs are read to count those of a queue that this engine does not hold: it bounds the cost if most are others.
const scanned = 20_000

// The statements that count the jobs of a queue that wait and that this engine does not hold: those of a queue with a name by
// the index jobs_named, those of the default queue by jobs_due. A job that waits for an event has the zero time, before all others.
// The state of the first is a range, and is in the order, which jobs_named alone has then. With an equal sign jobs_due has it, too, and the
// planner may choose that one, and read the jobs of all queues.
const (
	waitingNamed = "SELECT count(*) FROM (SELECT FROM (SELECT holder, kind FROM @.jobs WHERE " + liveJob + " AND queue <> '' AND queue = $1 " +
		"AND state >= 'pending' AND state <= 'pending' AND due > $5 ORDER BY state, due, id LIMIT $3) j WHERE holder <> $4 AND kind IN ('run', 'call') LIMIT $2) n"
	waitingUnnamed = "SELECT count(*) FROM (SELECT FROM (SELECT queue, state, holder, kind FROM @.jobs WHERE " + liveJob + " AND due > $5 " +
		"ORDER BY due, id LIMIT $3) j WHERE queue = $1 AND state = 'pending' AND holder <> $4 AND kind IN ('run', 'call') LIMIT $2) n"
)

// Waiting implements [store.Fleet].
func (s *Store) Waiting(ctx context.Context, most map[string]int) (found map[string]int, err error) {
	if err := s.window.flush(); err != nil {
		return nil, err
	}
	err = s.onFleetConn(ctx, func(c *conn, self int64) error {
		return c.transaction(context.Background(), func() error {
			found = make(map[string]int, len(most))
			for queue, n := range most {
				query := waitingNamed
				if queue == "" {
					query = waitingUnnamed
				}
				count, _, err := c.number(query, queue, n, scanned+n, self, state.Micros(time.Time{}))
				if err != nil {
					return err
				}
				found[queue] = int(count)
			}
			return nil
		}, takeInOrder...)
	})
	return found, err
}
