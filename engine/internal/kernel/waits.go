package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The waits of a job are its steps that wait: for a time, an event, a child case, or the use of a token.

// moveStep changes a waiting step; fields that set does not assign keep their values.
// The tree replaces the step, so s keeps the state from before the change.
func (js *jobs) moveStep(s *workitem.Step, set func(*state.StepMoved)) error {
	e := &state.StepMoved{Case: s.Case, Job: s.Job, Step: s.ID, To: s.State, Attempt: s.Attempt, Due: s.Due,
		Failure: s.Failure, At: js.now}
	set(e)
	return js.emit(e)
}

// endWaits ends waits by kind once their time has passed:
//
//	sleep                    done
//	wait for an event        failed, with the code timeout
//	wait for a child case    failed likewise, and the child case is canceled
//	function, after a wait   keeps waiting: the job that is claimed for it makes the next attempt
//	token                    unchanged: it has no time
func (js *jobs) endWaits(id workitem.CaseID, job workitem.JobID) error {
	for _, s := range js.tree.Case(id).Steps.Slice() {
		if s.Job != job || s.Due.IsZero() || s.Due.After(js.now) {
			continue
		}
		var err error
		switch s.Kind {
		case workitem.StepSleep:
			err = js.moveStep(s, func(e *state.StepMoved) { e.To = workitem.StepDone })
		case workitem.StepEvent:
			err = js.moveStep(s, func(e *state.StepMoved) {
				e.To, e.Failure = workitem.StepFailed, tooLong(s, fmt.Sprintf("event %q did not come", s.Target))
			})
		case workitem.StepCase:
			err = js.moveStep(s, func(e *state.StepMoved) {
				e.To, e.Failure = workitem.StepFailed, tooLong(s, fmt.Sprintf("case %s of %s did not end", s.Child, s.Target))
			})
			js.agenda.push(js.cases.endCase(s.Child, state.CaseCanceled, nil, true))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tooLong returns the failure of a timeout. The time counts from the beginning of the step.
func tooLong(s *workitem.Step, what string) *workitem.Failure {
	return &workitem.Failure{Code: workitem.CodeTimeout, Retryable: true,
		Message: fmt.Sprintf("%s within %s", what, s.Due.Sub(s.Created))}
}

// wake makes a waiting job pending, due now. A running job learns of the ended step when it next records or suspends,
// and a pending one is left as it is, so ten events wake a job once.
func (js *jobs) wake(id workitem.CaseID, job workitem.JobID) error {
	j := js.tree.Case(id).Job(job)
	if j == nil || j.State != state.JobWaiting {
		return nil
	}
	return js.move(id, j, func(e *state.JobMoved) { e.To, e.Due = state.JobPending, js.now })
}

// endSteps cancels the waits of a job that has ended. It iterates over a copy, since a step that ends leaves the list.
func (js *jobs) endSteps(id workitem.CaseID, job workitem.JobID) error {
	for _, s := range js.tree.Case(id).Steps.Slice() {
		if s.Job != job {
			continue
		}
		if err := js.moveStep(s, func(e *state.StepMoved) { e.To = workitem.StepCanceled }); err != nil {
			return err
		}
		if !s.Child.IsZero() {
			js.agenda.push(js.cases.endCase(s.Child, state.CaseCanceled, nil, true))
		}
	}
	return nil
}

// calleeEnded ends the step of a child case that has ended. If the case was canceled, the step is canceled too: the
// function gets an error that does not count as a failure of its work.
func (js *jobs) calleeEnded(id workitem.CaseID) step {
	return func() error {
		child := js.tree.Case(id)
		c := js.tree.Case(child.Parent)
		var s *workitem.Step
		for waiting := range c.Steps.All() {
			if waiting.Child == id {
				s = waiting
			}
		}
		if s == nil {
			return nil // the function has abandoned the step, or its job has ended
		}
		err := js.moveStep(s, func(e *state.StepMoved) {
			switch child.State {
			case state.CaseCompleted:
				e.To, e.Result = workitem.StepDone, orNull(child.Output)
			case state.CaseFailed:
				e.To, e.Failure = workitem.StepFailed, child.Failure
			default:
				e.To, e.Failure = workitem.StepCanceled, child.Failure
			}
		})
		if err != nil {
			return err
		}
		return js.wake(c.ID, s.Job)
	}
}
