// Package retention removes root cases whose retention time has passed.
//
//	a case ends with KeepUntil = 12:00   ──► Committed: set the alarm for 12:00
//	12:00  the alarm fires               ──► remove what is due, a page per transaction, until nothing is left
//	       the next case is due at 15:00 ──► set the alarm for 15:00
//
// There is one alarm, for the earliest known time, so nothing runs while nothing is due. A case that cannot be removed
// does not block the others: its page is repeated case by case, and the case is tried again later.
package retention

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Cases finds and removes root cases.
type Cases interface {
	// Find lists the root cases that match, as a store.Reader does.
	Find(ctx context.Context, f store.CaseFilter) ([]*state.Case, error)

	// Remove removes root cases in one transaction, and returns those that it has left because they may not be removed
	// yet. A case that does not exist counts as removed. If there is an error, none was removed.
	Remove(ctx context.Context, ids []workitem.CaseID) (left []workitem.CaseID, err error)

	// Unavailable reports whether an error of Remove says nothing about the cases: the store failed, or the engine closes.
	Unavailable(err error) bool
}

// Options are what a [Cleaner] needs. All are required.
type Options struct {
	Cases Cases
	Now   func() time.Time

	// Alarm calls f once Now has reached a time, unless stop is called before.
	Alarm func(at time.Time, f func()) (stop func())

	// Retry calls f until its error is not a failure of the store, and returns its last error. It returns an error if
	// the engine closes meanwhile.
	Retry func(ctx context.Context, f func() error) error

	// Active is called with 1 when a pass begins, and with -1 after it, when the next one is scheduled.
	Active func(delta int)

	Logger *slog.Logger
}

// Cleaner removes root cases after their retention time. It is safe for concurrent use. Make one with [New].
type Cleaner struct {
	o       Options
	ctx     context.Context
	mu      sync.Mutex
	alarmAt time.Time
	disarm  func() // stops the alarm; nil if none is set
	started bool
	running bool      // a pass is running
	missed  time.Time // the earliest time that was scheduled during the pass, which may not have seen that case; zero if there is none
	stopped bool
	passes  sync.WaitGroup
}

// New returns a Cleaner that does nothing until it is started.
func New(o Options) *Cleaner { return &Cleaner{o: o} }

// Start begins with a pass over all cases, and schedules the next. A running pass ends with the context.
func (c *Cleaner) Start(ctx context.Context) {
	c.mu.Lock()
	c.ctx, c.started = ctx, true
	c.mu.Unlock()
	c.schedule(c.o.Now())
}

// Stop prevents further passes.
func (c *Cleaner) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped = true; c.disarm != nil {
		c.disarm()
	}
}

// Wait waits for the end of the running pass.
func (c *Cleaner) Wait() { c.passes.Wait() }

// Committed schedules the removal of a root case that has ended. The jobs of an ended case may still run, as those of
// callbacks; the case cannot be removed before the last of them, so the end of a job schedules it again.
func (c *Cleaner) Committed(tree *state.Tree, changes []state.Change) {
	if !tree.Ended() || tree.Removed() {
		return
	}
	until := tree.Case(tree.Root).KeepUntil
	if until.IsZero() {
		return
	}
	for _, e := range changes {
		switch e := e.(type) {
		case *state.CaseEnded:
			if e.Case == tree.Root {
				c.schedule(until)
			}
		case *state.JobMoved:
			if !e.To.Live() {
				c.schedule(until)
			}
		}
	}
}

// schedule begins a pass at a time, or now if the time is past.
func (c *Cleaner) schedule(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped || !c.started: // the first pass after Start covers everything
	case c.running:
		c.missed = earlier(c.missed, at)
	case !at.After(c.o.Now()):
		c.begin()
	case c.disarm == nil || at.Before(c.alarmAt):
		if c.disarm != nil {
			c.disarm()
		}
		c.alarmAt = at
		c.disarm = c.o.Alarm(at, c.ring)
	}
}

// Look begins a pass now. It also finds cases that other engines have ended, which Committed does not see.
func (c *Cleaner) Look() { c.schedule(c.o.Now()) }

// ring is called by the alarm.
func (c *Cleaner) ring() {
	c.mu.Lock()
	at := c.alarmAt
	c.disarm = nil
	c.mu.Unlock()
	c.schedule(at)
}

// begin starts a pass. The lock is held.
func (c *Cleaner) begin() {
	c.running, c.missed = true, time.Time{}
	c.o.Active(1)
	c.passes.Go(func() {
		next := c.pass()
		c.mu.Lock()
		c.running = false
		next = earlier(next, c.missed)
		c.mu.Unlock()
		if !next.IsZero() {
			c.schedule(next)
		}
		c.o.Active(-1)
	})
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
