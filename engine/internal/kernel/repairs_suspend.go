package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Nothing starts in a suspended case or below it: no job is claimed, no timer fires, no work item is started. What has
// started may end, with all its consequences in the same command: tokens move on, items are created, automatic tasks
// are executed. Repairs and cancellation are allowed, since cases are suspended for them. Time continues: what became
// due is executed after the resume.

// SuspendCase suspends a case. If it is suspended already, another reason replaces that of the suspension, with its actor and time; without a
// reason, or with the same, nothing changes: it stays known who has suspended it, when and why.
func (rp *Repairs) SuspendCase(id workitem.CaseID, reason string) error {
	c := rp.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State.Final() {
		return fmt.Errorf("case %s %w: it is %s", id, activities.ErrInactive, c.State)
	}
	if s := c.Suspended; s != nil && (reason == "" || reason == s.Reason) {
		return nil
	}
	return rp.emit(&state.CaseSuspended{Case: id, Suspension: state.Suspension{At: rp.now, By: rp.by, Reason: reason}})
}

// continueCase ends the suspension of a case.
func (rp *Repairs) continueCase(c *state.Case) error {
	return rp.emit(&state.CaseContinued{Case: c.ID, At: rp.now})
}

// mayBegin returns an error if a case, or one above it, is suspended. The error wraps [workflow.ErrSuspended]. Detached
// work is no longer part of a case, and is not affected.
func mayBegin(tree *state.Tree, c *state.Case, what string) error {
	if c.State.Final() {
		return nil
	}
	at, s := tree.SuspendedBy(c)
	if s == nil {
		return nil
	}
	return fmt.Errorf("%s cannot begin: case %s of %s %w%s: resume it first", what, at.ID, at.Workflow, workflow.ErrSuspended, suspendedBecause(s))
}

// suspendedBecause returns who suspended a case and why, as far as known.
func suspendedBecause(s *state.Suspension) string {
	text := ""
	if s.By != "" {
		text = " by " + s.By
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}
