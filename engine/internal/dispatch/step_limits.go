package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A step that needs limits waits for them while its function runs on in other branches. Once nothing else can run, the
// job is suspended, and waits instead:
//
//	no room ──▶ the step is recorded ──▶ line of the run ──▶ admitted: the step is called
//	                                          │ no branch has anything else to do
//	                                          ▼
//	                  the job is suspended, and an entry of it with what function and step take is in the line
//	                                          │ admitted
//	                                          ▼
//	                  the job is claimed, and its run hands the step what was taken for it
//
// So a job that only waits for limits of its steps uses no worker. A job with several waiting steps has an entry for
// each; after the first was admitted and has claimed the job, the claims of the others are refused.

// lease is what a step, or code outside of jobs, has acquired, or waits for. The lock of the scheduler guards it.
type lease struct {
	t        *ticket
	room     func() // called with the lock after the limits were acquired, or refused to a ticket that does not wait
	begun    bool
	released bool
}

// stepLimits admits the steps of one run to their limits. It implements [worker.Limits]. The lock of the scheduler guards its fields.
type stepLimits struct {
	s        *scheduler
	of       *entry       // the job
	reserved *ticket      // acquired for a step with the claim of the job; nil if there was none, or the step has taken it
	leases   []*stepLease // of steps that wait for limits or run
}

// stepLease is the lease of a step.
type stepLease struct {
	lease
	of *stepLimits
}

// Take implements [worker.Limits].
func (g *stepLimits) Take(name string, takes []workitem.Take, since time.Time, room func()) (_ step.Lease, held bool, err error) {
	s := g.s
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := g.take(name, takes, since, room)
	if l == nil {
		return nil, false, err
	}
	return l, l.t.Held(), nil
}

// take is Take with the lock held; it returns nil if there is no room, and the step does not wait for it.
func (g *stepLimits) take(name string, takes []workitem.Take, since time.Time, room func()) (*stepLease, error) {
	s := g.s
	if err := s.limits.check(functionTakes(g.of.ticket), takes); err != nil {
		return nil, err
	}
	l := &stepLease{of: g, lease: lease{room: room}}
	if t := g.reserved; t != nil && slices.EqualFunc(t.Takes, takes, workitem.Take.Equal) {
		l.t, g.reserved = t, nil
		g.leases = append(g.leases, l)
		return l, nil
	} else if t != nil && t.Step == name { // the function needs another amount than when its job was queued
		g.reserved = nil
		s.limits.Undo(t)
	}
	n := entry{due: since.UnixMicro(), job: g.of.job, root: g.of.root, priority: g.of.priority, lease: &l.lease}
	if g.of.urgent != 0 {
		n.urgent = g.of.urgent + n.due - g.of.due
	}
	if room != nil {
		n.turn = s.fair.turnOfStep(g.of, n.due)
	}
	l.t = &ticket{Job: g.of.job, Step: name, Takes: takes, Value: n}
	switch {
	case room == nil && (s.stopping || !s.limits.Try(l.t)):
		return nil, nil
	case room != nil && !s.stopping: // an engine that closes admits nothing: the run is suspended, or its context ends
		if s.limits.Enter(l.t) {
			n.turn.recordStepStart()
		}
	}
	g.leases = append(g.leases, l)
	return l, nil
}

// functionTakes returns the takes of a ticket for the function itself.
func functionTakes(t *ticket) []workitem.Take {
	if t == nil {
		return nil
	}
	return t.Takes[:t.Own]
}

// Begin implements [step.Lease].
func (l *stepLease) Begin() bool {
	s := l.of.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.begun = !l.released && l.t.Held() && s.limits.Begin(l.t)
	return l.begun
}

// Commit implements [step.Lease].
func (l *stepLease) Commit(name string, used int64) error {
	return l.of.s.d.commitUsed(l.t, name, used)
}

// KeyOf implements [step.Lease].
func (l *stepLease) KeyOf(name string) (string, bool) { return l.of.s.d.keyOf(l.t, name) }

// Release implements [step.Lease].
func (l *stepLease) Release(failed bool) {
	s := l.of.s
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.of.leases = slices.DeleteFunc(l.of.leases, func(other *stepLease) bool { return other == l })
	s.limits.end(&l.lease, failed)
}

