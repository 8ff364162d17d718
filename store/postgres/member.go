package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// Each engine that has the database open has a row in the table processes. The row is the fence: a commit takes a
// shared lock on it, so an engine that declares this one dead waits for the commit in progress, and no later one
// succeeds.

const (
	// sessionLock is the key of the lock that an engine's session holds until it ends. Behind a pooler it is never
	// held.
	sessionLock = "hashtextextended('tasq process ' || p.token || ' @', 0)"

	// overdue is true of an engine that has sent no heartbeat for too long.
	overdue = "clock_timestamp() - u.beat > 2.5 * u.pace + interval '5 s'"

	// absent selects the engines that ended without leaving: the lock of their session is free, and the server process
	// that commits for them has ended; or they are behind a pooler, and overdue.
	absent = "p.state = 'live' AND CASE WHEN p.pid IS NULL THEN EXISTS (SELECT FROM @.pulses u WHERE u.process = p.id AND " + overdue + ") " +
		"ELSE pg_try_advisory_xact_lock(" + sessionLock + ") AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = p.pid) END"
)

// join gives this engine a number. Absent engines, or all if this one opens the database alone, are declared dead
// first.
//
// All in one transaction:
//
//	advisory lock "join"     one engine at a time: two that join at once would not see each other's rows
//	mayJoin                  has another engine the database alone?
//	removeEngines            dead ones, since a database without engines has none that detects them
//	mayRun                   is this program new enough for the schema, and can the others read what it will write?
//	findBase                 new positions come after all that are in the journal
//	INSERT INTO processes    the number and the first epoch
//	endOthers                the others write the rows of the tables in their commits from now on
//	INSERT INTO pulses       the first heartbeat, so that this engine is not overdue before its first Tick
//	notify                   at the COMMIT: the others count this engine, and begin no more transactions ahead
//
// After it, settleOthers waits until the tables have what another engine has committed without their rows.
func (s *Store) join(ctx context.Context, c *conn) error {
	err := c.transaction(ctx, func() error {
		// Engines that join at once do so one after the other, so that the second sees the row of the first.
		if err := c.exec(ctx, "SET LOCAL lock_timeout = '30s'"); err != nil {
			return err
		}
		if err := lockJoins(c); err != nil {
			return err
		}
		if err := s.mayJoin(c); err != nil {
			return err
		}
		// An engine that has the database alone holds the lock of all engines, so no other engine can be live, whatever
		// the rows say.
		gone := "true"
		if s.shared {
			gone = absent
		}
		if err := s.removeEngines(ctx, c, gone); err != nil {
			return err
		}
		if err := s.mayRun(c); err != nil {
			return err
		}
		if err := s.findBase(c); err != nil {
			return err
		}
		prints := []string{}
		if known := s.prints.Load(); known != nil {
			prints = *known
		}
		err := c.each("INSERT INTO @.processes (name, state, reads, prints, token, pid, joined) VALUES ($1, 'live', $2, $3, $4, $5, now()) "+
			"RETURNING id, epoch", []any{processName(), format, prints, s.token, s.pidOf(c)}, func(r *tables.Row) error {
			s.self, s.epoch, s.pid = r.Number(), r.Number(), c.pid
			return r.Err
		})
		if err != nil {
			return err
		}
		s.number.Store(s.self)
		if _, err := c.run(endOthers, s.self); err != nil {
			return err
		}
		if _, err = c.run("INSERT INTO @.pulses (process, beat, pace, busy) VALUES ($1, clock_timestamp(), '1s', true)", s.self); err != nil {
			return err
		}
		return notify(c, s.self, "f", "") // the others count this engine
	})
	if err != nil {
		return err
	}
	return s.settleOthers(ctx, c)
}

