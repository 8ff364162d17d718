package dispatch

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Code outside of jobs, such as the handlers of a server, acquires limits through the gate of jobs. Its ticket has neither a job nor a
// queue: in the lines of limits it has the place of a job of priority 0 that is due at the time of the call.
//
//	Acquire ── room ──────────────────────────────▶ Begin ──▶ Lease ──▶ Release
//	        └─ no room ──▶ line ── admitLeases ──▶ Begin
//	                         │                       └── the grant has expired: once more, with the same place
//	                         └── the context ends, the engine stops: it leaves the line
//
// Leases are not part of Dispatcher.Finish: one that is never released ends with the engine.

// Lease is what code outside of jobs has acquired. Its methods are safe for concurrent use.
type Lease struct {
	lease
	d      *Dispatcher
	ready  chan struct{} // has an element after the limits were acquired or refused
	from   string
	failed bool
}

// Acquire acquires limits for code outside of jobs, and waits for them until the context ends or the engine stops.
func (d *Dispatcher) Acquire(ctx context.Context, takes []workitem.Take) (*Lease, error) {
	return d.newLease(takes, false).acquire(ctx)
}

// TryAcquire is like Acquire, but does not wait for room: it returns nil if a limit has none. If engines share the limit, it waits for an answer of the
// store.
func (d *Dispatcher) TryAcquire(takes []workitem.Take) (*Lease, error) {
	return d.newLease(takes, true).acquire(context.Background())
}

func (d *Dispatcher) newLease(takes []workitem.Take, once bool) *Lease {
	l := &Lease{d: d, ready: make(chan struct{}, 1)}
	n := entry{due: d.o.Now().UnixMicro(), lease: &l.lease}
	if d.o.Aging > 0 {
		n.urgent = n.due
	}
	l.room = func() { l.ready <- struct{}{} }
	l.t = &ticket{Takes: takes, Value: n, Outside: true, Once: once}
	return l
}

// acquire returns the lease when its limits are acquired, and nil if they are refused.
func (l *Lease) acquire(ctx context.Context) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, limit.Stopped(ctx, nil)
	}
	entered, err := l.enter()
	for {
		switch {
		case err != nil:
			return nil, err
		case !entered:
			return nil, nil
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, limit.Stopped(ctx, l.leave())
		case <-l.d.sched.stopped:
			l.leave()
			return nil, l.d.stoppedError()
		}
		if l.begin() {
			return l, nil
		}
		entered, err = l.enterAgain()
	}
}

// enter lets the ticket of the lease acquire its limits or wait; false if it is refused.
func (l *Lease) enter() (bool, error) {
	s := &l.d.sched
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.limits.checkAmounts(l.t.Takes); err != nil {
		return false, err
	}
	s.limits.callers++
	binary.BigEndian.PutUint64(l.t.Job[8:], s.limits.callers) // ids of jobs begin with a time, so none is less than this
	l.t.Value.job = l.t.Job
	return l.enterLocked()
}

// enterLocked is enter with the lock held. A lease that is admitted at once is notified like one that waited, so that acquire has
// one path.
func (l *Lease) enterLocked() (bool, error) {
	s := &l.d.sched
	switch {
	case s.stopping:
		return false, l.d.stoppedError()
	case s.limits.Enter(l.t):
		l.room()
		return true, nil
	}
	return l.t.Waits(), nil
}

// begin records that the work begins now; false if the limits were refused, if what the store granted has expired, or if the engine stops.
func (l *Lease) begin() bool {
	s := &l.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	l.begun = l.t.Held() && !s.stopping && s.limits.Begin(l.t)
	l.from = keyFrom(l.t)
	return l.begun
}

// enterAgain enters with a new ticket after a grant has expired; false if the limits were refused.
func (l *Lease) enterAgain() (bool, error) {
	s := &l.d.sched
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.t.Held() {
		return false, nil
	}
	s.limits.Undo(l.t)
	l.t = l.t.Again()
	return l.enterLocked()
}

// leave ends the wait of the lease, and returns what it waited for.
func (l *Lease) leave() (reasons []limit.Reason) {
	s := &l.d.sched
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping && !l.t.Held() {
		reasons = reasonsOf(s.limits.Reasons(l.t))
	}
	s.limits.end(&l.lease, false)
	return reasons
}

func reasonsOf(waits []admission.Wait) (reasons []limit.Reason) {
	for _, w := range waits {
		reasons = append(reasons, w.Reason)
	}
	return reasons
}

// stoppedError is the error of code that waits for limits while the engine stops.
func (d *Dispatcher) stoppedError() error {
	return fmt.Errorf("limit: the engine that has the limits stops, and admits nothing more: %w", d.o.Retrier.Closed())
}

// Reasons returns why code outside of jobs would have to wait for limits now, as far as this engine knows; none if they have room.
func (d *Dispatcher) Reasons(takes []workitem.Take) ([]admission.Wait, error) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	if err := d.sched.limits.checkAmounts(takes); err != nil {
		return nil, err
	}
	return d.sched.limits.Reasons(&ticket{Takes: takes, Outside: true}), nil
}

// checkAmounts returns an error if one of the takes of code outside of jobs is more than its limit can grant.
func (g *limitGate) checkAmounts(takes []workitem.Take) error {
	for _, t := range takes {
		if err := g.checkAmount(fmt.Sprintf("the call takes %d", t.N), t, t.N); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements [limit.Lease].
func (l *Lease) Commit(name string, used int64) error {
	l.d.sched.mu.Lock()
	released := l.released
	l.d.sched.mu.Unlock()
	if released {
		return fmt.Errorf("limit: %d of %s came too late: commit before Release: %w", used, name, limit.ErrReleased)
	}
	return l.d.commitUsed(l.t, name, used)
}

// Fail implements [limit.Lease].
func (l *Lease) Fail() {
	l.d.sched.mu.Lock()
	defer l.d.sched.mu.Unlock()
	l.failed = true
}

// Release implements [limit.Lease].
func (l *Lease) Release() {
	s := &l.d.sched
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.released {
		s.limits.end(&l.lease, l.failed)
	}
}

// From implements [limit.Lease]. It returns the key of the first limit that was acquired for one.
func (l *Lease) From() string { return l.from }

// keyFrom returns the key of the first limit that a ticket has acquired for one; "" if there is none.
func keyFrom(t *ticket) string {
	for i := range t.Takes {
		if key, _ := t.KeyOf(t.Takes[i].Limit); key != "" {
			return key
		}
	}
	return ""
}
