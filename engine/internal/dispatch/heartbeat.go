package dispatch

import (
	"context"
	"errors"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
)

// beat renews the leases of the running jobs, and cancels the context of a job whose lease was lost. It schedules the
// next beat while any job runs. A lease is renewed after a third of its time, so two beats can fail before it expires:
//
//	claim ── beat ── beat ── beat
//	├─────── lease ───────┤
//	         ├─────── lease ───────┤
func (d *Dispatcher) beat() {
	d.sched.mu.Lock()
	d.sched.beat = nil
	held := d.sched.claims.snapshot()
	d.sched.mu.Unlock()
	lease := d.o.Now().Add(d.o.Lease)
	asked := make(map[*running]func() error, len(held)) // all requests first, so that they share a commit
	for id, r := range held {
		req := commit.OnTree(r.root, "job renew", func(_ *commit.Tx, m *kernel.Machine) error { return m.Leases().Renew(id, r.steps.Fence(), lease) })
		req.Lazy = true
		if wait, err := d.o.Writer.Ask(context.Background(), req); err == nil {
			asked[r] = wait
		}
	}
	for r, wait := range asked {
		if err := wait(); errors.Is(err, kernel.ErrLeaseLost) || errors.Is(err, store.ErrNotFound) {
			r.cancel(nil)
		}
	}
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	d.sched.keepBeating()
}

// keepBeating schedules the next heartbeat. The scheduler is locked.
func (s *scheduler) keepBeating() {
	if s.beat != nil || s.stopping || s.claims.idle() {
		return
	}
	s.beat = s.d.o.Clock.AfterFunc(s.d.o.Lease/3, s.d.beat)
}
