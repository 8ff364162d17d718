package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

const (
	busyPace = time.Second
	idlePace = 10 * time.Second

	// settled is how long after a reconnection this engine declares no other engine dead: all of them may have lost
	// their connections.
	settled = 10 * time.Second
)

// fleetConn is a second connection, for heartbeats, taking jobs, failure detection and notifications. Its methods are called
// with Store.fleetMu locked.
//
// These cannot use the writer's connection: it may be in a transaction in which the user's SQL runs for minutes, and an
// engine that sent no heartbeat for so long would be declared dead.
type fleetConn struct {
	c          *conn             // nil while there is no connection; guarded by Store.fleetMu, as all below
	since      int64             // when it was created again, in microseconds of the server; 0 for the first one
	ever       bool              // whether there was a connection before
	suspects   map[int64]suspect // engines whose session has ended
	unsure     []workitem.JobID  // taken by a commit of unknown outcome
	closed     bool              // whether the store is closed
	lastNumber int64             // the number of this engine at the last Tick
}

// suspect is an engine whose session was found ended.
type suspect struct{ beat, seen int64 }

// onFleetConn runs f on the second connection, with the number of this engine. It connects first if necessary.
func (s *Store) onFleetConn(ctx context.Context, f func(c *conn, self int64) error) error {
	s.fleetMu.Lock() // not mu, which an Update holds while it runs
	defer s.fleetMu.Unlock()
	if s.fleetConn.closed {
		return errClosed
	}
	if s.fleetConn.c == nil || s.fleetConn.c.gone() {
		c, err := s.db.connectFor(ctx, s.db.set.attention, writerNeeds...)
		if err != nil {
			return s.db.explain(err)
		}
		if s.fleetConn.c, s.fleetConn.since = c, 0; s.fleetConn.ever {
			// After a restart of the server all engines have lost their sessions, and the first one to reconnect would
			// judge all others dead.
			s.fleetConn.since, _, _ = c.number("SELECT " + now) // on an error it stays 0, and others are judged immediately
		}
		s.fleetConn.ever = true
	}
	return s.db.explain(f(s.fleetConn.c, s.number.Load()))
}

// Shared implements [store.Fleet].
func (s *Store) Shared() bool { return s.shared }

// Announce implements [store.Fleet].
func (s *Store) Announce(ctx context.Context, prints []string) error {
	prints = append([]string{}, prints...)
	s.prints.Store(&prints)
	return s.onFleetConn(ctx, func(c *conn, self int64) error {
		_, err := c.run("UPDATE @.processes SET prints = $2 WHERE id = $1", self, prints)
		return err
	})
}

// Knows implements [store.Fleet].
func (s *Store) Knows(ctx context.Context, fingerprint string) (known bool, err error) {
	err = s.onFleetConn(ctx, func(c *conn, _ int64) (err error) {
		_, known, err = c.number("SELECT 1 FROM @.processes WHERE state = 'live' AND $1 = ANY (prints) LIMIT 1", fingerprint)
		return err
	})
	return known, err
}

// confirm returns the jobs that this engine took in a commit whose outcome it does not know. It waits for the end of a
// commit that still runs: no other engine would do those jobs as long as this one lives.
func (d *fleetConn) confirm(c *conn, self int64) ([]*state.Job, error) {
	if len(d.unsure) == 0 {
		return nil, nil
	}
	jobs, err := readJobs(c, "WITH j AS MATERIALIZED (SELECT * FROM @.jobs WHERE id = ANY ($1) AND "+liveJob+" ORDER BY root, id FOR UPDATE) "+
		"SELECT "+tables.Jobs.List("")+" FROM j WHERE holder = $2", // which is what it is after the wait
		ids(d.unsure, func(id workitem.JobID) workitem.JobID { return id }), self)
	if err == nil {
		d.unsure = nil
	}
	return jobs, err
}

// dueOf finds the due jobs of an engine, by the index jobs_held. A job that waits for an event has the zero time.
const dueOf = " FROM @.jobs WHERE holder = $1 AND holder > 0 AND " + liveJob + " AND due > $2 AND due < $3 ORDER BY due, id LIMIT $4"

// Overdue implements [store.Fleet].
func (s *Store) Overdue(ctx context.Context, due time.Time, most int) (jobs []*state.Job, err error) {
	if err := s.window.flush(); err != nil {
		return nil, err
	}
	err = s.onFleetConn(ctx, func(c *conn, self int64) error {
		jobs, err = readJobs(c, "SELECT "+tables.Jobs.List("")+dueOf, self, state.Micros(time.Time{}), state.Micros(due), most)
		return err
	})
	return jobs, err
}

