package dispatch

import (
	"encoding/json"
	"errors"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A job whose function has limits takes them as it is handed out, when a worker is free for it. One that cannot leaves its queue for
// the line of a limit, and comes back when there is room; so it holds no worker, and others of its queue pass.

func (s *scheduler) initLimits() {
	gate := admission.New(admission.Options[entry]{
		Lock: &s.mu, Clock: s.d.o.Clock, Limits: s.d.o.Limits, Before: byPriority, Wake: s.turn,
		Ready: s.hasRoom, Shared: s.isShared, Ask: s.ask, Again: s.holdsAgain(), Check: s.checkHolds,
	})
	s.held = s.d.o.Definitions.HeldLimits()
	s.limits = limitGate{Gate: gate, defined: s.d.o.Limits}
	s.shared.rows = sharedRows{rows: s.d.o.Rows, clock: s.d.o.Clock, started: s.d.o.Clock.Now()}
}

// hasRoom takes back what has waited for limits: a step goes on, and a job is due in its queue again. The lock is held.
func (s *scheduler) hasRoom(n entry) {
	s.limits.readied = true
	if n.step != nil {
		s.limits.steps.push(n, byPriority)
		return
	}
	s.isReady(n)
	if at, ok := s.batches.in[n.job]; ok {
		at.line.now = true
		n.queue.lines.place(at.line)
	}
}

// enter takes what a job needs, or has it wait for that. The lock is held.
func (s *scheduler) enter(n entry) bool {
	if s.limits.enter(n) {
		return true
	}
	s.d.o.Active(-1)
	return false
}

// begins notes that the function of an admitted job is called now; false if it was admitted too long ago.
func (s *scheduler) begins(t *ticket) bool {
	if t == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.Begin(t)
}

// ticketOf is what a job needs of limits; nil if it needs none. The lock is held.
func (s *scheduler) ticketOf(c *state.Case, j *state.Job) *ticket {
	if len(s.d.o.Limits) == 0 {
		return nil
	}
	f := s.d.conditionsOf(c, j)
	return s.limits.ticket(j.ID, f.holds, f.limits, f.input)
}

// hoursOf is the number of the window of a job's function; 0 for always. The lock is held.
func (s *scheduler) hoursOf(c *state.Case, j *state.Job) uint16 {
	if !s.d.haveHours {
		return 0
	}
	return s.hours.index(s.d.conditionsOf(c, j).hours)
}

// conditions are what the definition says of when a job may begin. The zero value is at once.
type conditions struct {
	holds  []caseHold
	limits []workflow.Use
	hours  schedule.Window
	batch  *workflow.Batch // in which it is done; nil for alone
	fair   askKey          // the key between which its queue takes turns; nil for none
	input  json.RawMessage // decides how much of the limits it takes
}

// conditionsOf finds what the function of a job needs to begin.
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

// limitedError stops the claim of a job that was taken up without its case: only now it is known that it needs limits, has
// hours, takes turns, or is done with others.
type limitedError struct{ list []entry }

// Error implements error.
func (*limitedError) Error() string {
	return "the job needs limits, has hours, takes turns, or is done with others"
}

// readNeeds looks at what a job needs that was taken up without its case. With batches, nothing begins before it was put back: a
// batch waits until the others are read that it may take.
func (d *Dispatcher) readNeeds(tx *commit.Tx, n *entry) error {
	u, err := tx.Open(n.root)
	if err != nil {
		return err
	}
	c, j := u.Tree.Job(n.job)
	if j == nil {
		return nil // the claim says what became of it
	}
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

// takeNeeds puts an entry back whose needs have been read; false if the error says another thing.
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
	d.sched.turn()
	return true
}

// Limited lists what a job waits for, of limits, or a step of it; nothing if it waits for none.
func (d *Dispatcher) Limited(job workitem.JobID, step string) []admission.Wait {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	return d.sched.limits.Why(job, step)
}

// LimitedOf calls f with what the jobs of a root case and their steps wait for, of limits.
func (d *Dispatcher) LimitedOf(root workitem.CaseID, f func(job workitem.JobID, step string, waits []admission.Wait)) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	d.sched.limits.EachWait(func(n *entry, t *ticket, waits func() []admission.Wait) {
		if n.root == root {
			f(t.Job, t.Step, waits())
		}
	})
}

// Limits lists the limits of the functions here, by name, with what they are used for.
func (d *Dispatcher) Limits() []admission.Usage {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	return d.sched.limits.Usage()
}

// SetLimit gives a limit other numbers, and those of single keys of it. One that no function here takes of is left alone.
func (d *Dispatcher) SetLimit(l limit.Limit, keys map[string]limit.Limit) {
	d.sched.mu.Lock()
	if now, ok := d.sched.limits.Limit(l.Name); ok && now.Algorithm == l.Algorithm {
		d.sched.limits.Change(l, keys)
	}
	d.sched.mu.Unlock()
	d.sched.turn()
}

// isReady puts a due job into its queue, or into the line of those that are done with it, or aside if the queue is paused. The lock is held.
func (s *scheduler) isReady(n entry) {
	if s.paused[n.queue.name] {
		n.queue.held = append(n.queue.held, n)
		if n.ticket != nil {
			s.limits.passing = append(s.limits.passing, n.ticket)
		}
		return
	}
	s.takesTurn(&n)
	if n.batch != nil {
		s.gather(n)
		return
	}
	s.d.o.Active(1)
	n.queue.ready.push(n, byPriority)
}

// SetQueues says what operators have set of queues: which are paused, so that none of their jobs begins, and which have how many workers.
func (d *Dispatcher) SetQueues(set map[string]store.QueueValue) {
	s := &d.sched
	s.mu.Lock()
	s.paused, s.workers = make(map[string]bool), make(map[string]int)
	for name, v := range set {
		if s.paused[name] = v.Paused; v.Workers != nil {
			s.workers[name] = v.Workers.N
		}
	}
	for _, q := range s.queues {
		q.limit = s.limitOf(q.name)
		list := q.held
		if q.held = nil; s.paused[q.name] {
			s.d.o.Active(-len(q.ready))
			list, q.ready = append(list, q.ready...), nil
			list = append(list, s.takeLines(q)...)
		}
		for _, n := range list {
			s.isReady(n)
		}
	}
	s.mu.Unlock()
	s.turn()
}