// mayJoin returns an error that wraps [store.ErrOwned] if the database belongs to another engine and the lock of presence does not show it. An engine
// that shares the database may have no such lock: behind a pooler, or if it has lost its session and joins anew. One that wants the database alone may
// have the lock while a live one has lost its session and is about to take the lock again.
func (s *Store) mayJoin(c *conn) error {
	refused := "SELECT 1 WHERE NOT pg_try_advisory_xact_lock_shared(" + lockKey + ")"
	if !s.shared {
		refused = "SELECT 1 FROM @.processes p JOIN @.pulses u ON u.process = p.id WHERE $1 <> '' AND p.state = 'live' AND NOT " + overdue +
			" AND (p.pid IS NULL OR EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = p.pid)) LIMIT 1"
	}
	_, is, err := c.number(refused, "engine")
	// The session of an engine that has just ended may be there for some milliseconds.
	for end := time.After(tryLock); err == nil && is; {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-end:
			return s.db.owned(c)
		}
		if err = c.exec(context.Background(), "SELECT pg_stat_clear_snapshot()"); err == nil { // which is kept in a transaction
			_, is, err = c.number(refused, "engine")
		}
	}
	return err
}

// pidOf returns the server process by which other engines identify a connection that commits; nil through a pooler,
// which has many.
func (s *Store) pidOf(c *conn) *int32 {
	if s.db.set.poll > 0 {
		return nil
	}
	pid := int32(c.pid)
	return &pid
}

