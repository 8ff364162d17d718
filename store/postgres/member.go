package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// Each engine that has the database open is a row of the table processes. The row is the fence: a commit locks it for sharing, so
// the engine that declares another one dead waits for the commit that is under way, and none can follow.

const (
	// sessionLock is the number of the lock that the session of an engine holds until it ends. One behind a pooler never holds it.
	sessionLock = "hashtextextended('tasq process ' || p.token || ' @', 0)"

	// overdue is that of an engine that has not sent a heartbeat for long.
	overdue = "clock_timestamp() - u.beat > 2.5 * u.pace + interval '5 s'"

	// absent selects the engines that have gone without a word: no session holds the lock of their session, and the server's process that
	// was to commit for them has ended; or they are behind a pooler, and overdue.
	absent = "p.state = 'live' AND CASE WHEN p.pid IS NULL THEN EXISTS (SELECT FROM @.pulses u WHERE u.process = p.id AND " + overdue + ") " +
		"ELSE pg_try_advisory_xact_lock(" + sessionLock + ") AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = p.pid) END"
)

// join gives this engine a number. Engines that are gone, or all if this one is alone, are declared dead before.
//
// In one transaction, which others see as a whole or not at all:
//
//	advisory lock "join"     one engine at a time: two that join at once would each not see the row of the other
//	mayJoin                  is the database another engine's alone?
//	removeEngines            dead ones, since a database without engines has none that looks
//	findBase                 positions go on behind all that is in the journal
//	INSERT INTO processes    the number and the first epoch
//	INSERT INTO pulses       the first heartbeat, so that this engine is not overdue before its first Tick
//	notify                   at the COMMIT: the others count this engine, and begin nothing ahead any more
func (s *Store) join(ctx context.Context, c *conn) error {
	return c.transaction(ctx, func() error {
		// Two that join at once do so one after the other, so that the second sees the row of the first.
		if err := c.exec(ctx, "SET LOCAL lock_timeout = '30s'"); err != nil {
			return err
		}
		if _, err := c.run("SELECT pg_advisory_xact_lock("+lockKey+")", "join"); err != nil {
			return err
		}
		if err := s.mayJoin(c); err != nil {
			return err
		}
		// An engine that has the database alone holds the lock of all engines, so none of the others can be there, whatever
		// their rows say.
		gone := "true"
		if s.shared {
			gone = absent
		}
		if err := s.removeEngines(ctx, c, gone); err != nil {
			return err
		}
		if err := s.findBase(c); err != nil {
			return err
		}
		host, _ := os.Hostname()
		prints := []string{}
		if known := s.prints.Load(); known != nil {
			prints = *known
		}
		err := c.each("INSERT INTO @.processes (name, state, reads, prints, token, pid, joined) VALUES ($1, 'live', $2, $3, $4, $5, now()) "+
			"RETURNING id, epoch", []any{fmt.Sprintf("%s/%d", host, os.Getpid()), format, prints, s.token, s.pidOf(c)}, func(r *tables.Row) error {
			s.self, s.epoch, s.pid = r.Number(), r.Number(), c.pid
			return r.Err
		})
		if err != nil {
			return err
		}
		s.number.Store(s.self)
		if _, err = c.run("INSERT INTO @.pulses (process, beat, pace, busy) VALUES ($1, clock_timestamp(), '1s', true)", s.self); err != nil {
			return err
		}
		return notify(c, s.self, "f", "") // the others count this engine
	})
}

// mayJoin returns an error that wraps [store.ErrOwned] if another engine has the database in a way that its lock, see presence, does not
// keep from this one: one of the two is behind a pooler, and holds none.
func (s *Store) mayJoin(c *conn) error {
	refused := "SELECT 1 WHERE NOT pg_try_advisory_xact_lock_shared(" + lockKey + ")"
	switch {
	case s.db.set.poll > 0:
	case s.shared:
		return nil
	default:
		refused = "SELECT 1 FROM @.processes p JOIN @.pulses u ON u.process = p.id WHERE $1 <> '' AND p.pid IS NULL AND p.state = 'live' AND NOT " +
			overdue + " LIMIT 1"
	}
	_, is, err := c.number(refused, "engine")
	if err == nil && is {
		err = s.db.owned(c)
	}
	return err
}

