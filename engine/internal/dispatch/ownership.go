package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Ownership decides which jobs belong to this engine, where several engines have the store open. Each job belongs to one engine, which
// handles it as if it were alone. The others see a job only when it is offered to all:
//
//	opened ──▶ kept by the engine whose command opened it
//	  └──────▶ offered: that engine lacks a definition, does not work the queue, or has enough that waits (Offers)
//	             └──▶ taken by an engine with room (Filters), and scheduled there (Adopt)
//	its engine dies, or the database has lost its last commits ──▶ without an owner, taken by another engine
//
// An owner saves the engines from competing for each job: usually no other engine has read what a claim changes.
//
// Its methods are safe for concurrent use.
type Ownership struct{ d *Dispatcher }

// Ownership returns what decides which jobs belong to this engine.
func (d *Dispatcher) Ownership() *Ownership { return &Ownership{d} }

// backlog is the number of jobs per worker of a queue that wait here before further ones are offered to other engines.
const backlog = 2

// soon is the time before a due job in which the engine counts as busy, and looks for changes every second.
const soon = 30 * time.Second

// Offers implements commit.Holder. A job that is due later is kept, however much waits here: which engine will have room
// at that time cannot be known now.
func (o *Ownership) Offers(t *state.Tree, c *state.Case, j *state.Job) bool {
	if o.d.lacks(t, c) {
		return true
	}
	s := &o.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.Kind != state.JobRun && j.Kind != state.JobCall {
		return s.others && j.Kind == state.JobStart && o.lacksNeeded(c)
	}
	q := s.queues.of(j.Queue)
	if q.limit <= 0 {
		return true
	}
	if j.Due.After(o.d.o.Now()) {
		return false
	}
	if s.others && q.backlog()+q.promised >= backlog*q.limit && s.fair.waitsHere(q, c, j) {
		return true
	}
	if o.d.haveBatches && o.d.conditionsOf(c, j).batch != nil {
		return false // a worker processes many of them at once
	}
	q.promised++
	return false
}

// lacksNeeded reports whether a case starts cases of a workflow that this engine was not opened with, as one of a schedule does.
func (o *Ownership) lacksNeeded(c *state.Case) bool {
	options, err := workflow.OptionsOf(activities.CaseInfo{ID: c.ID, Workflow: c.Workflow, Options: c.Options})
	return err == nil && options.Needs != "" && o.d.o.Definitions.Named(options.Needs) == nil
}

// Offered implements commit.Holder.
func (o *Ownership) Offered(ids []workitem.JobID) {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	clear(o.d.sched.offered)
	for _, id := range ids {
		o.d.sched.offered[id] = true
	}
}

// isOffered reports whether a job was offered to other engines. The lock is held.
func (s *scheduler) isOffered(id workitem.JobID) bool { return s.offered[id] }

// Others sets whether there are other engines to which jobs can be offered.
func (o *Ownership) Others(are bool) {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	o.d.sched.others = are
}

// Filters returns which of the jobs without an owner this engine takes: as many of a queue as it has room for, since the
// rest is for the other engines. A filter has the room of the fullest of its queues, so queues with far fewer workers than
// the others have one of their own: otherwise a queue with one worker would make each take one of a single job. full
// reports whether queues are left out because they have no room now.
func (o *Ownership) Filters() (filters []store.TakeFilter, full bool) {
	f := o.works()
	s := &o.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.others {
		return []store.TakeFilter{f}, false
	}
	f.Workflows = o.d.o.Definitions.Names()
	if o.d.haveBatches { // a worker processes many jobs at once
		for _, q := range s.queues.byName {
			if q.backlog() >= q.limit {
				f.Without, full = append(f.Without, q.name), true
			}
		}
		return []store.TakeFilter{f}, full
	}
	for name := range o.d.o.Queues {
		s.queues.of(name)
	}
	if f.Max = o.d.o.Workers; f.Max <= 0 { // the room of a queue that is not known yet
		f.Max = math.MaxInt
	}
	if bound := s.roomOfAll(); bound <= 0 {
		f.Only = []string{}
		return []store.TakeFilter{f}, true
	} else if bound < f.Max {
		f.Max = bound
	}
	small := store.TakeFilter{Max: f.Max, Workflows: f.Workflows, Aging: f.Aging}
	for _, q := range s.queues.byName {
		switch room := q.limit - q.backlog(); {
		case slices.Contains(f.Without, q.name) || f.Only != nil && !slices.Contains(f.Only, q.name):
		case room <= 0:
			f.Without, full = append(f.Without, q.name), true
		case 4*q.limit < o.d.o.Workers:
			f.Without, small.Only = append(f.Without, q.name), append(small.Only, q.name)
			small.Max = min(small.Max, room)
		default:
			f.Max = min(f.Max, room)
		}
	}
	if filters = append(filters, f); len(small.Only) > 0 {
		filters = append(filters, small)
	}
	return filters, full
}

