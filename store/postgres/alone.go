package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/store/internal/tables"
)

// fencedAlone is fenced for a commit whose rows are not in it.
const fencedAlone = "SELECT 1 / COALESCE((SELECT 1 FROM @.processes WHERE id = $1 AND epoch = $2 AND state = 'live' AND windowed FOR SHARE), 0)"

// adjust begins the window if this engine is the only one, and ends it if it is no longer. An error is no error of the update that calls it:
// the fence refuses a commit that the window must not have.
func (w *window) adjust() {
	s := w.s
	if s.db.set.window == 0 || w.on == (s.others.Load() == 0) || !w.on && w.rests.Load() {
		return
	}
	var err error
	if w.on {
		err = w.leave()
	} else {
		err = w.enter()
	}
	w.rests.Store(true)
	time.AfterFunc(enterPace, func() { w.rests.Store(false) })
	if err != nil {
		s.log.Warn("whether rows are written after the commits could not be changed", "database", s.db.name, "error", err)
	}
}

// enter begins the window, unless there are other engines.
//
// The lock makes an engine that joins meanwhile do so before, so that its row is seen, or after, so that it ends the window. It is not waited for:
// who has it joins.
func (w *window) enter() error {
	s, alone := w.s, false
	s.dropAhead()
	err := s.w.transaction(context.Background(), func() error {
		_, locked, err := s.w.number("SELECT 1 WHERE pg_try_advisory_xact_lock("+lockKey+")", "join")
		if err != nil || !locked {
			return err
		}
		n, err := s.w.run("UPDATE @.processes SET windowed = true WHERE id = $1 AND epoch = $2 AND state = 'live' AND "+
			"NOT EXISTS (SELECT FROM @.processes WHERE id <> $1)", s.self, s.epoch)
		if alone = n == 1; !alone || err != nil {
			return err
		}
		// The first position is later than 1: see position.go.
		_, err = s.w.run("UPDATE @.pulses SET projected = (SELECT COALESCE(max(seq), 1) FROM @.journal) WHERE process = $1", s.self)
		return err
	})
	if err != nil || !alone {
		return err
	}
	w.fence()
	w.on = true
	return nil
}

// leave writes the window and ends it.
func (w *window) leave() error {
	if err := w.flush(); err != nil {
		return err
	}
	s := w.s
	s.dropAhead()
	err := s.w.transaction(context.Background(), func() error {
		_, err := s.w.run("UPDATE @.processes SET windowed = false WHERE id = $1", s.self)
		if err == nil {
			_, err = s.w.run("UPDATE @.pulses SET projected = NULL WHERE process = $1", s.self)
		}
		return err
	})
	if err == nil {
		w.on = false
	}
	return err
}

// rejoined continues the window after a connection was lost, in the next epoch.
//
// An engine that shares the database has found out before whether the server has what this engine committed: otherwise it is
// declared dead. One that has the database alone has no such check, so it writes the window from the journal: a standby that was promoted may lack entries,
// and may have one of which no answer came.
func (w *window) rejoined(c *conn) error {
	if !w.on {
		return nil
	}
	if w.fence(); w.s.shared {
		return nil
	}
	w.drop()
	return c.transaction(context.Background(), func() error {
		_, live, err := c.number("SELECT 1 FROM @.processes WHERE id = $1 AND epoch = $2 AND state = 'live' FOR SHARE", w.s.self, w.s.epoch)
		if err != nil || !live {
			return err
		}
		return w.s.project(c, w.s.self, w.s.self)
	})
}

// isAlone reports whether no other engine can have changed anything.
func (w *window) isAlone() (bool, error) {
	if !w.on {
		return false, nil
	}
	_, is, err := w.s.w.number("SELECT 1 FROM @.processes WHERE id = $1 AND epoch = $2 AND state = 'live' AND windowed", w.s.self, w.s.epoch)
	return is, err
}

// endOthers ends the windows of the other engines. It waits for a commit in progress of each.
const endOthers = "UPDATE @.processes SET windowed = false WHERE id <> $1 AND windowed"

// unsettled finds an engine with entries that are not in the tables.
const unsettled = "SELECT 1 FROM @.pulses u WHERE u.process <> $1 AND u.projected IS NOT NULL AND " +
	"EXISTS (SELECT FROM @.journal j WHERE j.seq > u.projected AND j.process = u.process) LIMIT 1"

// settlePoll is how often an engine or a reader looks whether the tables are complete.
const settlePoll = 2 * time.Millisecond

