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

// stepLease is the lease of a step.
type stepLease struct {
	lease
	j *journal
}

// Take implements [step.Limiter].
func (j *journal) Take(name string, takes []workitem.Take, since time.Time, room func()) (step.Lease, error) {
	l, err := j.take(name, takes, since, room)
	if l == nil {
		return nil, err
	}
	if room != nil && l.held() {
		room()
	}
	return l, nil
}

func (j *journal) take(name string, takes []workitem.Take, since time.Time, room func()) (*stepLease, error) {
	s := &j.d.sched
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.limits.check(functionTakes(j.n.ticket), takes); err != nil {
		return nil, err
	}
	l := &stepLease{j: j, lease: lease{room: func() { j.limitsAcquired(room) }}}
	if t := j.reserved; t != nil && slices.EqualFunc(t.Takes, takes, workitem.Take.Equal) {
		l.t, j.reserved = t, nil
		j.leases = append(j.leases, l)
		return l, nil
	} else if t != nil && t.Step == name { // the function needs another amount than when its job was queued
		j.reserved = nil
		s.limits.Undo(t)
	}
	n := entry{due: since.UnixMicro(), job: j.n.job, root: j.n.root, priority: j.n.priority, lease: &l.lease}
	if j.n.urgent != 0 {
		n.urgent = j.n.urgent + n.due - j.n.due
	}
	if room != nil {
		n.turn = s.turnOfStep(&j.n, n.due)
	}
	l.t = &ticket{Job: j.n.job, Step: name, Takes: takes, Value: n}
	switch {
	case room == nil && (s.stopping || !s.limits.Try(l.t)):
		return nil, nil
	case room != nil && !s.stopping: // an engine that closes admits nothing: the run is suspended, or its context ends
		if s.limits.Enter(l.t) {
			n.turn.recordStepStart()
		}
	}
	j.leases = append(j.leases, l)
	return l, nil
}

// functionTakes returns the takes of a ticket for the function itself.
func functionTakes(t *ticket) []workitem.Take {
	if t == nil {
		return nil
	}
	return t.Takes[:t.Own]
}

func (l *stepLease) held() bool {
	l.j.d.sched.mu.Lock()
	defer l.j.d.sched.mu.Unlock()
	return l.t.Held()
}

// Begin implements [step.Lease].
func (l *stepLease) Begin() bool {
	s := &l.j.d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	l.begun = !l.released && l.t.Held() && s.limits.Begin(l.t)
	return l.begun
}

// Commit implements [step.Lease].
func (l *stepLease) Commit(name string, used int64) error { return l.j.d.commitUsed(l.t, name, used) }

// KeyOf implements [step.Lease].
func (l *stepLease) KeyOf(name string) (string, bool) { return l.j.d.keyOf(l.t, name) }

// Release implements [step.Lease].
func (l *stepLease) Release(failed bool) {
	s := &l.j.d.sched
	defer s.dispatchIfReady()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.j.leases = slices.DeleteFunc(l.j.leases, func(other *stepLease) bool { return other == l })
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

// limitsAcquired reports to a run that a step has acquired its limits. While the run is being suspended, the report is
// delayed until it is known whether the run continues; at its end, unreported grants are returned.
func (j *journal) limitsAcquired(room func()) {
	j.mu.Lock()
	report := !j.ended && !j.suspending
	if j.suspending {
		j.delayed = append(j.delayed, room)
	}
	j.mu.Unlock()
	if report {
		room()
	}
}

// admitted reports whether a step of the run has acquired its limits and has not started: the run is not suspended
// then.
func (j *journal) admitted() bool {
	j.d.sched.mu.Lock()
	defer j.d.sched.mu.Unlock()
	return slices.ContainsFunc(j.leases, func(l *stepLease) bool { return l.t.Held() && !l.begun })
}

// unusedAdmission returns a record that ends the step for which the job was admitted, if the function has ended or
// suspended without calling the step; nil if it has called it. Without that record the job would be admitted for the
// step again and again.
func (j *journal) unusedAdmission() []*workitem.Step {
	j.d.sched.mu.Lock()
	t := j.reserved
	j.d.sched.mu.Unlock()
	if t == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.waits {
		if s.Name == t.Step && s.Limited() {
			ended := *s
			ended.State, ended.Due, ended.Result = workitem.StepCanceled, time.Time{}, nil
			return []*workitem.Step{&ended}
		}
	}
	return nil
}

// reserveStep moves the grants of the step from the ticket of a claimed job to its journal.
func (s *scheduler) reserveStep(j *journal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := j.n.ticket; t != nil && t.Step != "" {
		j.reserved = s.limits.Split(t, t.Own)
	}
}

// leaveSteps returns the grants that the steps of an ended run did not use.
func (s *scheduler) leaveSteps(j *journal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.reserved != nil {
		s.limits.Undo(j.reserved)
		j.reserved = nil
	}
	for _, l := range j.leases {
		s.limits.end(&l.lease, false)
	}
	j.leases = nil
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
	n.ticket, n.hours, n.batch, n.turn = s.ticketOf(c, j), s.hoursOf(c, j), s.batchOf(c, j), s.turnOf(c, j, n.queue)
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
