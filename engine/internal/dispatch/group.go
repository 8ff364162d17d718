package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// group is a batch in one worker. Each job is claimed, wrapped by middleware and settled on a goroutine of its own, as
// if it were alone. The goroutines meet where the function would be called:
//
//	claims ──▶ all are decided ──▶ join, or leave ──▶ all have done so: one call ──▶ each continues with its own outcome
type group struct {
	d    *Dispatcher
	held int // claims that have not ended; the worker is free after the last. The lock of the scheduler guards it.

	mu        sync.Mutex
	undecided int      // claims whose commit is not known yet
	claims    []*claim // the successful ones
	expected  map[workitem.JobID]struct{}
	members   []*member
	called    bool
	done      chan struct{} // closed after the call
}

// member is a job that waits for the call of the function.
type member struct {
	ctx     context.Context
	w       *activities.Work
	spec    *workflow.Batch
	outcome workflow.Done
}

type groupKey struct{}

// A claim can fail while the others succeed, and a job can be canceled, or fail in its middleware, before it joins. In each
// case the group expects one job less; the call is made when no other is expected, with those that are there.

// decided records the outcome of a claim, and starts the successful ones once all are decided.
func (g *group) decided(c *claim, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.undecided--; begins {
		g.claims = append(g.claims, c)
		g.expected[c.job] = struct{}{}
	}
	if g.undecided > 0 {
		return
	}
	for _, c := range g.claims {
		g.d.sched.pool.do(c)
	}
	g.claims = nil
}

// leave records that a job has ended. If its function was not called, the others no longer wait for it.
func (g *group) leave(job workitem.JobID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.expected, job)
	g.callIfComplete()
}

// join waits for the call, and returns the outcome of a job. If middleware calls the function a second time, the job is
// alone in that call.
func (g *group) join(ctx context.Context, spec *workflow.Batch, w *activities.Work) (json.RawMessage, error) {
	m := &member{ctx: ctx, w: w, spec: spec, outcome: workflow.Done{Err: errExited}}
	g.mu.Lock()
	if g.called {
		g.mu.Unlock()
		return newGroup(g.d, w.Job).join(ctx, spec, w)
	}
	g.members = append(g.members, m)
	delete(g.expected, w.Job)
	g.callIfComplete()
	g.mu.Unlock()
	<-g.done
	return m.outcome.Output, m.outcome.Err
}

// newGroup returns the group of a single job that has started.
func newGroup(d *Dispatcher, job workitem.JobID) *group {
	return &group{d: d, expected: map[workitem.JobID]struct{}{job: {}}, done: make(chan struct{})}
}

// callIfComplete calls the function if no other member is expected. The lock is held.
func (g *group) callIfComplete() {
	if g.called || len(g.expected) > 0 || len(g.members) == 0 {
		return
	}
	g.called = true
	slices.SortFunc(g.members, func(a, b *member) int {
		return cmp.Or(a.w.Due.Compare(b.w.Due), bytes.Compare(a.w.Job[:], b.w.Job[:]))
	})
	go g.call(g.members)
}

// call calls the function for all members. Its context is not derived from those of the members, and ends when all of
// theirs have ended.
func (g *group) call(members []*member) {
	defer close(g.done)
	defer func() { // for panics outside of the function that the builder wraps
		if p := recover(); p != nil {
			for _, m := range members {
				m.outcome = workflow.Done{Err: retry.NewPanicError(p)}
			}
		}
	}()
	ctx, cancel := context.WithCancelCause(g.d.o.Context)
	defer cancel(nil)
	if last, ok := lastDeadline(members); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, last)
		defer stop()
	}
	var live atomic.Int64
	live.Store(int64(len(members)))
	works := make([]*activities.Work, len(members))
	for i, m := range members {
		works[i] = m.w
		defer context.AfterFunc(m.ctx, func() {
			if live.Add(-1) == 0 {
				cancel(context.Cause(m.ctx))
			}
		})()
	}
	for i, outcome := range members[0].spec.Run(ctx, works) {
		members[i].outcome = outcome
	}
}

// lastDeadline returns the latest deadline of the contexts of the members; none if one of them has no timeout.
func lastDeadline(members []*member) (last time.Time, ok bool) {
	for _, m := range members {
		deadline, ok := m.ctx.Deadline()
		if !ok {
			return time.Time{}, false
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return last, true
}

// claimEnded records that a claim has ended, and reports whether it was the last. The lock of the scheduler is held.
func (g *group) claimEnded() bool {
	g.held--
	return g.held == 0
}