func readJobs(c *conn, query string, args ...any) ([]*state.Job, error) {
	return listOf(c, query, args, tables.ReadJob)
}

// exchange is the statement of a Tick: it sends the heartbeat and reads the state of the fleet. It is a single
// statement since an idle engine runs it six times a minute. It returns one row for each other engine, one row with
// NULLs if there is no other, and no row if this engine was declared dead. Its parts, each using those above it:
//
//	statement_timestamp()   when the server received the statement. Clock skew is measured with it: with
//	                        clock_timestamp(), the time that the statement waits for a lock would count as skew
//	o                       the other engines
//	b                       the heartbeat, with the time until the next one: shorter if another engine is busy
//	the rest                the head of the journal, whether there are free jobs, and a digest of the settings
//
// Each engine's session holds an advisory lock, so taking it shows that the session has ended. It is released at once:
// while it is held, another engine that checks would take the session for alive, and the engine itself would have to
// wait when it reconnects.
const exchange = "WITH o AS MATERIALIZED (SELECT p.id, (extract(epoch FROM u.beat) * 1000000)::bigint AS beat, u.busy, " +
	"p.state = 'dead' OR " + overdue + " AS overdue, " +
	"p.state = 'dead' OR p.pid IS NOT NULL AND CASE WHEN pg_try_advisory_lock(" + sessionLock + ") THEN pg_advisory_unlock(" + sessionLock + ") " +
	"ELSE false END AS gone FROM @.processes p JOIN @.pulses u ON u.process = p.id WHERE p.id <> $1), " +
	"b AS (UPDATE @.pulses SET beat = clock_timestamp(), busy = $2, skew = $3 - " + asked + ", " +
	"pace = CASE WHEN $2 OR EXISTS (SELECT FROM o WHERE o.busy) THEN $4::bigint ELSE $5::bigint END * interval '1 microsecond' " +
	"WHERE process = $1 AND EXISTS (SELECT FROM @.processes WHERE id = $1 AND state = 'live') " +
	"RETURNING (extract(epoch FROM pace) * 1000000)::bigint AS pace, skew) " +
	"SELECT " + asked + ", b.skew, b.pace, h.seq, h.seq < " + horizon + ", " +
	"EXISTS (SELECT FROM @.jobs WHERE holder = 0 AND " + liveJob + "), " +
	"(SELECT encode(sha256(convert_to(COALESCE(string_agg(name || '=' || value || chr(10), '' ORDER BY name), ''), 'UTF8')), 'hex') FROM @.settings), " +
	"o.id, o.beat, o.overdue, o.gone " +
	"FROM b CROSS JOIN (SELECT COALESCE(max(seq), 0) AS seq FROM @.journal) h LEFT JOIN o ON true ORDER BY o.id"

// asked is when the server received the statement, in microseconds.
const asked = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"

// Tick implements [store.Fleet].
func (s *Store) Tick(ctx context.Context, on store.EngineState) (news store.News, err error) {
	fenced := false
	if err := s.window.flush(); err != nil {
		s.log.Warn("the tables could not be written", "database", s.db.name, "error", err)
	}
	err = s.onFleetConn(ctx, func(c *conn, self int64) error {
		// The writer has rejoined under a new number since the last Tick. The engine learns this from one error, here
		// or in its next commit.
		if fenced = s.fleetConn.lastNumber != 0 && s.fleetConn.lastNumber != self; fenced {
			s.fleetConn.lastNumber = self
			return nil
		}
		s.fleetConn.lastNumber = self
		live := false
		if news, live, err = s.tick(c, self, on); err == nil && !live {
			fenced = true
		}
		return err
	})
	if err == nil && fenced {
		return news, s.fencedNow(ctx)
	}
	return news, err
}

// fencedNow makes this engine rejoin, if it has not done so yet, and returns the reason.
func (s *Store) fencedNow(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.dropAhead()
	_, live, err := s.w.number("SELECT 1 FROM @.processes WHERE id = $1 AND state = 'live'", s.self)
	if err == nil && !live {
		err = s.fencedOut(nil)
		s.fleetMu.Lock()
		s.fleetConn.lastNumber = s.self
		s.fleetMu.Unlock()
		return err
	}
	if err != nil {
		return s.db.explain(err)
	}
	return s.db.at("%w", store.ErrFenced)
}

