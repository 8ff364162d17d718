package postgres

import (
	"context"
	"math"
)

// adopt declares engines dead, frees their jobs, notifies the other engines, and returns how many engines it declared
// dead. Each step is safe to repeat, and the row of the dead engine is deleted last. If this engine crashes in between,
// the next engine that checks finds the dead one again and continues. Jobs are freed in portions, so that commits of
// live engines wait for one portion at most.
//
// After a crash of this engine behind each step, the next engine that checks finds:
//
//	declare        a row that is dead, jobs with its number: exchange reports dead rows as gone and overdue, so it is adopted again
//	noteDead       the same, with the record of what it held
//	freeAll        some jobs free, others not: the same
//	DELETE         nothing to do
func (s *Store) adopt(c *conn, dead []other) (n int, err error) {
	for _, d := range dead {
		live, err := s.declare(c, d)
		if err != nil {
			return n, err
		}
		if live {
			continue
		}
		if err := s.projectOne(c, d.id); err != nil {
			return n, err
		}
		if err := s.noteDead(c, "p.id = $2", d.id); err != nil {
			return n, err
		}
		if err := s.freeAll(c, d.id); err != nil {
			return n, err
		}
		if _, err := c.run("WITH p AS (DELETE FROM @.processes WHERE id = $1) DELETE FROM @.pulses WHERE process = $1", d.id); err != nil {
			return n, err
		}
		n++
		s.log.Warn("another engine is gone; its jobs are free", "database", s.db.name, "engine", d.id)
	}
	return n, nil
}

// freeSome and freeLast free the next portion of an engine's jobs. While there are many, freeSome skips locked rows: it
// has no lock order, so it must not wait for a lock. freeLast locks the last rows in the order that all statements use
// for jobs, for which the remaining rows are sorted each time.
const (
	freeSome = "UPDATE @.jobs j SET holder = 0 FROM (SELECT root, id FROM @.jobs WHERE holder = $1 AND holder > 0 AND " + liveJob +
		" LIMIT 1000 FOR UPDATE SKIP LOCKED) f WHERE j.root = f.root AND j.id = f.id"
	freeLast = "UPDATE @.jobs j SET holder = 0 FROM (SELECT root, id FROM @.jobs WHERE holder = $1 AND holder > 0 AND " + liveJob +
		" ORDER BY root, id LIMIT 1000 FOR UPDATE) f WHERE j.root = f.root AND j.id = f.id"
)

// alive sends a heartbeat between portions, since freeing many jobs takes longer than the interval of heartbeats.
const alive = "UPDATE @.pulses SET beat = clock_timestamp() WHERE process = $1 AND " +
	"EXISTS (SELECT FROM @.processes WHERE id = $1 AND state = 'live')"

// freeAll frees the jobs of a dead engine, and notifies the other engines after each portion.
func (s *Store) freeAll(c *conn, engine int64) error {
	// A portion of a thousand is a transaction of some ten milliseconds. A single transaction for all jobs would block
	// commits of live engines for its whole length, and would start from the beginning after a failure.
	query := freeSome
	for {
		var freed int64
		err := c.transaction(context.Background(), func() (err error) {
			if freed, err = c.run(query, engine); err != nil || freed == 0 {
				return err
			}
			// Otherwise an engine that frees a million jobs would send no heartbeat meanwhile, and be declared dead.
			if _, err = c.run(alive, s.number.Load()); err != nil {
				return err
			}
			return notify(c, s.number.Load(), "f", "")
		}, byIndex...)
		switch {
		case err != nil:
			return err
		case freed == 0 && query == freeLast:
			return nil
		case freed == 0:
			query = freeLast
		}
	}
}

// byIndex makes the planner find each row of a portion by an index. Otherwise it scans the whole table for each portion
// if it expects many rows.
var byIndex = []string{"SET LOCAL enable_seqscan = off", "SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off"}

// declare declares an engine dead, unless it has sent a heartbeat since it was judged, and reports whether it is live.
// It waits for a commit of that engine that is in progress. If the commit takes too long, for instance because the
// process was stopped, its server process is terminated.
func (s *Store) declare(c *conn, d other) (live bool, err error) {
	query := "UPDATE @.processes SET state = 'dead' WHERE id = $1 AND state = 'live' " +
		// If the heartbeat is no longer the one that the engine was judged by, the engine is live.
		"AND (SELECT (extract(epoch FROM beat) * 1000000)::bigint FROM @.pulses WHERE process = $1) = $2"
	try := func() error {
		_, err := c.run(query, d.id, d.beat)
		return err
	}
	err = c.transaction(context.Background(), try)
	// A commit of the engine has locked the row. A process that was stopped in a commit would hold the lock until it
	// continues.
	if code(err) == lockNotAvailable {
		if err = terminate(c, d.id, d.beat); err == nil {
			err = c.transaction(context.Background(), try)
		}
	}
	if code(err) == lockNotAvailable {
		return true, nil // the next check finds it again
	}
	if err != nil {
		return false, err
	}
	if _, live, err = c.number("SELECT 1 FROM @.processes WHERE id = $1 AND state = 'live'", d.id); err != nil || live {
		return live, err
	}
	// The session of a dead engine cannot commit, but may hold row locks that live engines need.
	return false, terminate(c, d.id, d.beat) // releases its locks
}

// terminate ends the server process that commits for an engine, unless it became the engine's after the given time,
// such as that of the last heartbeat. For an engine behind a pooler, that is the process which holds the lock of
// connectWriter.
func terminate(c *conn, engine, began int64) error {
	_, err := c.run("SELECT pg_terminate_backend(a.pid) FROM @.processes p JOIN pg_stat_activity a ON a.pid = p.pid OR p.pid IS NULL AND a.pid IN "+
		"(SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND "+
		"l.classid::bigint << 32 | l.objid::bigint = hashtextextended('tasq commit ' || p.token || ' @', 0)) "+
		"WHERE p.id = $1 AND (extract(epoch FROM CASE WHEN p.pid IS NULL THEN a.xact_start ELSE a.backend_start END) * 1000000)::bigint <= $2",
		engine, began)
	return err
}

// endLost ends the session of a connection that this engine has lost, after the next epoch has begun. A session that the server has not found to
// be lost keeps its locks on cases until then, or until idle_in_transaction_session_timeout, and live engines wait for them. A process of the
// server with the same number that is not the old session has done something since the new connection was made, or belongs to another role.
func (s *Store) endLost(w *conn, pid uint32) error {
	if s.pidOf(w) == nil {
		return terminate(w, s.self, math.MaxInt64) // no transaction of w runs now, which would hold the same lock
	}
	_, err := w.run("SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN pg_stat_activity self ON self.pid = pg_backend_pid() "+
		"WHERE a.pid = $1 AND a.pid <> self.pid AND a.usename = self.usename AND a.state_change < self.backend_start", int64(pid))
	return err
}
