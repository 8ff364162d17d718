package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Nothing of a suspended case begins, nor of those below it: no job is claimed, no timer acts, no work item is started. What has
// begun may end, with all that its end brings about in its command: tokens move on, items are created, automatic tasks are done.
// Repairs and cancellation are what a case may be suspended for, so they are allowed. Times go on meanwhile: what became due acts when
// the case goes on.

// SuspendCase has nothing of a case begin. One that is suspended already gets the new reason.
func (m *Machine) SuspendCase(id workitem.CaseID, reason string) error {
	c := m.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State.Final() {
		return fmt.Errorf("case %s %w: it is %s", id, activities.ErrInactive, c.State)
	}
	return m.emit(&state.CaseSuspended{Case: id, Suspension: state.Suspension{At: m.now, By: m.by, Reason: reason}})
}

// goOn ends the suspension of a case.
func (m *Machine) goOn(c *state.Case) error {
	return m.emit(&state.CaseContinued{Case: c.ID, At: m.now})
}

// mayBegin refuses to begin work of a case that is suspended, or below one that is. The error wraps [workflow.ErrSuspended]. Work
// that a case left behind is not part of it any more.
func (m *Machine) mayBegin(c *state.Case, what string) error {
	if c.State.Final() {
		return nil
	}
	at, s := m.tree.SuspendedBy(c)
	if s == nil {
		return nil
	}
	return fmt.Errorf("%s cannot begin: case %s of %s %w%s: resume it first", what, at.ID, at.Workflow, workflow.ErrSuspended, because(s))
}

// because says who suspended a case and why, as far as that is known.
func because(s *state.Suspension) string {
	text := ""
	if s.By != "" {
		text = " by " + s.By
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}
