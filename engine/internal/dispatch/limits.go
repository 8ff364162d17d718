package dispatch

import (
	"encoding/json"
	"errors"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A job whose function has limits acquires them when it is handed out to a free worker. A job without room leaves its
// queue for the line of a limit, and comes back when there is room. So it uses no worker, and does not block the jobs
// behind it.

func (s *scheduler) initLimits() {
	again := limit.Unknown
	if s.d.o.Fleet {
		again = quota.Again // slots that cases of other engines hold are ordered again
	}
	gate := admission.New(admission.Options[entry]{
		Lock: &s.mu, Clock: s.d.o.Clock, Limits: s.d.o.Limits, Before: byPriority, Wake: s.dispatch,
		Ready: s.hasRoom, Free: s.hasWorker, Shared: s.isShared, Ask: s.shared.ask, Again: again, Check: s.checkHolds,
	})
	s.limits = limitGate{Gate: gate, defined: s.d.o.Limits}
	s.holds = caseHolds{names: s.d.o.Definitions.HeldLimits(), limits: &s.limits, definitions: s.d.o.Definitions}
	s.shared = exchange{o: &s.d.o, lock: &s.mu, gate: &s.limits, answered: s.dispatch,
		rows: sharedRows{rows: s.d.o.Rows, clock: s.d.o.Clock, started: s.d.o.Clock.Now()}}
}

// isShared reports whether the store grants a limit. An engine that is alone counts slots itself, except for limits
// that cases hold.
func (s *scheduler) isShared(l limit.Limit) bool {
	return s.holds.names[l.Name] || l.InStore && (s.d.o.Fleet || l.Algorithm != limit.Slots)
}

// hasRoom is called when a line has room: a step or code outside of jobs continues, or a job returns to its queue. The lock is held.
func (s *scheduler) hasRoom(n entry) {
	// A dispatch may be in progress, which then looks at the queues once more.
	s.limits.readied = true
	if n.lease != nil {
		s.limits.leases.push(n, byPriority)
		return
	}
	s.enqueue(n)
	s.batches.stopWaiting(n.job)
}

// hasWorker reports whether a job can be handed out now, if its limits have room. A step, and code outside of jobs, need no worker. The lock
// is held.
func (s *scheduler) hasWorker(n *entry) bool {
	return n.lease != nil || n.queue == nil || n.queue.running < n.queue.limit && !s.queues.full() && !s.queues.isPaused(n)
}

// enter acquires what a job needs, or makes it wait. The lock is held.
// A job in a line of a limit is no activity: an engine whose jobs all wait for limits is idle.
func (s *scheduler) enter(n entry) bool {
	if s.limits.enter(n) {
		return true
	}
	s.d.o.Active(-1)
	return false
}

// beginWork records that the function of an admitted job is called now; false if a grant has expired since it was
// admitted.
func (s *scheduler) beginWork(t *ticket) bool {
	if t == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.Begin(t)
}

// ticketOf returns the ticket of a job; nil if it needs no limits. The lock is held.
func (s *scheduler) ticketOf(c *state.Case, j *state.Job) *ticket {
	if len(s.d.o.Limits) == 0 {
		return nil
	}
	f := s.d.conditionsOf(c, j)
	return s.limits.ticket(j.ID, f.holds, f.limits, f.input)
}

// hoursOf returns the number of the window of a job's function; 0 for always. The lock is held.
func (s *scheduler) hoursOf(c *state.Case, j *state.Job) uint16 {
	if !s.d.haveHours {
		return 0
	}
	return s.hours.index(s.d.conditionsOf(c, j).hours)
}

// conditions are the conditions of a definition for the start of a job. The zero value has none.
type conditions struct {
	holds  []caseHold
	limits []workflow.Use
	hours  schedule.Window
	batch  *workflow.Batch // nil if the job runs alone
	fair   keyFunc         // the function that computes its fairness key; nil for none
	input  json.RawMessage // for the amounts and keys of limits
}

// conditionsOf returns the conditions for the start of a job.
func (d *Dispatcher) conditionsOf(c *state.Case, j *state.Job) (f conditions) {
	def := d.o.Definitions.Definition(c.Fingerprint)
	if def == nil {
		return f
	}
	if j.Kind == state.JobCall {
		if call := def.Calls[j.Name]; call != nil {
			return conditions{limits: call.Limits, hours: call.Hours, fair: call.FairBy, input: j.Input}
		}
		return f
	}
	it := c.Item(j.Item)
	if it == nil || j.Kind != state.JobRun {
		return f
	}
	t, ok := def.Net.TaskByName(it.Task)
	if !ok {
		return f
	}
	spec := &def.Tasks[t]
	return conditions{holdsOf(def, c, t), spec.Limits, spec.Hours, spec.Batch, spec.FairBy, it.Input}
}

// limitedError stops the claim of a job that was loaded without its case, when it turns out that the job has limits,
// hours, a fairness key, or a batch.
type limitedError struct{ list []entry }

// Error implements error.
func (*limitedError) Error() string {
	return "the job needs limits, has hours, takes turns, or is done with others"
}

// readNeeds reads the conditions of a job that was loaded without its case. If there are batches, no job of the queue
// starts before this one was put back, since it may belong to a batch that is being formed.
func (d *Dispatcher) readNeeds(tx *commit.Tx, n *entry) error {
	u, err := tx.Open(n.root)
	if err != nil {
		return err
	}
	c, j := u.Tree.Job(n.job)
	if j == nil {
		return nil // the claim handles the error
	}
	// Without batches the claim itself is refused for a suspended case.
	if _, by := u.Tree.SuspendedBy(c); d.haveBatches && by != nil {
		return workflow.ErrSuspended // a batch does not count it
	}
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	if list := d.sched.entriesOf(c, j, *n); d.haveBatches || list[0].ticket != nil || list[0].hours != 0 || list[0].turn != nil {
		return &limitedError{list}
	}
	return nil
}

// takeNeeds puts an entry back after its conditions were read; false if the error is another one.
func (d *Dispatcher) takeNeeds(err error) bool {
	limited, ok := errors.AsType[*limitedError](err)
	if !ok {
		return false
	}
	d.sched.mu.Lock()
	for _, m := range limited.list {
		if m.unread = false; !d.sched.stopping {
			d.sched.waiting.putBack(m)
		}
	}
	d.sched.mu.Unlock()
	d.sched.dispatch()
	return true
}

// SetLimit replaces the definition of a limit and of single keys of it. It ignores a limit that no function here uses.
func (d *Dispatcher) SetLimit(l limit.Limit, keys map[string]limit.Limit) {
	d.sched.mu.Lock()
	// A setting for another algorithm is that of a program whose definition differs; what is counted here would not
	// fit it.
	if now, ok := d.sched.limits.Limit(l.Name); ok && now.Algorithm == l.Algorithm {
		d.sched.limits.Change(l, keys)
	}
	d.sched.mu.Unlock()
	d.sched.dispatch()
}

// enqueue puts a due job into its queue or the line of its batch, or aside if the queue or its key is paused. The lock
// is held.
func (s *scheduler) enqueue(n entry) {
	if s.queues.isPaused(&n) {
		if !s.queues.paused[n.queue.name] { // a paused queue keeps its rounds
			s.fair.leaveRound(&n)
		}
		n.queue.held = append(n.queue.held, n)
		// It may have been made ready, and holds back the tickets behind it, which can continue.
		if n.ticket != nil {
			s.limits.passing = append(s.limits.passing, n.ticket)
		}
		return
	}
	s.fair.assign(&n)
	if n.batch != nil {
		s.batches.gather(n)
		return
	}
	s.d.o.Active(1)
	n.queue.ready.push(n, byPriority)
}
