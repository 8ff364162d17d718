package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// sweepPage bounds how many root cases one transaction removes, so that other commands do not wait long behind it.
const sweepPage = 256

// sweepRetry is how long the engine waits after it failed to remove what is due.
const sweepRetry = time.Hour

// sweeper removes root cases that need not be kept any longer. It knows when the next one is due, and has one timer for
// it: so nothing runs while nothing is due.
type sweeper struct {
	e    *Engine
	mu   sync.Mutex
	next time.Time // when the timer fires; zero if it is not set
	stop func() bool
	busy bool // a sweep is under way
	more bool // something became due meanwhile
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

// note takes up what a committed command did: a case has ended that is kept for a while, or the last job of one that
// was kept for it.
func (s *sweeper) note(tree *store.Tree, events []store.Event) {
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
		s.stop = s.e.clock.AfterFunc(untilDue(now.UnixMicro(), at.UnixMicro()), s.ring)
	}
}

// ring is what the timer calls.
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
		next := s.e.sweep()
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

// sweep removes all that is due, page by page, and says when more will be; zero if nothing will.
func (e *Engine) sweep() (next time.Time) {
	var after string
	var wrong error
	for {
		due, err := e.removable(store.CaseFilter{Removable: e.now(), Page: store.Page{After: after, Limit: sweepPage}})
		var stayed []workitem.CaseID
		if err == nil && len(due) > 0 {
			stayed, err = e.removePage(due)
		}
		if errors.Is(err, ErrClosed) || e.ctx.Err() != nil {
			return time.Time{}
		}
		if wrong = errors.Join(wrong, err); err != nil && len(stayed) == 0 || len(due) < sweepPage {
			break
		}
		after = "" // what was removed cannot be gone on from
		if len(stayed) > 0 {
			after = stayed[len(stayed)-1].String()
		}
	}
	if wrong != nil {
		e.log.Error("cases could not be removed; they are kept, and it is tried again", "error", wrong, "in", sweepRetry)
		return e.now().Add(sweepRetry)
	}
	first, err := e.removable(store.CaseFilter{Removable: endOfTime, Page: store.Page{Limit: 1}})
	switch {
	case err != nil:
		return e.now().Add(sweepRetry)
	case len(first) > 0:
		return later(first[0].KeepUntil, e.now())
	}
	return time.Time{}
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
	return cases, err
}

// removePage removes cases in one transaction, or, if that fails, those that can be, each in its own. It returns those
// that stayed.
func (e *Engine) removePage(due []*store.Case) (stayed []workitem.CaseID, err error) {
	err = e.submit(e.ctx, &request{run: func(tx *Tx) error {
		stayed = stayed[:0]
		for _, c := range due {
			removed, err := tx.sweep(c.ID)
			if err != nil {
				return err
			}
			if !removed {
				stayed = append(stayed, c.ID)
			}
		}
		return nil
	}})
	if err == nil || errors.Is(err, ErrClosed) || e.ctx.Err() != nil {
		return stayed, err
	}
	stayed = stayed[:0]
	var errs []error
	for _, c := range due {
		removed := false
		err := e.submit(e.ctx, &request{run: func(tx *Tx) (err error) {
			removed, err = tx.sweep(c.ID)
			return err
		}})
		if err != nil || !removed {
			stayed, errs = append(stayed, c.ID), append(errs, err)
		}
	}
	return stayed, errors.Join(errs...)
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
	tx.mark(u, "case sweep", builder.Call{})
	err = tx.do(u, builder.Call{}, (*kernel.Machine).Remove)
	if errors.Is(err, ErrUnfinished) {
		return false, nil
	}
	return err == nil, err
}