// settleOthers waits until the tables have all entries of the other engines, whose windows have ended. An engine that has ended without writing
// its window is removed, which writes it.
func (s *Store) settleOthers(ctx context.Context, c *conn) error {
	again := time.NewTicker(settlePoll)
	defer again.Stop()
	for n := 1; ; n++ {
		_, is, err := c.number(unsettled, s.self)
		if err == nil && !is {
			// Their commits write the tables from now on.
			_, err = c.run("UPDATE @.pulses SET projected = NULL WHERE process <> $1 AND projected IS NOT NULL", s.self)
			return err
		}
		if err != nil {
			return err
		}
		if n%256 == 0 {
			if err := s.removeEnded(ctx, c); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ending.Done():
			return errClosed
		case <-again.C:
		}
	}
}

// windowOverdue finds the engines that have sent no heartbeat for too long, and have not written their windows.
const windowOverdue = "SELECT u.process, (extract(epoch FROM u.beat) * 1000000)::bigint FROM @.pulses u WHERE u.process <> $1 AND u.projected IS NOT NULL AND " + overdue

// removeEnded removes the engines that have ended, and those that are stopped.
func (s *Store) removeEnded(ctx context.Context, c *conn) error {
	if err := s.removeAbsent(ctx, c); err != nil {
		return err
	}
	var dead []other
	err := c.each(windowOverdue, []any{s.self}, func(r *tables.Row) error {
		dead = append(dead, other{id: r.Number(), beat: r.Number()})
		return r.Err
	})
	if err != nil || len(dead) == 0 {
		return err
	}
	_, err = s.adopt(c, dead)
	return err
}

// removeAbsent removes the engines that have ended.
func (s *Store) removeAbsent(ctx context.Context, c *conn) error {
	return c.transaction(ctx, func() error {
		if err := lockJoins(c); err != nil {
			return err
		}
		return s.removeEngines(ctx, c, absent)
	})
}

// readerPatience is how long a reader waits for an engine that writes its window later.
const readerPatience = 5 * time.Second

// A view begins with the end of the journal, and the position up to which the tables are complete; NULL if they are in any case.
const viewOf = "SELECT COALESCE((SELECT max(seq) FROM @.journal), 0), (SELECT min(projected) FROM @.pulses)"

// With REPEATABLE READ all queries of a view see the same state. READ ONLY prevents writes by the user's SQL, and the
// transaction gets no transaction id, so that a long view does not hold back the horizon of position.go.
const readOnly = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// beginView begins the transaction of a view. Entries after until are not in the tables; 0 if there are none.
func (s *Store) beginView(ctx context.Context, c *conn) (until int64, err error) {
	if s.presence != nil && s.db.set.window == 0 { // no other engine has a window beside this one
		_, err = c.begin(ctx, readOnly)
		return 0, err
	}
	again := time.NewTicker(settlePoll)
	defer again.Stop()
	late := time.NewTimer(readerPatience)
	defer late.Stop()
	wanted, waited := int64(0), false
	for n := 1; ; n++ {
		result, err := c.begin(ctx, readOnly, c.sql.text(viewOf))
		if err != nil {
			return 0, err
		}
		head, _ := strconv.ParseInt(string(result.Rows[0][0]), 10, 64)
		until, _ := strconv.ParseInt(string(result.Rows[0][1]), 10, 64) // 0 if it is NULL
		if wanted == 0 {
			wanted = head
		}
		// This engine has flushed: what is newer was committed after that.
		if until == 0 || until >= wanted || s.presence != nil {
			return until, nil
		}
		if waited {
			s.log.Warn("an engine has committed what it has not written to the tables, and does not: what is read is older", "database", s.db.name)
			return until, nil
		}
		if err := c.exec(ctx, "ROLLBACK"); err != nil {
			return 0, err
		}
		if n%64 == 0 {
			s.projectAbsent(ctx)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-late.C:
			waited = true
		case <-again.C:
		}
	}
}

// projectAbsent removes the engines that have ended, which writes their windows. A role that may only read cannot.
func (s *Store) projectAbsent(ctx context.Context) {
	c, err := s.db.connectFor(ctx, s.db.set.attention, writerNeeds...)
	if err != nil {
		return
	}
	if err := s.removeAbsent(ctx, c); err != nil {
		s.log.Warn("the window of an engine that has ended could not be written", "database", s.db.name, "error", err)
	}
	_ = c.close()
}
