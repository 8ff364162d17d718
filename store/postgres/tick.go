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

	// settled is how long after a connection was made anew no engine is declared dead: they may all have lost theirs.
	settled = 10 * time.Second
)

// side is a connection beside the writer's, for what concerns the fleet. Its methods lock it.
//
// It has a connection of its own, as the writer's may be in a transaction, of which SQL of the user's runs for minutes. By
// it this engine sends its heartbeat, takes jobs, judges others, and notifies them.
type side struct {
	c          *conn             // nil while there is no connection; guarded by Store.sideMu, as all below
	since      int64             // when it was made anew, in microseconds of the server; 0 for the first one
	ever       bool              // there was a connection
	suspects   map[int64]suspect // engines whose session has ended
	unsure     []workitem.JobID  // taken by a commit of unknown outcome
	closed     bool              // the store is closed
	lastNumber int64             // the number of this engine at the last Tick
}

// suspect is an engine whose session was found ended.
type suspect struct{ beat, seen int64 }

// onSide runs f on the connection beside the writer's, with the number of this engine.
func (s *Store) onSide(ctx context.Context, f func(c *conn, self int64) error) error {
	s.sideMu.Lock() // and not mu, which an Update holds as long as it runs
	defer s.sideMu.Unlock()
	if s.side.closed {
		return errClosed
	}
	if s.side.c == nil || s.side.c.gone() {
		c, err := s.db.connectFor(ctx, s.db.set.attention, writerNeeds...)
		if err != nil {
			return s.db.explain(err)
		}
		if s.side.c, s.side.since = c, 0; s.side.ever {
			// After a restart of the server all engines have lost their sessions, and the first to come back would find all
			// others gone.
			s.side.since, _, _ = c.number("SELECT " + now) // without it, all are trusted to be judged
		}
		s.side.ever = true
	}
	return s.db.explain(f(s.side.c, s.number.Load()))
}

// Shared implements [store.Fleet].
func (s *Store) Shared() bool { return s.shared }

// Announce implements [store.Fleet].
func (s *Store) Announce(ctx context.Context, prints []string) error {
	prints = append([]string{}, prints...)
	s.prints.Store(&prints)
	return s.onSide(ctx, func(c *conn, self int64) error {
		_, err := c.run("UPDATE @.processes SET prints = $2 WHERE id = $1", self, prints)
		return err
	})
}

// Knows implements [store.Fleet].
func (s *Store) Knows(ctx context.Context, fingerprint string) (known bool, err error) {
	err = s.onSide(ctx, func(c *conn, _ int64) (err error) {
		_, known, err = c.number("SELECT 1 FROM @.processes WHERE state = 'live' AND $1 = ANY (prints) LIMIT 1", fingerprint)
		return err
	})
	return known, err
}

// take makes free jobs this engine's, if it is alive. Those of a definition that it lacks, and of queues that are named, stay.
//
// Engines that take at the same moment do not wait for one another: each leaves out what another one has locked. The row of the engine
// itself is locked, too: who declares it dead waits until this has ended, and then finds and frees what it took. Without that, jobs that
// are taken in the meantime would stay with an engine that does not come back. Both parts are materialized, as the limit must hold for the
// statement, and not for each time that a plan runs a part of it.
//
// Jobs come by jobs_free, whose order is that of ORDER BY: the highest priority first, then by their time. The fingerprint
// of the case is compared for each that the index gives: an engine that lacks the definition leaves the job to one that has
// it, as in a deployment of a new version.
//
//	engine 1    locks jobs 7, 8 and 9, and makes them its own
//	engine 2    the same statement at the same moment: skips these, and locks 10, 11 and 12
const take = "WITH me AS MATERIALIZED (SELECT prints FROM @.processes WHERE id = $1 AND state = 'live' FOR SHARE), " +
	"f AS MATERIALIZED (SELECT j.root, j.id FROM @.jobs j WHERE j.holder = 0 AND j." + liveJob + " " +
	"AND (SELECT c.fingerprint FROM @.cases c WHERE c.root = j.root AND c.id = j.case_id) = ANY ((SELECT prints FROM me)::text[]) " +
	"AND (j.kind NOT IN ('run', 'call') OR j.queue <> ALL ($2::text[]) AND ($4::text[] IS NULL OR j.queue = ANY ($4::text[]))) " +
	"ORDER BY -j.priority, j.due, j.id LIMIT $3 FOR UPDATE OF j SKIP LOCKED), " +
	"t AS (UPDATE @.jobs j SET holder = $1 FROM f WHERE j.root = f.root AND j.id = f.id RETURNING j.*) SELECT "

// takeInOrder has the server go through free jobs by the index that has them in their order, to the limit. It expects few of them, since most
// jobs are done, and would rather read all and sort them, each time that some are taken of a long queue.
var takeInOrder = slices.Concat(byIndex, []string{"SET LOCAL enable_bitmapscan = off", "SET LOCAL enable_sort = off"})