// pidOf is how others know a connection that commits: by the server's process; NULL through a pooler, which has many.
func (s *Store) pidOf(c *conn) *int32 {
	if s.db.set.poll > 0 {
		return nil
	}
	pid := int32(c.pid)
	return &pid
}

// removeEngines removes the rows of engines that a condition selects, and gives the jobs free that no engine holds.
//
// In this order, though in one transaction: the UPDATE waits for a commit of the dead engine that is under way, since that
// has locked the row, and the jobs are freed as that commit leaves them. "holder > 0" is the term of the index jobs_held.
func (s *Store) removeEngines(ctx context.Context, c *conn, gone string) error {
	// A dead engine may have held a million jobs.
	defer c.patiently()()
	if err := c.exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
		return err
	}
	for _, query := range []string{
		"UPDATE @.processes p SET state = 'dead' WHERE " + gone,
		"DELETE FROM @.processes WHERE state = 'dead'",
		"DELETE FROM @.pulses WHERE process NOT IN (SELECT id FROM @.processes)",
		"UPDATE @.jobs SET holder = 0 WHERE holder > 0 AND " + liveJob + " AND holder NOT IN (SELECT id FROM @.processes)",
	} {
		if _, err := c.run(query); err != nil {
			return err
		}
	}
	return nil
}

// leave gives everything free that this engine holds, and notifies the others.
//
// The notification is sent by the COMMIT, so who hears of it finds the jobs free.
func (s *Store) leave(ctx context.Context) error {
	return s.w.transaction(ctx, func() error {
		if err := notify(s.w, s.self, "f", ""); err != nil {
			return err
		}
		_, err := s.w.run("UPDATE @.processes SET state = 'dead' WHERE id = $1", s.self)
		if err == nil {
			err = s.removeEngines(ctx, s.w, "false")
		}
		return err
	})
}

