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
type side struct {
	c        *conn             // nil while there is no connection; guarded by Store.sideMu, as all below
	since    int64             // when it was made anew, in microseconds of the server; 0 for the first one
	ever     bool              // there was a connection
	suspects map[int64]suspect // engines whose session has ended
	unsure   []workitem.JobID  // taken by a commit of unknown outcome
	over     bool              // the store is closed
	told     int64             // the number of this engine at the last Tick
}

// suspect is an engine whose session was found ended.
type suspect struct{ beat, seen int64 }

// aside runs f on the connection beside the writer's, with the number of this engine.
func (s *Store) aside(ctx context.Context, f func(c *conn, self int64) error) error {
	s.sideMu.Lock() // and not mu, which an Update holds as long as it runs
	defer s.sideMu.Unlock()
	if s.side.over {
		return errClosed
	}
	if s.side.c == nil || s.side.c.gone() {
		c, err := s.db.connectFor(ctx, s.db.set.attention, writerNeeds...)
		if err != nil {
			return s.db.explain(err)
		}
		if s.side.c, s.side.since = c, 0; s.side.ever {
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
	return s.aside(ctx, func(c *conn, self int64) error {
		_, err := c.run("UPDATE @.processes SET prints = $2 WHERE id = $1", self, prints)
		return err
	})
}

// Knows implements [store.Fleet].
func (s *Store) Knows(ctx context.Context, fingerprint string) (known bool, err error) {
	err = s.aside(ctx, func(c *conn, _ int64) (err error) {
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
	err = s.aside(ctx, func(c *conn, self int64) error {
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
		for _, j := range slices.Concat(jobs, taken) { // the commit may have happened
			s.side.unsure = append(s.side.unsure, j.ID)
		}
		jobs = nil
		return err
	})
	return jobs, err
}

// confirm returns which of the jobs are this engine's that it took by a commit whose outcome it did not hear. If that still runs, its end is
// waited for: nobody else would do those jobs as long as this engine lives.
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

// beat gives a sign of life, unless this engine was declared dead. It returns the server's time.
const beat = "UPDATE @.pulses SET beat = clock_timestamp(), pace = $2 * interval '1 microsecond', busy = $3, skew = $4 " +
	"WHERE process = $1 AND EXISTS (SELECT FROM @.processes WHERE id = $1 AND state = 'live') RETURNING " + now

// Tick implements [store.Fleet].
func (s *Store) Tick(ctx context.Context, on store.Standing) (news store.News, err error) {
	fenced := false
	err = s.aside(ctx, func(c *conn, self int64) error {
		if fenced = s.side.told != 0 && s.side.told != self; fenced {
			s.side.told = self
			return nil
		}
		s.side.told = self
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
		s.side.told = s.self
		s.sideMu.Unlock()
		return err
	}
	if err != nil {
		return s.db.explain(err)
	}
	return s.db.at("%w", store.ErrFenced)
}

// tick is what Tick does on a connection; live reports whether this engine is. The order matters:
//
//   - The clocks are compared before anything that may wait for a lock, which would be taken for a difference between them.
//   - The others are looked at before the sign of life, which says how soon the next one is to be expected: sooner if one of them is busy.
//   - Others are declared dead after it: an engine that was declared dead itself has no say in that.
func (s *Store) tick(c *conn, self int64, on store.Standing) (news store.News, live bool, err error) {
	at, live, err := c.number("SELECT " + now)
	if err != nil {
		return news, live, err
	}
	skew := state.Micros(on.Clock) - at
	news.Skew = time.Duration(skew) * time.Microsecond
	others, err := s.look(c, self)
	if err != nil {
		return news, live, err
	}
	pace := s.pace(on.Busy || others.busy)
	if at, live, err = c.number(beat, self, pace.Microseconds(), on.Busy, skew); err != nil || !live {
		return news, live, err
	}
	if news.Died, err = s.adopt(c, s.side.dead(others.all, at)); err != nil {
		return news, live, err
	}
	news.Others, news.Next, news.Soon = len(others.all)-news.Died, pace, s.pace(true)
	s.others.Store(int64(news.Others))
	err = c.each("SELECT h.seq, h.seq < "+horizon+" FROM (SELECT COALESCE(max(seq), 0) AS seq FROM @.journal) h", nil, func(r *tables.Row) error {
		news.Head, news.Settled = r.Number(), r.Flag()
		return r.Err
	})
	if err != nil {
		return news, live, err
	}
	missed, err := s.areMissed(c)
	if err != nil {
		return news, live, err
	}
	if missed || !news.Settled { // those who follow the journal wait for it to settle
		news.Next = news.Soon
	}
	if _, news.Free, err = c.number("SELECT 1 FROM @.jobs WHERE holder = 0 AND " + liveJob + " LIMIT 1"); err != nil {
		return news, live, err
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
	gone, overdue bool // its session has ended; it has given no sign of life for long
}

type others struct {
	all  []other
	busy bool
}

// look finds the other engines.
func (s *Store) look(c *conn, self int64) (o others, err error) {
	err = c.each("SELECT p.id, (extract(epoch FROM u.beat) * 1000000)::bigint, u.busy, "+
		"p.state = 'dead' OR "+overdue+", p.state = 'dead' OR p.pid IS NOT NULL AND "+noSession+" "+
		"FROM @.processes p JOIN @.pulses u ON u.process = p.id WHERE p.id <> $1 ORDER BY p.id", []any{self}, func(r *tables.Row) error {
		other := other{id: r.Number(), beat: r.Number()}
		o.busy = r.Flag() || o.busy
		other.overdue, other.gone = r.Flag(), r.Flag()
		o.all = append(o.all, other)
		return r.Err
	})
	return o, err
}

// dead selects the engines that are to be declared dead: those that are overdue, and those whose session was found ended twice without
// a sign of life between. Once is not enough: an engine whose connection was lost makes a new one, and gives a sign of life by that. The
// two looks are about a pace apart, less what a timer may be early.
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
// until it began that, neither its own signs of life nor those of the others are frequent.
func (s *Store) areMissed(c *conn) (missed bool, err error) {
	if len(s.side.suspects) == 0 {
		return false, nil
	}
	_, missed, err = c.number("SELECT 1 FROM @.jobs WHERE holder = ANY ($1) AND "+liveJob+" AND due < "+now+" + $2 LIMIT 1",
		slices.Collect(maps.Keys(s.side.suspects)), idlePace.Microseconds())
	return missed, err
}

var errNoSign = errors.New("its row in the table processes is not live")