// removeEngines removes the rows of engines that a condition selects, and frees the jobs that no engine holds.
//
// The order matters, although it is one transaction: the UPDATE waits for a commit in progress of the dead engine,
// which has locked the row, and the jobs are freed as that commit leaves them. The term "holder > 0" makes the planner
// use the index jobs_held.
func (s *Store) removeEngines(ctx context.Context, c *conn, gone string) error {
	// A dead engine may have held a million jobs.
	defer c.patiently()()
	if err := c.exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
		return err
	}
	if _, err := c.run("UPDATE @.processes p SET state = 'dead' WHERE " + gone); err != nil {
		return err
	}
	if err := s.projectDead(c); err != nil {
		return err
	}
	if err := s.noteDead(c, "p.id <> $2", s.self); err != nil { // this engine leaves, or joins anew
		return err
	}
	for _, query := range []string{
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

// lockJoins makes engines that join wait for the end of the transaction.
func lockJoins(c *conn) error {
	_, err := c.run("SELECT pg_advisory_xact_lock("+lockKey+")", "join")
	return err
}

// leave frees everything that this engine holds, and notifies the others. COMMIT sends the notification, so an engine
// that receives it finds the jobs free.
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

// resolve rejoins to find the outcome of a commit. It waits for a server that is being restarted.
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

// rejoin reconnects, and begins the next epoch of this engine. After that, a transaction of the lost connection can no
// longer commit.
//
//	the connection is lost in a commit of epoch 3
//	connectWriter            a new session
//	nextEpoch                UPDATE processes SET epoch = 4 WHERE epoch = 3: waits for the old transaction,
//	                         which has locked the row
//	                         - it commits: its entry is in the journal, and happened finds it
//	                         - it rolls back: the entry is not there, and can no longer appear
//	                         - it does not end within lock_timeout: terminate ends it, then the same
//	endLost                  ends the old session, if the server does not know that the connection is lost: it may
//	                         have locked cases before it came to the commit
//	lostLast                 does the server lack an acknowledged entry of this engine, as a standby may?
//	joinAnew                 if the row was dead: a new number, and everything in memory is loaded again
func (s *Store) rejoin(ctx context.Context) error {
	s.forgetAhead()
	if s.w != nil {
		_ = s.w.cut() // the connection is lost already
		s.w = nil
	}
	w, err := s.connectWriter(ctx)
	if err != nil {
		return err
	}
	// The statement that raises the epoch is the fence: once it has committed, nothing can be committed with the old
	// epoch.
	lost := s.pid
	live, err := s.nextEpoch(w)
	if code(err) == lockNotAvailable { // a commit of the lost connection is still running, and has locked the row
		if err = terminate(w, s.self, math.MaxInt64); err == nil {
			live, err = s.nextEpoch(w)
		}
	}
	if err == nil && live {
		err = s.endLost(w, lost)
	}
	if err == nil && live && s.shared {
		// A commit of unknown outcome may have assigned jobs to this engine that it does not know of.
		unknown := s.doubt
		if !unknown {
			unknown, err = s.lostLast(w)
		}
		if unknown && err == nil {
			live, err = false, s.giveUp(w)
		}
	}
	if err == nil && live {
		err = s.window.rejoined(w)
	}
	if err == nil {
		s.w, s.doubt = w, false
		if !live {
			if err = s.joinAnew(nil); errors.Is(err, store.ErrFenced) && s.w != nil && !errors.Is(err, store.ErrUnavailable) {
				err, s.rejoined = nil, true // the next commit reports the rejoin
			}
		}
		return err
	}
	return errors.Join(err, w.close())
}

// lastEntry is an entry that an engine appended, with the engine's number at that time.
type lastEntry struct {
	root    workitem.CaseID
	seq     int64
	process int64
}

// noteLast records the last entry that this engine appended.
//
// One entry is enough: a standby lacks the newest entries, and the commits of an engine have one order. Entries of
// removed trees do not count, since they are not in the journal in either case.
func (s *Store) noteLast(appended tables.Appended) {
	for i := len(appended) - 1; i >= 0; i-- {
		if e := appended[i].Entry; !appended.Removed(e.Root) {
			s.last = lastEntry{e.Root, e.Seq, s.self}
			return
		}
	}
}

// lostLast reports whether the database lacks the last entry of this engine, as a promoted standby may. It is false if
// there is no last entry.
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

// giveUp declares this engine dead. After a commit of unknown outcome, or the loss of commits, the database may have
// assigned jobs to it that it does not know of: this frees them before it rejoins.
func (s *Store) giveUp(w *conn) error {
	_, err := w.run("UPDATE @.processes SET state = 'dead' WHERE id = $1", s.self)
	return err
}

// nextEpoch begins the next epoch of this engine, and reports whether it is live.
func (s *Store) nextEpoch(w *conn) (live bool, err error) {
	var epoch int64
	err = w.transaction(context.Background(), func() (err error) {
		// The condition has the epoch that this engine knows: if the result of this statement is lost, the next attempt
		// finds another epoch and rejoins.
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

// fencedOut returns the error of an engine that another one has declared dead. It rejoins if it shares the database, with a new connection if
// it loses this one: the engine that declares another one dead ends its session ([terminate]), which may be joining at that moment.
func (s *Store) fencedOut(err error) error {
	err = s.joinAnew(err)
	if !s.shared || !errors.Is(err, store.ErrUnavailable) || !s.w.gone() {
		return err
	}
	if failed := s.rejoin(context.Background()); failed != nil {
		return errors.Join(err, failed)
	}
	s.rejoined = false // this error reports it
	return s.db.at("%w", &store.StaleError{Err: store.ErrFenced})
}

// joinAnew is fencedOut on the connection that is there.
func (s *Store) joinAnew(err error) error {
	if _, err := s.db.pendingMigrations(s.w); errors.Is(err, store.ErrNewer) {
		return s.lose(s.db.tooOld(err))
	}
	if !s.shared {
		return s.db.taken(errors.Join(errNoSign, err))
	}
	s.window.drop() // another engine has written it, or join does
	s.window.on = false
	s.log.Warn("this engine was declared dead; it joins anew", "database", s.db.name, "engine", s.self)
	if err := s.join(context.Background(), s.w); err != nil {
		if errors.Is(err, store.ErrNewer) {
			return s.lose(s.db.tooOld(err))
		}
		return s.db.at("%w: %w, and it could not join anew: %w", store.ErrUnavailable, store.ErrFenced, err)
	}
	// Its jobs are free now, and this engine may take them again.
	s.hints.send(store.Hint{Free: true})
	return s.db.at("%w", &store.StaleError{Err: store.ErrFenced})
}
