package engine

import (
	"context"
	"errors"
	"maps"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
)

// beat renews the leases of the running jobs, and cancels the context of one that was lost. It arranges the next beat as
// long as anything runs.
func (e *Engine) beat() {
	e.sched.mu.Lock()
	e.sched.beat = nil
	held := maps.Clone(e.sched.running)
	e.sched.mu.Unlock()
	lease := e.now().Add(e.cfg.Lease)
	asked := make(map[*request]*running, len(held)) // all of them at once, so that they share commits
	for id, r := range held {
		req := e.onJob(r.root, "job renew", true, func(m *kernel.Machine) error { return m.Renew(id, r.fence, lease) })
		if e.ask(context.Background(), req) == nil {
			asked[req] = r
		}
	}
	for req, r := range asked {
		if err := <-req.done; errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrNotFound) {
			r.cancel()
		}
		e.answers.Put(req.done)
	}
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()
	e.sched.keepBeating()
}

// keepBeating arranges the next heartbeat. The scheduler is locked.
func (s *scheduler) keepBeating() {
	if s.beat != nil || s.stopping || len(s.running) == 0 {
		return
	}
	s.beat = s.e.clock.AfterFunc(s.e.cfg.Lease/3, s.e.beat)
}
