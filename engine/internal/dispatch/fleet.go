package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// This file is for stores that several engines have open. Each job belongs to one engine, which handles it as if it
// were alone. The others see a job only when it is offered to all.

// backlog is the number of jobs per worker of a queue that wait here before further ones are offered to other engines.
const backlog = 2

// soon is the time before a due job in which the engine counts as busy, and looks for changes every second.
const soon = 30 * time.Second

// Offers implements commit.Holder.
func (d *Dispatcher) Offers(c *state.Case, j *state.Job) bool {
	if d.o.Definitions.Definition(c.Fingerprint) == nil {
		return true
	}
	if j.Kind != state.JobRun && j.Kind != state.JobCall {
		return false
	}
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queueOf(j.Queue)
	if q.limit <= 0 {
		return true
	}
	if j.Due.After(d.o.Now()) {
		return false
	}
	if s.others && q.backlog()+q.promised >= backlog*q.limit && s.waitsHere(q, c, j) {
		return true
	}
	if d.haveBatches && d.conditionsOf(c, j).batch != nil {
		return false // a worker processes many of them at once
	}
	q.promised++
	return false
}

// Offered implements commit.Holder.
func (d *Dispatcher) Offered(ids []workitem.JobID) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	clear(d.sched.offered)
	for _, id := range ids {
		d.sched.offered[id] = true
	}
}

// isOffered reports whether a job was offered to other engines. The lock is held.
func (s *scheduler) isOffered(id workitem.JobID) bool { return s.offered[id] }

// Others sets whether there are other engines to which jobs can be offered.
func (d *Dispatcher) Others(are bool) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	d.sched.others = are
}

// Filter returns which of the jobs without an owner this engine takes.
func (d *Dispatcher) Filter() store.TakeFilter {
	var f store.TakeFilter
	if d.o.Workers <= 0 {
		f.Only = []string{}
	}
	for name, limit := range d.o.Queues {
		switch {
		case limit <= 0:
			f.Without = append(f.Without, name)
		case d.o.Workers <= 0:
			f.Only = append(f.Only, name)
		}
	}
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		if s.others && q.backlog() >= q.limit {
			f.Without = append(f.Without, q.name)
		}
	}
	return f
}

// Adopt schedules jobs that belong to this engine from now on. A running one belonged to an engine that died, unless it
// runs here. Jobs that could not be scheduled because of the error are returned; they belong to this engine, and are
// passed to Adopt again.
func (d *Dispatcher) Adopt(ctx context.Context, jobs []*state.Job) (left []*state.Job, err error) {
	if slices.ContainsFunc(jobs, func(j *state.Job) bool { return j.State == state.JobRunning }) {
		if err := d.awaitLosses(ctx); err != nil {
			return jobs, err
		}
	}
	for _, j := range jobs {
		if j.State != state.JobRunning || d.runs(j) {
			continue
		}
		if failed := d.takeOver(ctx, j); failed != nil {
			left, err = append(left, j), fmt.Errorf("job %s: %w", j.ID, failed)
		}
	}
	d.sched.mu.Lock()
	for _, j := range jobs {
		d.sched.add(nil, j, true)
	}
	d.sched.mu.Unlock()
	d.sched.turn()
	return left, err
}

// takeOver makes a job pending whose worker is gone.
func (d *Dispatcher) takeOver(ctx context.Context, j *state.Job) error {
	crashed := !d.wasLost(j.ID) // a job that ran here was not interrupted by a crash
	err := d.o.Writer.Submit(ctx, d.onJob(entry{job: j.ID, root: j.Root}, "job release", false, func(m *kernel.Machine) error {
		return m.Release(j.ID, j.Fence, crashed)
	}))
	if err != nil && !errors.Is(err, kernel.ErrLeaseLost) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	d.forgetLost(j.ID)
	return nil
}

// awaitLosses waits until Lost has been called, if necessary. The store reports lost commits only at the next commit,
// but may have released the jobs before. A job that counts as running here would then be left by its worker, and no
// engine would own it.
func (d *Dispatcher) awaitLosses(ctx context.Context) error {
	return d.o.Writer.Submit(ctx, &commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }})
}

// runs reports whether a worker here has the job.
func (d *Dispatcher) runs(j *state.Job) bool {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	return d.sched.claims.of(j.ID).holds(j.Fence)
}

// Lost takes all running jobs from their workers. The database lacks the last commits of this engine, so a function may
// continue after a step that was never recorded, and the fence of its job may be used again by another claim. All
// results of these workers are refused. The engine that owns the job next runs it again.
func (d *Dispatcher) Lost() {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	d.sched.claims.lose()
}

// wasLost reports whether a job was taken from a worker here by Lost.
func (d *Dispatcher) wasLost(id workitem.JobID) bool {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	return d.sched.claims.wasLost(id)
}

// forgetLost drops a job that Lost took from its worker, after its release.
func (d *Dispatcher) forgetLost(id workitem.JobID) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	d.sched.claims.forget(id)
}

// Busy reports whether a job runs here, or is due soon.
func (d *Dispatcher) Busy() bool {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	now := d.o.Now()
	if then := now.Add(soon).UnixMicro(); !s.claims.idle() || s.waiting.next() <= then || s.hours.due(now.UnixMicro()) <= then || s.gathered(now.UnixMicro()) <= then {
		return true
	}
	for _, q := range s.queues {
		if q.running > 0 || len(q.ready) > 0 || q.lines.next(now.UnixMicro()) != nil {
			return true
		}
	}
	return false
}

// Roots returns the root cases of running jobs, and those with jobs of suspended cases, which another engine may
// resume.
func (d *Dispatcher) Roots() []workitem.CaseID {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	roots := s.claims.roots(nil)
	for root := range s.parked {
		roots = append(roots, root)
	}
	return roots
}

// Owners returns the running jobs of a root case, with the owners of their steps.
func (d *Dispatcher) Owners(root workitem.CaseID) map[workitem.JobID][16]byte {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims.owners(root)
}

// Compare updates the dispatcher after other engines have changed a root case; steps are those of its running jobs, and
// tree is nil if the case was removed. The context of a job that was taken from its worker is canceled, and a run
// receives the steps that have ended. Parked entries of cases that are no longer suspended are tried again.
func (d *Dispatcher) Compare(root workitem.CaseID, tree *state.Tree, steps map[workitem.JobID][]*workitem.Step) {
	if d.sched.compare(root, tree, steps) {
		d.sched.turn()
	}
}

func (s *scheduler) compare(root workitem.CaseID, tree *state.Tree, steps map[workitem.JobID][]*workitem.Step) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tree != nil {
		changed = s.resumeParked(tree)
	}
	s.claims.compare(root, tree, steps)
	return changed
}