// Take implements [store.Fleet].
func (s *Store) Take(ctx context.Context, f store.TakeFilter) (jobs []*state.Job, err error) {
	without := f.Without
	if without == nil {
		without = []string{}
	}
	err = s.onSide(ctx, func(c *conn, self int64) error {
		if jobs, err = s.side.confirm(c, self); err != nil {
			return err
		}
		var taken []*state.Job
		err := c.transaction(context.Background(), func() error {
			taken, err = readJobs(c, take+tables.Jobs.List("")+" FROM t", self, without, f.Max, f.Only)
			return err
		}, takeInOrder...)
		if err == nil {
			jobs = append(jobs, taken...)
			return nil
		}
		// Not dropped: a job that the database gives to this engine is done by no other. The next Take asks which they are.
		for _, j := range slices.Concat(jobs, taken) { // the commit may have happened
			s.side.unsure = append(s.side.unsure, j.ID)
		}
		jobs = nil
		return err
	})
	return jobs, err
}

// confirm returns the jobs that this engine took in a commit whose outcome it does not know. It waits for the end of a commit that still
// runs: no other engine would do those jobs as long as this one lives.
func (d *side) confirm(c *conn, self int64) ([]*state.Job, error) {
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

func readJobs(c *conn, query string, args ...any) (jobs []*state.Job, err error) {
	err = c.each(query, args, func(r *tables.Row) error {
		j, err := tables.ReadJob(r)
		jobs = append(jobs, j)
		return err
	})
	return jobs, err
}

// exchange is what a Tick asks and says, in one statement: an idle engine costs the server six of them a minute. It returns a row for each other
// engine, at least one, and none if this engine was declared dead. What it is made of, in the order of what depends on what:
//
//	statement_timestamp()   when the server has read the statement. The clocks are compared by it, since what the statement waits for, as a
//	                        lock, would be taken for a difference between them
//	o                       the other engines
//	b                       the heartbeat, which says how soon the next one is to be expected: sooner if one of the others is busy
//	the rest                what there is in the tables, and what the settings are
//
// Who looks whether the session of an engine has ended takes its lock, and lets go of it at once: another one that looks at that moment
// would take the engine for alive, or the engine itself would wait as it connects anew.
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

// asked is when the server has read a statement, in microseconds.
const asked = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"

// Tick implements [store.Fleet].
func (s *Store) Tick(ctx context.Context, on store.Standing) (news store.News, err error) {
	fenced := false
	err = s.onSide(ctx, func(c *conn, self int64) error {
		// The writer has joined anew since the last Tick, and the engine learns of it by one error, here or in its next
		// commit.
		if fenced = s.side.lastNumber != 0 && s.side.lastNumber != self; fenced {
			s.side.lastNumber = self
			return nil
		}
		s.side.lastNumber = self
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

// fencedNow has this engine join anew if it has not done so yet, and returns why.
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
		s.sideMu.Lock()
		s.side.lastNumber = s.self
		s.sideMu.Unlock()
		return err
	}
	if err != nil {
		return s.db.explain(err)
	}
	return s.db.at("%w", store.ErrFenced)
}

// tick is what Tick does on a connection; live reports whether this engine is. Others are declared dead after its heartbeat: an engine that
// was declared dead itself has no say in that.
//
// declare compares the beat that was seen, so two engines that were stopped for the same time do not end each other.
func (s *Store) tick(c *conn, self int64, on store.Standing) (news store.News, live bool, err error) {
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
	if news.Died, err = s.adopt(c, s.side.dead(all, at)); err != nil {
		return news, live, err
	}
	news.Others, news.Soon, news.Free = len(all)-news.Died, s.pace(true), news.Free || news.Died > 0
	s.others.Store(int64(news.Others))
	missed, err := s.areMissed(c)
	if err != nil {
		return news, live, err
	}
	if missed || !news.Settled { // those who follow the journal wait for it to settle
		news.Next = news.Soon
	}
	news.Changed, err = changed(c, on.Roots)
	return news, live, err
}

// pace is how long it is to the next Tick. Behind a pooler, nothing wakes an engine before it.
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

// other is another engine, as it was seen.
type other struct {
	id, beat      int64
	gone, overdue bool // its session has ended; it has sent no heartbeat for long
}

// dead selects the engines that are to be declared dead: those that are overdue, and those whose session was found ended twice without
// a heartbeat between. Once is not enough: an engine whose connection was lost makes a new one, and sends a heartbeat by that. The
// two looks are about a pace apart, less what a timer may be early.
//
// Engine 3 is killed at 10.2 s; engines 1 and 2 look once a second:
//
//	10.5    its session has ended: a suspect, with its beat of 9.9
//	11.5    the same beat: it is declared dead, and its jobs are free
//
// Another one, 4, loses its connection at 10.2 s and makes a new one at 10.4 s, with the lock of its session: at 10.5 it is
// no suspect.
func (d *side) dead(all []other, at int64) (dead []other) {
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

// areMissed reports whether an engine that is suspected holds what is due, so that the second look at it must not take long. If all was quiet
// until it began that, neither its own heartbeats nor those of the others are frequent.
func (s *Store) areMissed(c *conn) (missed bool, err error) {
	if len(s.side.suspects) == 0 {
		return false, nil
	}
	_, missed, err = c.number("SELECT 1 FROM @.jobs WHERE holder = ANY ($1) AND "+liveJob+" AND due < "+now+" + $2 LIMIT 1",
		slices.Collect(maps.Keys(s.side.suspects)), idlePace.Microseconds())
	return missed, err
}

var errNoSign = errors.New("its row in the table processes is not live")
