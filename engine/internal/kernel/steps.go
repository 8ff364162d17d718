package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Steps records the steps of functions in running jobs, and suspends a job while its steps wait.
type Steps struct {
	*record
	agenda      *agenda
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	leases      *Leases // which job a worker holds
	messages    *Messages
	recorded    *recordedSteps
	cases       *cases // the child cases of steps
}

// Record records steps of a running job: new ones, which have no id yet, and new states of waiting ones. It
// returns them as stored. A wait for an event that was sent before is done at once, a child case is started, and a
// token gets its text. A step that has ended meanwhile keeps that state and is returned with it. A job that records a
// step has made progress, so its count of crashes is reset.
func (st *Steps) Record(id workitem.JobID, fence int64, steps []*workitem.Step) ([]*workitem.Step, error) {
	c, j, err := st.leases.held(id, fence)
	if err != nil {
		return nil, err
	}
	if j.Crashes > 0 && len(steps) > 0 {
		// Crashes are counted to give up a job that kills its process each time. One that records steps between two
		// crashes gets further each time.
		if err := st.jobs.move(c.ID, j, func(e *state.JobMoved) { e.Crashes = 0 }); err != nil {
			return nil, err
		}
	}
	stored := make([]*workitem.Step, len(steps))
	for i, s := range steps {
		if s.ID.IsZero() {
			stored[i], err = st.open(c.ID, j, s)
		} else {
			stored[i], err = st.moved(c.ID, s)
		}
		if err != nil {
			return nil, fmt.Errorf("recording %q in job %s: %w", s.Name, id, err) // package step names the step
		}
	}
	if err := st.agenda.run(0); err != nil {
		return nil, err
	}
	st.recorded.refresh(c.ID, stored)
	return stored, nil
}

// open records a new step. Steps that begin something are handled by kind: a token gets its text, a wait takes an
// event that was sent before, and a child case is opened. Other steps are recorded as given.
func (st *Steps) open(id workitem.CaseID, j *state.Job, given *workitem.Step) (*workitem.Step, error) {
	s := *given
	s.ID, s.Job, s.Case = st.ids.NewStepID(st.now), j.ID, id
	if s.Created.IsZero() || s.Created.After(st.now) { // otherwise the run says when it began, from which a deadline counts
		s.Created = st.now
	}
	if j.Kind == state.JobRun {
		s.Item = j.Item
	}
	if s.Run == 0 {
		s.Run = j.Attempt
	}
	switch {
	case s.Kind == workitem.StepToken:
		return st.messages.openToken(&s)
	case s.State.Final():
		s.Ended = st.now
	case s.Kind == workitem.StepEvent:
		return st.messages.openWait(id, &s)
	case s.Kind == workitem.StepCase:
		return st.openCallee(id, j, &s)
	}
	return &s, st.emit(&state.StepOpened{Step: &s})
}

// moved records a new state of a waiting step of a run. If the run abandons a child case, as a branch that lost a
// choice does, the case is canceled with the step.
func (st *Steps) moved(id workitem.CaseID, given *workitem.Step) (*workitem.Step, error) {
	c := st.tree.Case(id)
	s := c.Step(given.ID)
	if s == nil {
		return st.recorded.ended(given)
	}
	err := st.jobs.moveStep(s, func(e *state.StepMoved) {
		e.To, e.Attempt, e.Due, e.Result, e.Failure = given.State, given.Attempt, given.Due, given.Result, given.Failure
	})
	if err != nil {
		return nil, err
	}
	if given.State.Final() && !s.Child.IsZero() {
		st.agenda.push(st.cases.endCase(s.Child, state.CaseCanceled, nil, true))
	}
	now := *given
	if given.State.Final() {
		now.Ended = st.now
	}
	return &now, nil
}

// Suspend records steps like [Steps.Record], and releases the running job until one of its waiting steps ends.
// known are the steps that the run waits for, as far as it knows. If one of these or of the new ones has ended, the job
// keeps running and the answer is false.
func (st *Steps) Suspend(
	id workitem.JobID, fence int64, steps []*workitem.Step, known []workitem.StepID,
) (stored []*workitem.Step, suspended bool, err error) {
	if stored, err = st.Record(id, fence, steps); err != nil {
		return nil, false, err
	}
	c, j, err := st.leases.held(id, fence)
	if err != nil {
		return nil, false, err
	}
	if err := st.EndDue(id, fence); err != nil {
		return nil, false, err
	}
	st.recorded.refresh(c.ID, stored)
	c = st.tree.Case(c.ID)
	var due time.Time
	waits := false
	for s := range c.Steps.All() {
		if s.Job != id || !wakes(s) {
			continue
		}
		waits = true
		if !s.Due.After(st.now) && !s.Due.IsZero() && !s.Limited() {
			return stored, false, nil // the next attempt is due already
		}
		if due.IsZero() || !s.Due.IsZero() && s.Due.Before(due) {
			due = s.Due
		}
	}
	if !waits || !allWait(c, steps, stored, known) {
		return stored, false, nil
	}
	err = st.jobs.move(c.ID, j, func(e *state.JobMoved) {
		e.To, e.Due, e.Owner, e.Lease, e.Attempt = state.JobWaiting, due, "", time.Time{}, j.Attempt-1
	})
	return stored, err == nil, err
}

// Suspend and wake are commands on one tree, so they are committed one after the other, and no wake-up is lost:
//
//	the step ends before the commit of Suspend     allWait finds that it has ended: not suspended
//	the step ends after it                         the job waits; wake makes it pending
//
// A wait that ends at a time needs no wake: the job waits until the earliest time of its steps, and is claimed then.

// allWait reports whether all steps that a run waits for are still waiting. Steps that it recorded as done or canceled
// do not count.
//
// The run can be behind the tree: an event may have ended a step after the run decided to suspend. That woke no job,
// since this one was running. A suspension now would lose the wake-up, so the job keeps running, and the answer has the
// new state of the steps.
//
//	run: waits for A and B, asks to suspend      tree: A has ended   ─▶ not suspended, A is in the answer
func allWait(c *state.Case, given, stored []*workitem.Step, known []workitem.StepID) bool {
	for i, s := range given {
		if s.State == workitem.StepWaiting && c.Step(stored[i].ID) == nil {
			return false
		}
	}
	for _, id := range known {
		if c.Step(id) == nil && !slices.ContainsFunc(given, func(s *workitem.Step) bool { return s.ID == id }) {
			return false
		}
	}
	return true
}

// wakes reports whether the end of a step wakes its job. That of a token does not: the step that waits for its event
// does.
func wakes(s *workitem.Step) bool { return s.Kind != workitem.StepToken }

// EndDue ends the waits of a running job whose time is over.
func (st *Steps) EndDue(id workitem.JobID, fence int64) error {
	c, j, err := st.leases.held(id, fence)
	if err != nil {
		return err
	}
	if err := st.jobs.endWaits(c.ID, j.ID); err != nil {
		return err
	}
	return st.agenda.run(0)
}

// Call runs the function of a step in the transaction, as a callback.
func (st *Steps) Call(id workitem.JobID, fence int64, f func(context.Context) error) error {
	c, j, err := st.leases.held(id, fence)
	if err != nil {
		return err
	}
	return st.callbacks.call(c, taskOf(c, j), "the transaction", f) // package step names the step
}