// resolve rejoins to find out what became of a commit. A server that is restarted is waited for.
func (s *Store) resolve() error {
	ctx, cancel := context.WithTimeout(s.ending, s.db.set.resolve)
	defer cancel()
	again := time.NewTicker(reconnect)
	defer again.Stop()
	for {
		err := s.rejoin(ctx)
		if err == nil || !errors.Is(s.db.explain(err), store.ErrUnavailable) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// rejoin reconnects. What the lost connection was about to commit cannot happen any more after that: the next epoch of this
// engine begins.
//
//	the connection is lost in a commit of epoch 3
//	connectWriter            a new session
//	nextEpoch                UPDATE processes SET epoch = 4 WHERE epoch = 3: waits for the old transaction, which has locked the row
//	                         - it ends by COMMIT: its entry is there, and happened says so
//	                         - it ends by ROLLBACK: it is not there, and cannot come any more
//	                         - it does not end within lock_timeout: terminate ends it, then the same
//	lostLast                 does the server have what this one has acknowledged, or is it a standby without it?
//	fencedOut                if the row was dead: a new number, and all that is in memory is loaded again
func (s *Store) rejoin(ctx context.Context) error {
	s.forgetAhead()
	if s.w != nil {
		_ = s.w.cut() // it is gone already
		s.w = nil
	}
	w, err := s.connectWriter(ctx)
	if err != nil {
		return err
	}
	// The statement that raises the epoch is the fence: from its commit on, nothing can be committed with the old one.
	live, err := s.nextEpoch(w)
	if code(err) == lockNotAvailable { // a commit of the lost connection still runs, and holds the row
		if err = terminate(w, s.self, math.MaxInt64); err == nil {
			live, err = s.nextEpoch(w)
		}
	}
	if err == nil && live && s.shared {
		// A commit of unknown outcome may have given this engine jobs that it does not know of, and nothing tells it which.
		lost := s.doubt
		if !lost {
			lost, err = s.lostLast(w)
		}
		if lost && err == nil {
			live, err = false, s.giveUp(w)
		}
	}
	if err == nil {
		s.w, s.doubt = w, false
		if !live {
			if err = s.fencedOut(nil); errors.Is(err, store.ErrFenced) && s.w != nil && !errors.Is(err, store.ErrUnavailable) {
				err, s.rejoined = nil, true // it has rejoined, and the next commit says so
			}
		}
		return err
	}
	return errors.Join(err, w.close())
}

// lastEntry is one that an engine appended, under a number of its.
type lastEntry struct {
	root    workitem.CaseID
	seq     int64
	process int64
}

// noteLast keeps which entry this engine appended last.
//
// One entry is enough: what a standby lacks is the newest, and all of this engine's commits are in one order. An entry of a
// removed tree is not in the journal either way, so it says nothing.
func (s *Store) noteLast(appended tables.Appended) {
	for i := len(appended) - 1; i >= 0; i-- {
		if e := appended[i].Entry; !appended.Removed(e.Root) {
			s.last = lastEntry{e.Root, e.Seq, s.self}
			return
		}
	}
}

// lostLast reports whether the database lacks the last entry of this engine, as a standby that was promoted may. It is false if there is none.
func (s *Store) lostLast(w *conn) (bool, error) {
	if s.last.seq == 0 {
		return false, nil
	}
	_, found, err := w.number("SELECT 1 FROM @.journal WHERE root = $1 AND seq = $2 AND process = $3", uuid(s.last.root), s.last.seq, s.last.process)
	if err == nil && !found {
		s.log.Error("the database lacks what this engine committed last, as a standby does that was promoted and was not synchronous, or the case was removed "+
			"since; the engine joins anew, so that what it holds is what the database says", "database", s.db.name, "case", s.last.root)
		s.last = lastEntry{}
	}
	return err == nil && !found, err
}

// giveUp declares this engine dead. It may be given jobs by the database that it does not know of, by a commit of unknown outcome or since
// commits were lost: they are free when it rejoins.
func (s *Store) giveUp(w *conn) error {
	_, err := w.run("UPDATE @.processes SET state = 'dead' WHERE id = $1", s.self)
	return err
}

// nextEpoch begins the next epoch of this engine, and reports whether it is alive.
func (s *Store) nextEpoch(w *conn) (live bool, err error) {
	var epoch int64
	err = w.transaction(context.Background(), func() (err error) {
		// With the epoch that this engine knows: if the answer of this very statement is lost, the next attempt finds
		// another epoch and rejoins.
		epoch, live, err = w.number("UPDATE @.processes SET epoch = epoch + 1, pid = $3 "+
			"WHERE id = $1 AND epoch = $2 AND state = 'live' RETURNING epoch", s.self, s.epoch, s.pidOf(w))
		if err == nil {
			err = s.findBase(w)
		}
		return err
	})
	if live = live && err == nil; live {
		s.epoch, s.pid = epoch, w.pid
	}
	return live, err
}

// fencedOut is the error of an engine that another one declared dead. One that shares the database rejoins.
func (s *Store) fencedOut(err error) error {
	if !s.shared {
		return s.db.taken(errors.Join(errNoSign, err))
	}
	s.log.Warn("this engine was declared dead; it joins anew", "database", s.db.name, "engine", s.self)
	if err := s.join(context.Background(), s.w); err != nil {
		return s.db.at("%w: %w, and it could not join anew: %w", store.ErrUnavailable, store.ErrFenced, err)
	}
	// Its jobs are free by now, for this engine as for the others.
	s.hints.send(store.Hint{Free: true})
	return s.db.at("%w", &store.StaleError{Err: store.ErrFenced})
}