// dispatchIfReady dispatches if a change of the lines has made something ready. The lock is not held.
func (s *scheduler) dispatchIfReady() {
	s.mu.Lock()
	readied := s.limits.readied
	s.mu.Unlock()
	if readied {
		s.dispatch()
	}
}

// Admitted implements [worker.Limits]: a run with such a step is not suspended.
func (g *stepLimits) Admitted() bool {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	return slices.ContainsFunc(g.leases, func(l *stepLease) bool { return l.t.Held() && !l.begun })
}

// Reserved implements [worker.Limits].
func (g *stepLimits) Reserved() string {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if g.reserved == nil {
		return ""
	}
	return g.reserved.Step
}

// reserve moves the grants of the step from the ticket of the claimed job here.
func (g *stepLimits) reserve() {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if t := g.of.ticket; t != nil && t.Step != "" {
		g.reserved = g.s.limits.Split(t, t.Own)
	}
}

// leave returns the grants that the steps of the ended run did not use.
func (g *stepLimits) leave() {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if g.reserved != nil {
		g.s.limits.Undo(g.reserved)
		g.reserved = nil
	}
	for _, l := range g.leases {
		g.s.limits.end(&l.lease, false)
	}
	g.leases = nil
}

// commitUsed corrects the amount that a ticket has acquired of a rate.
func (d *Dispatcher) commitUsed(t *ticket, name string, used int64) error {
	defer d.sched.dispatchIfReady()
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	def, ok := d.sched.limits.Limit(name)
	switch {
	case ok && (used < 0 || def.Algorithm == limit.Slots || def.Algorithm == limit.CircuitBreaker):
		return fmt.Errorf("%d of %s cannot be committed: commit what was used of a rate, 0 or more: %w", used, def, limit.ErrAmount)
	case !ok || !d.sched.limits.Commit(t, name, used):
		return fmt.Errorf("%d of %q cannot be committed: nothing of it was taken here: %w", used, name, limit.ErrUnknownLimit)
	}
	return nil
}

// keyOf returns the key of the limit with that name that a ticket has acquired.
func (d *Dispatcher) keyOf(t *ticket, name string) (string, bool) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	return t.KeyOf(name)
}

// jobLease is what the function of a job has acquired.
type jobLease struct {
	d *Dispatcher
	t *ticket
}

// KeyOf implements [limit.Taken].
func (l jobLease) KeyOf(name string) (string, bool) { return l.d.keyOf(l.t, name) }

// Commit implements [limit.Taken].
func (l jobLease) Commit(name string, used int64) error { return l.d.commitUsed(l.t, name, used) }

// entriesOf returns the entries of a pending or suspended job. It is one, except for a job with steps that wait for
// limits: that has one for each different set of limits, and one for the time of its other steps. The lock is held.
func (s *scheduler) entriesOf(c *state.Case, j *state.Job, n entry) []entry {
	n.ticket, n.hours, n.batch, n.turn = s.ticketOf(c, j), s.hoursOf(c, j), s.batchOf(c, j), s.fair.turnOf(c, j, n.queue)
	if n.turn != nil {
		n.urgent = s.d.urgency(j) // by the due time alone, since the entry has no round
	}
	if j.State != state.JobWaiting || len(s.d.o.Limits) == 0 {
		return []entry{n}
	}
	var list []entry
	var next time.Time
	for st := range c.Steps.All() {
		if st.Job != j.ID {
			continue
		}
		if !st.Limited() {
			if !st.Due.IsZero() && (next.IsZero() || st.Due.Before(next)) {
				next = st.Due
			}
			continue
		}
		m := n
		m.due, m.ticket = st.Due.UnixMicro(), s.limits.withStep(n.ticket, j.ID, st)
		if !slices.ContainsFunc(list, func(other entry) bool {
			return slices.EqualFunc(other.ticket.Takes, m.ticket.Takes, workitem.Take.Equal)
		}) {
			list = append(list, m)
		}
	}
	switch {
	case len(list) == 0:
		return []entry{n}
	case !next.IsZero():
		n.due = next.UnixMicro()
		list = append(list, n)
	}
	return list
}

// put adds an entry of a job to the calendar.
func (s *scheduler) put(n entry, j *state.Job) {
	if j.State == state.JobWaiting {
		s.waiting.sleep(n)
	} else {
		s.waiting.add(n)
	}
}
