package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Each engine that has the database open is a row of the table processes. The row is the fence: a commit locks it for sharing, so
// the engine that declares another one dead waits for the commit that is under way, and none can follow.

// absent selects the engines that have gone without a word: no session holds the lock of their session, and the server's process that
// was to commit for them has ended.
const absent = "p.state = 'live' AND pg_try_advisory_xact_lock(hashtextextended('tasq process ' || p.token || ' @', 0)) " +
	"AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = p.pid)"

// join gives this engine a number. Engines that are gone, or all if this one is alone, are declared dead before.
func (s *Store) join(ctx context.Context, c *conn) error {
	return c.transaction(ctx, func() error {
		// Two that join at once do so one after the other, so that the second sees the row of the first.
		if err := c.exec(ctx, "SET LOCAL lock_timeout = '30s'"); err != nil {
			return err
		}
		if _, err := c.run("SELECT pg_advisory_xact_lock("+lockKey+")", "join"); err != nil {
			return err
		}
		gone := "true"
		if s.shared {
			gone = absent
		}
		if err := s.bury(ctx, c, gone); err != nil {
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
		err := c.each("INSERT INTO @.processes (name, state, reads, prints, token, pid, joined) VALUES ($1, 'live', $2, $3, $4, pg_backend_pid(), now()) "+
			"RETURNING id, epoch", []any{fmt.Sprintf("%s/%d", host, os.Getpid()), format, prints, s.presence.token}, func(r *tables.Row) error {
			s.self, s.epoch, s.pid = r.Number(), r.Number(), c.pg.PgConn().PID()
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

// bury removes the rows of engines that a condition selects, and gives the jobs free that no engine holds.
func (s *Store) bury(ctx context.Context, c *conn, gone string) error {
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
func (s *Store) leave(ctx context.Context) error {
	return s.w.transaction(ctx, func() error {
		if err := notify(s.w, s.self, "f", ""); err != nil {
			return err
		}
		_, err := s.w.run("UPDATE @.processes SET state = 'dead' WHERE id = $1", s.self)
		if err == nil {
			err = s.bury(ctx, s.w, "false")
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

// rejoin connects anew. What the lost connection was about to commit cannot happen any more after that: the next epoch of this
// engine begins.
func (s *Store) rejoin(ctx context.Context) error {
	if s.w != nil {
		_ = s.w.cut() // it is gone already
		s.w = nil
	}
	w, err := s.db.connectFor(ctx, writerSettings, s.db.set.patience)
	if err != nil {
		return err
	}
	live, err := s.nextEpoch(w)
	if code(err) == lockNotAvailable { // a commit of the lost connection still runs, and holds the row
		if _, err = w.run("SELECT pg_terminate_backend($1)", int32(s.pid)); err == nil {
			live, err = s.nextEpoch(w)
		}
	}
	if err == nil && live && s.doubt && s.shared {
		live, err = false, s.giveUp(w)
	}
	if err == nil {
		s.w, s.doubt = w, false
		if !live {
			if err = s.fencedOut(nil); errors.Is(err, store.ErrFenced) && s.w != nil && !errors.Is(err, store.ErrUnavailable) {
				err = nil // nothing was under way, and it has joined anew
			}
		}
		return err
	}
	return errors.Join(err, w.close())
}

// giveUp declares this engine dead. A commit that nothing is known of may have left jobs with it that it does not know of: they are free
// when it joins anew.
func (s *Store) giveUp(w *conn) error {
	_, err := w.run("UPDATE @.processes SET state = 'dead' WHERE id = $1", s.self)
	return err
}

// nextEpoch begins the next epoch of this engine, and reports whether it is alive.
func (s *Store) nextEpoch(w *conn) (live bool, err error) {
	epoch, live, err := w.number("UPDATE @.processes SET epoch = epoch + 1, pid = pg_backend_pid() "+
		"WHERE id = $1 AND epoch = $2 AND state = 'live' RETURNING epoch", s.self, s.epoch)
	if live {
		s.epoch, s.pid = epoch, w.pg.PgConn().PID()
	}
	return live, err
}

// fencedOut is the error of an engine that another one declared dead. One that shares the database joins anew.
func (s *Store) fencedOut(err error) error {
	if !s.shared {
		return s.db.taken(errors.Join(errNoSign, err))
	}
	s.log.Warn("this engine was declared dead; it joins anew", "database", s.db.name, "engine", s.self)
	if err := s.join(context.Background(), s.w); err != nil {
		return s.db.at("%w: %w, and it could not join anew: %w", store.ErrUnavailable, store.ErrFenced, err)
	}
	s.hints.send(store.Hint{Free: true})
	return s.db.at("%w", &store.StaleError{Err: store.ErrFenced})
}
