package step

import (
	"github.com/tasq-dev/tasq/workitem"
)

// A step's result is durable before the next effect, not before the next line of the function:
//
//	charge called ── queued ── Do returns ── the function computes ── Do("mail") ── waits ── mail called
//	                   └──────── the journal records charge ───────────────────────────┘
//
// The code in between runs while the disk works. If the function returns instead, the record and the settlement of the
// job share a commit.

// queued is a record that the function has gone on without.
type queued struct {
	steps []*workitem.Step
	wait  func() ([]*workitem.Step, error)
}

// queue has the end of a step recorded, with all that waits to be recorded, while the function continues. It reports
// false, and does nothing, where other branches continue: which of two came first is decided by what is recorded.
func (c *call) queue(s *workitem.Step) bool {
	r := c.run
	r.mu.Lock()
	if r.endedBy != nil || c.branch != r.main || r.turns.count[gone] < len(r.branches) {
		r.mu.Unlock()
		return false
	}
	all := append(r.pending, s)
	r.pending = nil
	r.mu.Unlock()
	wait := r.journal.Queue(all...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = &queued{all, wait}
	return true
}

// durable waits until all that the run has recorded is durable. Whatever has an effect calls it before. The lock is
// held, but not in between.
func (r *Run) durable() error {
	q := r.queued
	if q == nil {
		return nil
	}
	r.queued = nil
	r.mu.Unlock()
	stored, err := q.wait()
	if err == nil {
		err = complete(q.steps, stored)
	}
	r.mu.Lock()
	if err != nil {
		r.stop(err)
		return r.endedBy
	}
	r.keep(stored)
	r.main.ended(stored[len(stored)-1])
	return nil
}

// ended notes when a step has ended that a branch has come to. The lock is held.
func (b *branch) ended(s *workitem.Step) {
	if s.Ended.After(b.stamp) {
		b.stamp = s.Ended
	}
	b.run.noteTime(s.Ended)
}
