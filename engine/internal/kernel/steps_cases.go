package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A step that runs a child case and the child are two records that refer to each other, as either may end first:
//
//	job of the parent        step                    child case
//	runs, records the step   waiting, Child: id      Caller: the job's id
//	suspends                 waiting                 started
//	                         done ◀───────────────── completed    calleeEnded wakes the job
//	gives the branch up      canceled ─────────────▶ canceled     moved, endSteps: a teardown from above
//
// The child belongs to the tree of its parent, so all this is one commit.

// openCallee starts the child case of a step. The step is recorded first, with the id of the case: the case may end
// during this command, and then has to find the step that waits for it.
func (st *Steps) openCallee(id workitem.CaseID, j *state.Job, s *workitem.Step) (*workitem.Step, error) {
	c := st.tree.Case(id)
	if c.State.Final() {
		return nil, fmt.Errorf("a job that outlives its case cannot run a child case: case %s %w", id, activities.ErrInactive)
	}
	d := st.definitions.host.Named(s.Target)
	if d == nil {
		return st.refuseCallee(s, &refusal{fmt.Errorf("%w: %q; pass it to the engine when it is opened", ErrUnknown, s.Target), "unknown-workflow"})
	}
	if d.Accept != nil {
		if _, err := st.callbacks.accept(d.AcceptIsPlain, func() (json.RawMessage, error) { return d.Accept(s.Input) }); err != nil {
			return st.refuseCallee(s, &refusal{fmt.Errorf("start %s: %w", versioned(d.Name, d.Version), err), "invalid-payload"})
		}
	}
	child := &state.Case{
		ID: st.ids.NewCaseID(st.now), Root: c.Root, Parent: c.ID, Number: len(c.Children) + 1, Caller: j.ID,
		Priority: c.Priority,
	}
	s.Child = child.ID
	if err := st.emit(&state.StepOpened{Step: s}); err != nil {
		return nil, err
	}
	begin, err := st.cases.open(child, d, s.Input)
	if err != nil {
		return nil, err
	}
	st.agenda.push(begin...)
	return s, nil
}

// refuseCallee records that a child case could not be started. That fails the step and not the command: the function
// asked for the case, and can continue without it or fail. The failure is not retryable, since the same input would be
// refused again.
func (st *Steps) refuseCallee(s *workitem.Step, why error) (*workitem.Step, error) {
	s.State, s.Due, s.Ended, s.Failure = workitem.StepFailed, time.Time{}, st.now, workitem.FailureOf(workitem.Fatal(why))
	return s, st.emit(&state.StepOpened{Step: s})
}

// refusal says why a child case could not be started. It has the code that a start of the workflow has, unless its error has one of its own.
type refusal struct {
	error
	code string
}

// Unwrap returns the error.
func (r *refusal) Unwrap() error { return r.error }

// FailureCode implements [workitem.Coded].
func (r *refusal) FailureCode() string {
	if of, ok := errors.AsType[workitem.Coded](r.error); ok {
		return of.FailureCode()
	}
	return r.code
}

// FailureDetails implements [workitem.Coded].
func (r *refusal) FailureDetails() json.RawMessage {
	if of, ok := errors.AsType[workitem.Coded](r.error); ok {
		return of.FailureDetails()
	}
	return nil
}
