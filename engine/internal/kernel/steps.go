package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// RecordSteps writes steps of a running job: new ones, which have no id yet, and new states of waiting ones. It returns
// them as stored. A wait for an event that was sent before is done at once; a child case is started; a token is made. A
// step that has ended in the meantime stays as it ended, and comes back so. A job that records something has come
// further, so what took its process down before is forgotten.
func (m *Machine) RecordSteps(id workitem.JobID, fence int64, steps []*workitem.Step) ([]*workitem.Step, error) {
	c, j, err := m.held(id, fence)
	if err != nil {
		return nil, err
	}
	if j.Crashes > 0 && len(steps) > 0 {
		if err := m.moveJob(c.ID, j, func(e *state.JobMoved) { e.Crashes = 0 }); err != nil {
			return nil, err
		}
	}
	stored := make([]*workitem.Step, len(steps))
	for i, s := range steps {
		if s.ID.IsZero() {
			stored[i], err = m.openStep(c.ID, j, s)
		} else {
			stored[i], err = m.stepMoved(c.ID, s)
		}
		if err != nil {
			return nil, fmt.Errorf("recording %q in job %s: %w", s.Name, id, err) // package step names the step
		}
	}
	if err := m.run(0); err != nil {
		return nil, err
	}
	m.refresh(c.ID, stored)
	return stored, nil
}

// refresh replaces steps that waited when they were recorded, and that the same command has ended: a child case that
// never waits is over by now. The changes of the command are searched and not the store, which does not have them yet.
func (m *Machine) refresh(id workitem.CaseID, stored []*workitem.Step) {
	c := m.tree.Case(id)
	for i, s := range stored {
		if s.State != workitem.StepWaiting || c.Step(s.ID) != nil {
			continue
		}
		for _, e := range m.changes {
			if moved, ok := e.(*state.StepMoved); ok && moved.Step == s.ID {
				now := *s
				now.State, now.Result, now.Failure, now.Ended = moved.To, moved.Result, moved.Failure, moved.At
				stored[i] = &now
			}
		}
	}
}

// openStep records a new step. The kinds that begin something are taken apart: a token gets its text, a wait may find
// its event sent before, and a child case is opened. The others are recorded as the run gives them.
func (m *Machine) openStep(id workitem.CaseID, j *state.Job, given *workitem.Step) (*workitem.Step, error) {
	s := *given
	s.ID, s.Job, s.Case = m.host.IDs().NewStepID(m.now), j.ID, id
	if s.Created.IsZero() || s.Created.After(m.now) { // otherwise the run says when it began, from which a deadline counts
		s.Created = m.now
	}
	if j.Kind == state.JobRun {
		s.Item = j.Item
	}
	if s.Run == 0 {
		s.Run = j.Attempt
	}
	switch {
	case s.Kind == workitem.StepToken:
		return m.openToken(&s)
	case s.State.Final():
		s.Ended = m.now
	case s.Kind == workitem.StepEvent:
		return m.openWait(id, &s)
	case s.Kind == workitem.StepCase:
		return m.openCallee(id, j, &s)
	}
	return &s, m.emit(&state.StepOpened{Step: &s})
}

// stepMoved writes what a run says of one of its waiting steps. A run that gives a child case up (a branch of a choice
// that lost) cancels the case with the step.
func (m *Machine) stepMoved(id workitem.CaseID, given *workitem.Step) (*workitem.Step, error) {
	c := m.tree.Case(id)
	s := c.Step(given.ID)
	if s == nil {
		return m.endedStep(given)
	}
	err := m.moveStep(s, func(e *state.StepMoved) {
		e.To, e.Attempt, e.Due, e.Result, e.Failure = given.State, given.Attempt, given.Due, given.Result, given.Failure
	})
	if err != nil {
		return nil, err
	}
	if given.State.Final() && !s.Child.IsZero() {
		m.push(m.endCase(s.Child, state.CaseCanceled, nil, true))
	}
	now := *given
	if given.State.Final() {
		now.Ended = m.now
	}
	return &now, nil
}

// endedStep finds a step that no longer waits as it ended.
func (m *Machine) endedStep(given *workitem.Step) (*workitem.Step, error) {
	steps, err := m.host.Steps(given.Owner())
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.ID == given.ID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("it was never recorded: %w", ErrNotFound)
}

// moveStep changes a waiting step; what the caller does not set stays as it is.
func (m *Machine) moveStep(s *workitem.Step, set func(*state.StepMoved)) error {
	e := &state.StepMoved{Case: s.Case, Job: s.Job, Step: s.ID, To: s.State, Attempt: s.Attempt, Due: s.Due,
		Failure: s.Failure, At: m.now}
	set(e)
	return m.emit(e)
}

