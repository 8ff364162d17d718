package worker

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

// Batch is a batch of jobs that one call of a function does. Each job is claimed, wrapped by middleware and settled on a goroutine of
// its own, as if it were alone. The goroutines meet where the function would be called:
//
//	Expect ──▶ join, or Leave ──▶ all have done so: one call ──▶ each continues with its own outcome
//
// A job can be canceled, or fail in its middleware, before it joins. Then the batch expects one job less; the call is made when no
// other is expected, with those that are there.
type Batch struct {
	ctx context.Context // the parent of the context of the call

	mu       sync.Mutex
	expected map[workitem.JobID]struct{}
	members  []*member
	called   bool
	done     chan struct{} // closed after the call
}

// member is a job that waits for the call of the function.
type member struct {
	ctx     context.Context
	w       *activities.Work
	spec    *workflow.Batch
	outcome workflow.Done
}

type batchKey struct{}

// NewBatch returns a batch without jobs. The context of its call ends with the given one.
func NewBatch(ctx context.Context) *Batch {
	return &Batch{ctx: ctx, expected: make(map[workitem.JobID]struct{}), done: make(chan struct{})}
}

// NewContext returns a context for the run of a job of the batch.
func (g *Batch) NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, batchKey{}, g)
}

// Expect adds a job. All jobs are added before the first of them runs.
func (g *Batch) Expect(job workitem.JobID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected[job] = struct{}{}
}

// Leave records that the run of a job has ended. If its function was not called, the others no longer wait for it.
func (g *Batch) Leave(job workitem.JobID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.expected, job)
	g.callIfComplete()
}

// join waits for the call, and returns the outcome of a job. If middleware calls the function a second time, the job is
// alone in that call.
func (g *Batch) join(ctx context.Context, spec *workflow.Batch, w *activities.Work) (json.RawMessage, error) {
	m := &member{ctx: ctx, w: w, spec: spec, outcome: workflow.Done{Err: ErrExited}}
	g.mu.Lock()
	if g.called {
		g.mu.Unlock()
		return alone(g.ctx, w.Job).join(ctx, spec, w)
	}
	g.members = append(g.members, m)
	delete(g.expected, w.Job)
	g.callIfComplete()
	g.mu.Unlock()
	<-g.done
	return m.outcome.Output, m.outcome.Err
}

// alone returns the batch of a single job that runs.
func alone(ctx context.Context, job workitem.JobID) *Batch {
	g := NewBatch(ctx)
	g.Expect(job)
	return g
}

// callIfComplete calls the function if no other member is expected. The lock is held.
func (g *Batch) callIfComplete() {
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
func (g *Batch) call(members []*member) {
	defer close(g.done)
	defer func() { // for panics outside of the function that the builder wraps
		if p := recover(); p != nil {
			for _, m := range members {
				m.outcome = workflow.Done{Err: retry.NewPanicError(p)}
			}
		}
	}()
	ctx, cancel := context.WithCancelCause(g.ctx)
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