// works returns the filter of the queues that this engine works by its configuration.
func (o *Ownership) works() (f store.TakeFilter) {
	f.Aging = o.d.o.Aging
	if o.d.o.Workers <= 0 {
		f.Only = []string{}
	}
	for name, limit := range o.d.o.Queues {
		switch {
		case limit <= 0:
			f.Without = append(f.Without, name)
		case o.d.o.Workers <= 0:
			f.Only = append(f.Only, name)
		}
	}
	return f
}

// roomOfAll returns how many more jobs all queues together have room for. Jobs that wait for a worker of their queue do
// not count: they leave MaxRunning to the other queues. The lock is held.
func (s *scheduler) roomOfAll() int {
	if s.d.o.MaxRunning <= 0 {
		return math.MaxInt
	}
	room := s.d.o.MaxRunning
	for _, q := range s.queues.byName {
		room -= min(q.backlog(), max(q.limit-q.running, 0))
	}
	return room
}

// CountWaiting counts what waits in the queues with a bound, and does not belong to this engine.
func (o *Ownership) CountWaiting(ctx context.Context) error { return o.d.countElsewhere(ctx) }

// Adopt schedules jobs that belong to this engine from now on. A running one belonged to an engine that died, unless it
// runs here. Jobs that could not be scheduled because of the error are returned; they belong to this engine, and are
// passed to Adopt again.
func (o *Ownership) Adopt(ctx context.Context, jobs []*state.Job) (left []*state.Job, err error) {
	if slices.ContainsFunc(jobs, func(j *state.Job) bool { return j.State == state.JobRunning }) {
		if err := o.awaitLosses(ctx); err != nil {
			return jobs, err
		}
	}
	for _, j := range jobs {
		if j.State != state.JobRunning || o.runs(j) {
			continue
		}
		if failed := o.takeOver(ctx, j); failed != nil {
			left, err = append(left, j), fmt.Errorf("job %s: %w", j.ID, failed)
		}
	}
	o.d.sched.mu.Lock()
	for _, j := range jobs {
		o.d.sched.bounds.taken(&o.d.sched.queues, j)
		o.d.sched.add(nil, j, true)
	}
	o.d.sched.mu.Unlock()
	o.d.sched.dispatch()
	return left, err
}

// takeOver makes a job pending whose worker is gone.
func (o *Ownership) takeOver(ctx context.Context, j *state.Job) error {
	crashed := !o.wasLost(j.ID) // a job that ran here was not interrupted by a crash
	err := o.d.o.Writer.Submit(ctx, commit.OnTree(j.Root, "job release", func(_ *commit.Tx, m *kernel.Machine) error {
		return m.Leases().Release(j.ID, j.Fence, crashed)
	}))
	if err != nil && !errors.Is(err, kernel.ErrLeaseLost) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	o.forgetLost(j.ID)
	return nil
}

// awaitLosses waits until Lost has been called, if necessary. The store reports lost commits only at the next commit,
// but may have released the jobs before. A job that counts as running here would then be left by its worker, and no
// engine would own it.
func (o *Ownership) awaitLosses(ctx context.Context) error {
	return o.d.o.Writer.Submit(ctx, &commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }})
}

// runs reports whether a worker here has the job.
func (o *Ownership) runs(j *state.Job) bool {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	return o.d.sched.claims.of(j.ID).holds(j.Fence)
}

