package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// sweepPage bounds how many root cases one transaction removes, so that other commands do not wait long behind it.
const sweepPage = 256

// sweepRetry is how long the engine waits after a case could not be removed, though the store works.
const sweepRetry = time.Minute

// sweeper removes root cases that need not be kept any longer. It knows when the next one is due, and has one alarm for
// it: so nothing runs while nothing is due.
type sweeper struct {
	e    *Engine
	mu   sync.Mutex
	next time.Time // when the alarm is set for
	stop func()    // stops it; nil if there is none
	busy bool      // a sweep is under way
	more bool      // something became due meanwhile
	off  bool
	wait sync.WaitGroup
}

// start finds what is due, and arranges for what will be.
func (s *sweeper) start(e *Engine) {
	s.mu.Lock()
	s.e = e
	s.mu.Unlock()
	s.due(e.now())
}

// close lets no further sweep begin.
func (s *sweeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off = true; s.stop != nil {
		s.stop()
	}
}

// Committed implements observer: it takes up that a case has ended that is kept for a while, or the last job of one that
// was kept for it.
func (s *sweeper) Committed(tree *store.Tree, events []store.Event) {
	if !tree.Ended() || tree.Removed() {
		return
	}
	until := tree.Case(tree.Root).KeepUntil
	if until.IsZero() {
		return
	}
	for _, e := range events {
		switch e := e.(type) {
		case *store.CaseEnded:
			if e.Case == tree.Root {
				s.due(until)
			}
		case *store.JobMoved:
			if !e.To.Live() {
				s.due(until)
			}
		}
	}
}

// due has a sweep begin at a time, at once if it is over.
func (s *sweeper) due(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.e == nil {
		return // the engine is being opened, and start looks at everything
	}
	now := s.e.now()
	switch {
	case s.off:
	case s.busy:
		s.more = true
	case !at.After(now):
		s.begin()
	case s.stop == nil || at.Before(s.next):
		if s.stop != nil {
			s.stop()
		}
		s.next = at
		s.stop = s.e.alarms.at(at.UnixMicro(), s.ring)
	}
}

// ring is what the alarm calls.
func (s *sweeper) ring() {
	s.mu.Lock()
	at := s.next
	s.stop = nil
	s.mu.Unlock()
	s.due(at)
}

// begin starts a sweep. The sweeper is locked.
func (s *sweeper) begin() {
	s.busy, s.more = true, false
	s.e.active.add(1)
	s.wait.Go(func() {
		next := s.e.sweepAll()
		s.mu.Lock()
		s.busy = false
		if s.more {
			next = s.e.now()
		}
		s.mu.Unlock()
		if !next.IsZero() {
			s.due(next)
		}
		s.e.active.add(-1)
	})
}

// sweepAll removes all that is due, however often the store fails meanwhile, and returns when more will be; zero if nothing will.
func (e *Engine) sweepAll() (next time.Time) {
	var stuck error
	err := e.insist(e.ctx, func() (err error) {
		next, stuck, err = e.sweep()
		if err == nil || isFault(err) {
			e.faults.note("retention", err, "cases could not be removed; they are kept, and it is tried again")
		}
		return err
	})
	switch {
	case err != nil:
		return time.Time{} // the engine closes
	case stuck != nil:
		e.log.Error("cases could not be removed; they are kept, and it is tried again", "error", stuck, "in", sweepRetry)
		return e.now().Add(sweepRetry)
	}
	return next
}

// sweep removes all that is due, page by page, and returns when more will be, zero if nothing will, and why cases stay that could
// not be removed. The last error is that of the store, which may have kept it from the rest.
func (e *Engine) sweep() (next time.Time, stuck, err error) {
	var after string
	for {
		due, err := e.removable(store.CaseFilter{Removable: e.now(), Page: store.Page{After: after, Limit: sweepPage}})
		if err != nil {
			return time.Time{}, stuck, err
		}
		stayed, wrong, err := e.removePage(due)
		if err != nil {
			return time.Time{}, stuck, err
		}
		stuck = errors.Join(stuck, wrong)
		if len(due) < sweepPage {
			break
		}
		after = "" // what was removed cannot be gone on from
		if len(stayed) > 0 {
			after = stayed[len(stayed)-1].String()
		}
	}
	first, err := e.removable(store.CaseFilter{Removable: endOfTime, Page: store.Page{Limit: 1}})
	if err != nil || len(first) == 0 {
		return time.Time{}, stuck, err
	}
	return later(first[0].KeepUntil, e.now()), stuck, nil
}

// later keeps a sweep from following on one that left a case where it is.
func later(due, now time.Time) time.Time {
	if due.After(now) {
		return due
	}
	return now.Add(time.Second)
}

// endOfTime is later than any time that a case is kept until.
var endOfTime = time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)

func (e *Engine) removable(f store.CaseFilter) (cases []*store.Case, err error) {
	err = e.store.View(e.ctx, func(r store.Reader) (err error) {
		cases, err = r.Cases(e.ctx, f)
		return err
	})
	if e.ctx.Err() != nil {
		return nil, ErrClosed
	}
	return cases, asFault(err)
}

// removePage removes cases in one transaction, or, if one of them cannot be removed, each in its own. It returns those that
// stayed, why, and why the store took none of this.
func (e *Engine) removePage(due []*store.Case) (stayed []workitem.CaseID, stuck, err error) {
	if len(due) == 0 {
		return nil, nil, nil
	}
	stayed, err = submitFor(e.ctx, e, &request{}, func(tx *Tx) (stayed []workitem.CaseID, err error) {
		for _, c := range due {
			removed, err := tx.sweep(c.ID)
			if err != nil {
				return nil, err
			}
			if !removed {
				stayed = append(stayed, c.ID)
			}
		}
		return stayed, nil
	})
	if err == nil || e.noSweep(err) {
		return stayed, nil, err
	}
	for _, c := range due {
		removed, err := submitFor(e.ctx, e, &request{}, func(tx *Tx) (bool, error) { return tx.sweep(c.ID) })
		if e.noSweep(err) {
			return stayed, stuck, err
		}
		if err != nil || !removed {
			stayed, stuck = append(stayed, c.ID), errors.Join(stuck, err)
		}
	}
	return stayed, stuck, nil
}

// noSweep reports whether an error ends a sweep, and not only the removal of one case.
func (e *Engine) noSweep(err error) bool {
	return errors.Is(err, errCommit) || errors.Is(err, ErrClosed) || e.ctx.Err() != nil
}

// sweep removes a case, unless somebody did so, or it must stay after all.
func (tx *Tx) sweep(root workitem.CaseID) (removed bool, err error) {
	u, err := tx.open(root)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	err = tx.internal(u, "case sweep", (*kernel.Machine).Remove)
	if errors.Is(err, ErrUnfinished) {
		return false, nil
	}
	return err == nil, err
}
