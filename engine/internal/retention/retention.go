// Package retention removes root cases whose retention time has passed.
//
//	a case ends with KeepUntil = 12:00  ──► Committed: set the alarm for 12:00
//	12:00  the alarm rings              ──► remove what is due, a page in a transaction, until nothing is
//	       the next case is due at 15:00 ──► set the alarm for 15:00
//
// Nothing runs while nothing is due: there is one alarm, for the earliest time that is known. A case that cannot be removed does
// not keep the others: its page is repeated case by case, and it is tried again later.
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

	// Remove removes root cases in one transaction, and returns those that it has left because they may not be removed yet. A case
	// that is not there counts as removed. If there is an error, none was removed.
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

	// Retry calls f, again and again while its error is a failure of the store, and returns its last error. That is not nil if
	// the engine closes meanwhile.
	Retry func(ctx context.Context, f func() error) error

	// Active is called with 1 as a pass begins, and with -1 once it has ended and the next one is arranged.
	Active func(delta int)

	Logger *slog.Logger
}

// Cleaner removes root cases that have been kept for their time. It is safe for concurrent use. Make one with [New].
type Cleaner struct {
	o       Options
	ctx     context.Context
	mu      sync.Mutex
	alarmAt time.Time
	disarm  func() // stops the alarm; nil if none is set
	started bool
	running bool // a pass is under way
	again   bool // something has become due during the pass
	stopped bool
	passes  sync.WaitGroup
}

// New returns a Cleaner that does nothing until it is started.
func New(o Options) *Cleaner { return &Cleaner{o: o} }

// Start removes what is due, and arranges for what will be. A pass that is under way ends with the context.
func (c *Cleaner) Start(ctx context.Context) {
	c.mu.Lock()
	c.ctx, c.started = ctx, true
	c.mu.Unlock()
	c.schedule(c.o.Now())
}

// Stop lets no further pass begin.
func (c *Cleaner) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped = true; c.disarm != nil {
		c.disarm()
	}
}

// Wait waits for the end of the pass that is under way.
func (c *Cleaner) Wait() { c.passes.Wait() }

// Committed arranges for the removal of a root case that has ended, or that has no more jobs which kept it.
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

// schedule has a pass begin at a time, or at once if that is past.
func (c *Cleaner) schedule(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped || !c.started: // the first pass after the start looks at everything
	case c.running:
		c.again = true
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

// Look removes what is due now, and arranges for what will be, also of cases that another engine has ended.
func (c *Cleaner) Look() { c.schedule(c.o.Now()) }

// ring is what the alarm calls.
func (c *Cleaner) ring() {
	c.mu.Lock()
	at := c.alarmAt
	c.disarm = nil
	c.mu.Unlock()
	c.schedule(at)
}

// begin starts a pass. The lock is held.
func (c *Cleaner) begin() {
	c.running, c.again = true, false
	c.o.Active(1)
	c.passes.Go(func() {
		next := c.pass()
		c.mu.Lock()
		c.running = false
		if c.again {
			next = c.o.Now()
		}
		c.mu.Unlock()
		if !next.IsZero() {
			c.schedule(next)
		}
		c.o.Active(-1)
	})
}