// Lost takes all running jobs from their workers. The database lacks the last commits of this engine, so a function may
// continue after a step that was never recorded, and the fence of its job may be used again by another claim. All
// results of these workers are refused. The engine that owns the job next runs it again.
func (o *Ownership) Lost() {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	o.d.sched.claims.lose()
	o.d.sched.limits.Rejoined()
	o.d.sched.bounds.doubt = true
}

// Rejoined records that this engine has joined the fleet with another number: the jobs and the slots of shared limits that it had
// are those of others.
func (o *Ownership) Rejoined() {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	o.d.sched.limits.Rejoined()
	o.d.sched.bounds.doubt = true
}

// wasLost reports whether a job was taken from a worker here by Lost.
func (o *Ownership) wasLost(id workitem.JobID) bool {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	return o.d.sched.claims.wasLost(id)
}

// forgetLost drops a job that Lost took from its worker, after its release.
func (o *Ownership) forgetLost(id workitem.JobID) {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	o.d.sched.claims.forget(id)
}

// Has reports whether a job that is due waits or runs in this engine.
func (o *Ownership) Has(job workitem.JobID) (has bool) {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	o.d.sched.eachKnown(func(id workitem.JobID) { has = has || id == job })
	return has
}

// Unknown returns those of some due jobs that neither wait nor run in this engine. A job that is just passed to the writer, as for its
// claim, may be among them.
func (o *Ownership) Unknown(jobs []*state.Job) []*state.Job {
	o.d.sched.mu.Lock()
	defer o.d.sched.mu.Unlock()
	known := make(map[workitem.JobID]struct{})
	o.d.sched.eachKnown(func(id workitem.JobID) { known[id] = struct{}{} })
	return slices.DeleteFunc(slices.Clone(jobs), func(j *state.Job) bool {
		_, is := known[j.ID]
		worked := j.Kind != state.JobRun && j.Kind != state.JobCall || o.d.sched.queues.of(j.Queue).limit > 0
		return is || !worked
	})
}

// eachKnown calls f with the due jobs that wait or run here. The lock is held.
func (s *scheduler) eachKnown(f func(workitem.JobID)) {
	s.eachDue(s.d.o.Now().UnixMicro(), func(n *entry) { f(n.job) })
	for id := range s.claims.reserved {
		f(id)
	}
	for id := range s.claims.running {
		f(id)
	}
	for _, entries := range s.parked {
		for id := range entries {
			f(id)
		}
	}
	for _, j := range s.loops.held {
		f(j.ID)
	}
}

// Busy reports whether a job runs here, or is due soon.
func (o *Ownership) Busy() bool {
	s := &o.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	now := o.d.o.Now()
	if then := now.Add(soon).UnixMicro(); !s.claims.idle() || s.waiting.next() <= then || s.hours.due(now.UnixMicro()) <= then || s.queues.lineDue(now.UnixMicro()) <= then {
		return true
	}
	for _, q := range s.queues.byName {
		if q.running > 0 || len(q.ready) > 0 || q.lines.next(now.UnixMicro()) != nil {
			return true
		}
	}
	return false
}

// Roots returns the root cases of running jobs, and those with jobs of suspended cases, which another engine may
// resume.
func (o *Ownership) Roots() []workitem.CaseID {
	s := &o.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	roots := s.claims.roots(nil)
	for root := range s.parked {
		roots = append(roots, root)
	}
	return roots
}

// Owners returns the running jobs of a root case, with the owners of their steps.
func (o *Ownership) Owners(root workitem.CaseID) map[workitem.JobID][16]byte {
	s := &o.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims.owners(root)
}

// Compare updates the dispatcher after other engines have changed a root case; steps are those of its running jobs, and
// tree is nil if the case was removed. The context of a job that was taken from its worker is canceled, and a run
// receives the steps that have ended. Parked entries of cases that are no longer suspended are tried again.
func (o *Ownership) Compare(root workitem.CaseID, tree *state.Tree, steps map[workitem.JobID][]*workitem.Step) {
	if o.d.sched.compare(root, tree, steps) {
		o.d.sched.dispatch()
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
