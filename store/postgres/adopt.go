package postgres

import "context"

// adopt declares engines dead, frees what they held, and notifies the others, which may be those that can do it. It returns how
// many there were. Each part is safe to repeat, and the row of an engine goes last: if this one dies meanwhile, the next one that
// looks finds the dead one again, and goes on. Jobs are freed in portions, so that the commits of the living that need one of
// them wait for a portion, and not for all.
//
// What a crash of this engine leaves after each step, and what the next one that looks finds:
//
//	declare        a row that is dead, jobs with its number: exchange reports dead rows as gone and overdue, so it is adopted again
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

// What frees the next portion of the jobs of an engine. As long as there are many, those that somebody has locked are left for later: without an
// order, none is to be waited for. The last ones are locked in the order of all that lock jobs, for which those that are left are sorted each time.
const (
	freeSome = "UPDATE @.jobs j SET holder = 0 FROM (SELECT root, id FROM @.jobs WHERE holder = $1 AND holder > 0 AND " + liveJob +
		" LIMIT 1000 FOR UPDATE SKIP LOCKED) f WHERE j.root = f.root AND j.id = f.id"
	freeLast = "UPDATE @.jobs j SET holder = 0 FROM (SELECT root, id FROM @.jobs WHERE holder = $1 AND holder > 0 AND " + liveJob +
		" ORDER BY root, id LIMIT 1000 FOR UPDATE) f WHERE j.root = f.root AND j.id = f.id"
)

// alive is a heartbeat on the way, for many jobs take longer than what is between two beats.
const alive = "UPDATE @.pulses SET beat = clock_timestamp() WHERE process = $1 AND " +
	"EXISTS (SELECT FROM @.processes WHERE id = $1 AND state = 'live')"

// freeAll frees the jobs of an engine that is dead, and notifies the others of each portion.
func (s *Store) freeAll(c *conn, engine int64) error {
	// A portion of a thousand is a transaction of some ten milliseconds. One for all jobs would have the commits of the
	// living wait for as long as it takes, and would be done again from the beginning if it failed.
	query := freeSome
	for {
		var freed int64
		err := c.transaction(context.Background(), func() (err error) {
			if freed, err = c.run(query, engine); err != nil || freed == 0 {
				return err
			}
			// For an engine that frees a million jobs and sends no heartbeat would be declared dead in the meantime.
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

// byIndex has the server find each row of a portion of the jobs by an index. It would rather read the whole table if it expects that many of its
// rows are wanted, which costs so much for each portion.
var byIndex = []string{"SET LOCAL enable_seqscan = off", "SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off"}

// declare declares an engine dead, unless it has sent a heartbeat. A commit of it that is under way is waited for; if it takes
// long, as that of a process that was stopped, the server ends it. It reports whether the engine lives.
func (s *Store) declare(c *conn, d other) (live bool, err error) {
	query := "UPDATE @.processes SET state = 'dead' WHERE id = $1 AND state = 'live' " +
		// The beat that it was judged by: if it has sent a heartbeat since, it lives.
		"AND (SELECT (extract(epoch FROM beat) * 1000000)::bigint FROM @.pulses WHERE process = $1) = $2"
	try := func() error {
		_, err := c.run(query, d.id, d.beat)
		return err
	}
	err = c.transaction(context.Background(), try)
	// The row is locked by its commit. A process that was stopped within one would hold the lock for as long as it is
	// stopped.
	if code(err) == lockNotAvailable {
		if err = terminate(c, d.id, d.beat); err == nil {
			err = c.transaction(context.Background(), try)
		}
	}
	if code(err) == lockNotAvailable {
		return true, nil // the next look finds it again
	}
	if err != nil {
		return false, err
	}
	if _, live, err = c.number("SELECT 1 FROM @.processes WHERE id = $1 AND state = 'live'", d.id); err != nil || live {
		return live, err
	}
	// A session that is declared dead cannot commit, but may still hold locks of rows that the living need.
	return false, terminate(c, d.id, d.beat) // so that it keeps no lock
}

// terminate ends the server's process that commits for an engine, unless it began to do so after a time, such as that of the engine's last sign
// of life. Of an engine behind a pooler it is the one that holds the lock of connectWriter.
func terminate(c *conn, engine, began int64) error {
	_, err := c.run("SELECT pg_terminate_backend(a.pid) FROM @.processes p JOIN pg_stat_activity a ON a.pid = p.pid OR p.pid IS NULL AND a.pid IN "+
		"(SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND "+
		"l.classid::bigint << 32 | l.objid::bigint = hashtextextended('tasq commit ' || p.token || ' @', 0)) "+
		"WHERE p.id = $1 AND (extract(epoch FROM CASE WHEN p.pid IS NULL THEN a.xact_start ELSE a.backend_start END) * 1000000)::bigint <= $2",
		engine, began)
	return err
}