// Suspend records steps as [Machine.RecordSteps] does, and gives the running job up until one of its waiting steps
// ends. The known ones are those that the run waits for as far as it knows. If one of them, or of the new ones,
// has ended, the job is kept and the answer is false.
func (m *Machine) Suspend(
	id workitem.JobID, fence int64, steps []*workitem.Step, known []workitem.StepID,
) (stored []*workitem.Step, suspended bool, err error) {
	if stored, err = m.RecordSteps(id, fence, steps); err != nil {
		return nil, false, err
	}
	c, j, err := m.held(id, fence)
	if err != nil {
		return nil, false, err
	}
	if err := m.StepsDue(id, fence); err != nil {
		return nil, false, err
	}
	m.refresh(c.ID, stored)
	c = m.tree.Case(c.ID)
	var due time.Time
	waits := false
	for s := range c.Steps.All() {
		if s.Job != id || !wakes(s) {
			continue
		}
		waits = true
		if !s.Due.After(m.now) && !s.Due.IsZero() && !s.Limited() {
			return stored, false, nil // an attempt that is due already
		}
		if due.IsZero() || !s.Due.IsZero() && s.Due.Before(due) {
			due = s.Due
		}
	}
	if !waits || !allWait(c, steps, stored, known) {
		return stored, false, nil
	}
	err = m.moveJob(c.ID, j, func(e *state.JobMoved) {
		e.To, e.Due, e.Owner, e.Lease, e.Attempt = state.JobWaiting, due, "", time.Time{}, j.Attempt-1
	})
	return stored, err == nil, err
}

// Suspend and wake meet in either order, and no wait is lost:
//
//	the step ends before the commit of Suspend     allWait finds that it has ended: not suspended
//	the step ends after it                         the job waits; wake makes it pending
//
// Both are commands on one tree, which are committed one after the other, so there is no third order. A time that is
// due needs no wake: the job waits with the earliest of its steps' times as its own, and is claimed then.

// allWait reports whether everything that a run waits for is still to come. What it recorded as done or canceled it
// does not wait for.
//
// The run and the tree can differ: the run blocks on what it knew when it asked, and an event may have ended a step
// since, in a command of its own. Such an end woke no job, as this one was running. To suspend now would lose the
// wake-up; the job is kept instead, and the answer has the new state of the steps.
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

// wakes reports whether the end of a waiting step concerns its job: that of a token does not.
func wakes(s *workitem.Step) bool { return s.Kind != workitem.StepToken }

// StepsDue ends the waits of a running job whose time is over.
func (m *Machine) StepsDue(id workitem.JobID, fence int64) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	if err := m.stepsDue(c.ID, j.ID); err != nil {
		return err
	}
	return m.run(0)
}

// stepsDue decides what time decides:
//
//	sleep                    done
//	wait for an event        failed, with the code timeout
//	wait for a child case    failed likewise, and the child case is canceled
//	function, after a wait   goes on waiting: the job that is claimed for it makes the next attempt
//	token                    nothing, as it has no time; its event has
func (m *Machine) stepsDue(id workitem.CaseID, job workitem.JobID) error {
	for _, s := range m.tree.Case(id).Steps.Slice() {
		if s.Job != job || s.Due.IsZero() || s.Due.After(m.now) {
			continue
		}
		var err error
		switch s.Kind {
		case workitem.StepSleep:
			err = m.moveStep(s, func(e *state.StepMoved) { e.To = workitem.StepDone })
		case workitem.StepEvent:
			err = m.moveStep(s, func(e *state.StepMoved) {
				e.To, e.Failure = workitem.StepFailed, tooLong(s, fmt.Sprintf("event %q did not come", s.Target))
			})
		case workitem.StepCase:
			err = m.moveStep(s, func(e *state.StepMoved) {
				e.To, e.Failure = workitem.StepFailed, tooLong(s, fmt.Sprintf("case %s of %s did not end", s.Child, s.Target))
			})
			m.push(m.endCase(s.Child, state.CaseCanceled, nil, true))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tooLong names the time that was asked for, which counts from when the step was begun.
func tooLong(s *workitem.Step, what string) *workitem.Failure {
	return &workitem.Failure{Code: workitem.CodeTimeout, Retryable: true,
		Message: fmt.Sprintf("%s within %s", what, s.Due.Sub(s.Created))}
}

// wake has a job that waits go on: it is pending from now. One that runs learns of the ended step when it next records
// or suspends, and one that is pending already is left alone, so ten events wake it once.
func (m *Machine) wake(id workitem.CaseID, job workitem.JobID) error {
	j := m.tree.Case(id).Job(job)
	if j == nil || j.State != state.JobWaiting {
		return nil
	}
	return m.moveJob(id, j, func(e *state.JobMoved) { e.To, e.Due = state.JobPending, m.now })
}

// endSteps ends what a job that has ended still waited for. It goes over a copy, since a step that ends leaves the
// list.
func (m *Machine) endSteps(id workitem.CaseID, job workitem.JobID) error {
	for _, s := range m.tree.Case(id).Steps.Slice() {
		if s.Job != job {
			continue
		}
		if err := m.moveStep(s, func(e *state.StepMoved) { e.To = workitem.StepCanceled }); err != nil {
			return err
		}
		if !s.Child.IsZero() {
			m.push(m.endCase(s.Child, state.CaseCanceled, nil, true))
		}
	}
	return nil
}

// CallStep runs a step's function in the transaction, as a callback.
func (m *Machine) CallStep(id workitem.JobID, fence int64, f func(context.Context) error) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	return m.call(c, taskOf(c, j), "the transaction", f) // package step names the step
}