// tick does the work of Tick on a connection; live reports whether this engine is live. It declares others dead only
// after its own heartbeat succeeded: an engine that was itself declared dead must not judge others.
//
// declare compares the heartbeat that was seen, so two engines that were both paused do not declare each other dead.
func (s *Store) tick(c *conn, self int64, on store.EngineState) (news store.News, live bool, err error) {
	var all []other
	at := int64(0)
	err = c.each(exchange, []any{self, on.Busy, state.Micros(on.Clock), s.pace(true).Microseconds(), s.pace(false).Microseconds()}, func(r *tables.Row) error {
		live, at = true, r.Number()
		news.Skew, news.Next = time.Duration(r.Number())*time.Microsecond, time.Duration(r.Number())*time.Microsecond
		news.Head, news.Settled, news.Free, news.Settings = r.Number(), r.Flag(), r.Flag(), r.Text()
		if there := r.Values[len(r.Values)-1] != nil; there {
			all = append(all, other{id: r.Number(), beat: r.Number(), overdue: r.Flag(), gone: r.Flag()})
		}
		return r.Err
	})
	if err != nil || !live {
		return news, live, err
	}
	if news.Died, err = s.adopt(c, s.fleetConn.dead(all, at)); err != nil {
		return news, live, err
	}
	news.Others, news.Soon, news.Free = len(all)-news.Died, s.pace(true), news.Free || news.Died > 0
	s.others.Store(int64(news.Others))
	missed, err := s.areMissed(c)
	if err != nil {
		return news, live, err
	}
	if missed || !news.Settled { // readers that follow the journal wait until it is settled
		news.Next = news.Soon
	}
	news.Changed, err = changed(c, on.Roots)
	return news, live, err
}

// pace is the time until the next Tick. Behind a connection pooler there are no notifications, so it is the
// polling interval.
func (s *Store) pace(busy bool) time.Duration {
	switch {
	case s.db.set.poll > 0:
		return s.db.set.poll
	case busy:
		return busyPace
	}
	return idlePace
}

func changed(c *conn, roots map[workitem.CaseID]int64) (list []workitem.CaseID, err error) {
	if len(roots) == 0 {
		return nil, nil
	}
	var ids [][16]byte
	var last []int64
	for root, seq := range roots {
		ids, last = append(ids, root), append(last, seq)
	}
	err = c.each(findStale, []any{ids, last}, func(r *tables.Row) error {
		list = append(list, tables.ID[workitem.CaseID](r))
		return r.Err
	})
	return list, err
}

// other is another engine as a Tick found it.
type other struct {
	id, beat      int64
	gone, overdue bool // gone: its session has ended; overdue: it has sent no heartbeat for too long
}

// dead selects the engines to declare dead: those that are overdue, and those whose session was found ended in two
// Ticks without a heartbeat in between. One Tick is not enough, since an engine that loses its connection reconnects
// and sends a heartbeat. The two Ticks must be nearly a pace apart; the tenth that may be missing is for timers that
// fire early.
//
// Engine 3 is killed at 10.2 s; engines 1 and 2 look once a second:
//
//	10.5    its session has ended: a suspect, with its beat of 9.9
//	11.5    the same beat: it is declared dead, and its jobs are free
//
// Engine 4 loses its connection at 10.2 s and reconnects at 10.4 s, which takes the lock of its session again: at 10.5
// s it is no suspect.
func (d *fleetConn) dead(all []other, at int64) (dead []other) {
	if d.since > 0 && at-d.since < settled.Microseconds() {
		return nil
	}
	suspects := make(map[int64]suspect)
	for _, o := range all {
		before, known := d.suspects[o.id]
		switch {
		case o.overdue || o.gone && known && before.beat == o.beat && at-before.seen > busyPace.Microseconds()*9/10:
			dead = append(dead, o)
		case o.gone && known && before.beat == o.beat:
			suspects[o.id] = before
		case o.gone:
			suspects[o.id] = suspect{o.beat, at}
		}
	}
	d.suspects = suspects
	return dead
}

// areMissed reports whether a suspected engine holds a job that is due soon, so that the second Tick must follow
// quickly. In an idle fleet the next Tick would otherwise be ten seconds away.
func (s *Store) areMissed(c *conn) (missed bool, err error) {
	if len(s.fleetConn.suspects) == 0 {
		return false, nil
	}
	_, missed, err = c.number("SELECT 1 FROM @.jobs WHERE holder = ANY ($1) AND "+liveJob+" AND due < "+now+" + $2 LIMIT 1",
		slices.Collect(maps.Keys(s.fleetConn.suspects)), idlePace.Microseconds())
	return missed, err
}

var errNoSign = errors.New("its row in the table processes is not live")
