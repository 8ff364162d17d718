package dispatch

import (
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// running is a job in a worker.
type running struct {
	root   workitem.CaseID
	lease  time.Time
	cancel func()
	steps  *journal // reports to the run what became of its steps
}

// holds reports whether the worker has the job by a fence.
func (r *running) holds(fence int64) bool { return r != nil && r.steps.fence.Load() == fence }

// wantsBack reports whether the worker of a job is to be given back when its function yields: nothing like it would begin now.
func (s *scheduler) wantsBack(n entry) bool {
	now := s.d.o.Now().UnixMicro()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping || s.hours.isClosed(&n, now) || n.queue != nil && s.paused[n.queue.name]
}

// hold notes that a worker has a job.
func (s *scheduler) hold(id workitem.JobID, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[id] = r
	s.gate.Leave(id) // what else waits for it, see entriesOf
	s.keepBeating()
}
