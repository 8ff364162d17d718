package kernel

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// wayBudget bounds the states of the search for a way to the end. Each may need a search for an or-join, and all other
// commands wait meanwhile.
const wayBudget = 2_000

// Move takes the tokens of a condition or a task, and puts tokens into a condition or before a task. A started task has
// consumed its tokens, so it is canceled with everything that it owns. A failed case is resumed first.
//
//	s ─▶ draft ─▶ review ─▶ e      review is started: move from review to draft
//	                               review canceled, a token in s, draft enabled
//
// The error wraps [workflow.ErrDeadEnd] if a run from there leads to a state that no run completes, unless one did before the move, too; then only
// if no run at all completes the case. It also does if the case fails by the move
// itself, as when the input of the task that it enables reads the output of one that has not completed. A forced move
// does it all the same. A search that runs out of its budget refuses nothing.
func (rp *Repairs) Move(id workitem.CaseID, from, to string, force bool) error {
	c := rp.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State == state.CaseFailed {
		if _, err := rp.Resume(id, nil, nil); err != nil {
			return err
		}
		c = rp.tree.Case(id)
	}
	if c.State.Final() {
		return fmt.Errorf("case %s %w: it is %s", id, activities.ErrInactive, c.State)
	}
	into, err := before(c, to)
	if err != nil {
		return err
	}
	was := positionOf(c)
	taken, steps, err := rp.takenFrom(c, from)
	if err != nil {
		return err
	}
	rp.agenda.push(append(steps, func() error {
		if err := rp.emit(&state.TokensMoved{Case: id, From: taken, Into: into}); err != nil {
			return err
		}
		c := rp.tree.Case(id)
		next := rp.activations.withdrawals(c, taken)
		for _, p := range into {
			rp.joins.touch(c, p)
			for _, u := range c.Net.Consumers(p) {
				next = append(next, rp.activations.try(id, u))
			}
		}
		// The token may have been put into the end condition.
		rp.agenda.push(append(next, rp.activations.endCheck(id))...)
		return nil
	})...)
	if err := rp.agenda.run(0); err != nil || force {
		return err
	}
	// The way to the end is searched after the move, from the state that it has led to. An error rolls the command
	// back, and the move with it.
	return canEnd(was, rp.tree.Case(id))
}

// Where the tokens of a name are, and what a move from it does:
//
//	condition, marked     one token of it               tasks that it enabled are withdrawn
//	task, enabled         those that its join would     it is withdrawn
//	                      consume
//	task, started         none: they are consumed       it is canceled, with its items or child cases
//	task, otherwise       none                          refused
//
// So a move from a started task is the only one that loses work, and the dry run of the command says which.

// takenFrom returns the tokens of a condition or a task, and what has to be canceled to take them.
func (rp *Repairs) takenFrom(c *state.Case, from string) ([]net.ConditionID, []step, error) {
	if p, ok := c.Net.ConditionByName(from); ok {
		if c.Marking[p] == 0 {
			return nil, nil, fmt.Errorf("condition %s of case %s %w: it holds no token", from, c.ID, activities.ErrInactive)
		}
		return []net.ConditionID{p}, nil, nil
	}
	t, ok := c.Net.TaskByName(from)
	if !ok {
		return nil, nil, unknownPlace(c, from)
	}
	switch c.Tasks[t].State {
	case state.TaskStarted:
		return nil, []step{rp.activations.cancelTask(c.ID, t)}, nil
	case state.TaskEnabled:
		return c.Net.Consumes(nil, t, c.Marking), nil, nil
	}
	return nil, nil, fmt.Errorf("task %s of case %s %w: it is %s", from, c.ID, activities.ErrInactive, c.Tasks[t].State)
}

// before returns the conditions that need a token for a move to a condition or a task: all inputs of an and-join, or
// the only input of another join.
func before(c *state.Case, to string) ([]net.ConditionID, error) {
	if p, ok := c.Net.ConditionByName(to); ok {
		return []net.ConditionID{p}, nil
	}
	t, ok := c.Net.TaskByName(to)
	if !ok {
		return nil, unknownPlace(c, to)
	}
	inputs := c.Net.Inputs(t)
	if len(inputs) > 1 && c.Net.Task(t).Join != net.And {
		return nil, fmt.Errorf("%w: task %s of %s can be enabled by any of its inputs: name one of %s", workflow.ErrBadCommand, to, c.Workflow,
			names(c, inputs))
	}
	return inputs, nil
}

// unknownPlace is the error for a name that the net of a case does not have.
func unknownPlace(c *state.Case, name string) error {
	return fmt.Errorf("workflow %s has no condition and no task %q: %w", c.Workflow, name, ErrNotFound)
}

// names lists conditions for an error.
func names(c *state.Case, conditions []net.ConditionID) string {
	list := make([]string, len(conditions))
	for i, p := range conditions {
		list[i] = c.Net.ConditionName(p)
	}
	return strings.Join(list, ", ")
}

// canEnd returns an error for a move after which a case has failed, or cannot end: with a run to where nothing can happen. A move need not make
// safe what was not before it, such as a workflow that is unsound, or a case that has lost its tokens: then one run that completes the case is enough.
func canEnd(was position, c *state.Case) error {
	switch {
	case c.State == state.CaseFailed:
		return fmt.Errorf("case %s of %s: %w: it would fail at once (%w). Nothing was moved; to move all the same, force it", c.ID, c.Workflow,
			workflow.ErrDeadEnd, c.Failure)
	case c.State.Final():
		return nil
	}
	is := positionOf(c)
	end, decided := verify.DeadEndFrom(c.Net, is.marking, is.busy, wayBudget)
	switch {
	case end == nil && decided:
		return nil
	case end != nil:
		if before, decided := verify.DeadEndFrom(c.Net, was.marking, was.busy, wayBudget); before == nil && decided {
			return endsIn(c, *end)
		}
	}
	return hasWay(c, is)
}

// hasWay returns an error for a case that no run can complete.
func hasWay(c *state.Case, is position) error {
	way := verify.WayFrom(c.Net, is.marking, is.busy, wayBudget)
	if way.Run != nil || !way.Decided {
		return nil
	}
	return endsIn(c, verify.DeadEnd{Run: way.Stuck, Deadlock: way.Stuck != nil, Left: way.Left})
}

// endsIn is the error for a case that a run can lead to a dead end.
func endsIn(c *state.Case, end verify.DeadEnd) error {
	how := "it could go on without an end"
	switch {
	case end.Deadlock && len(end.Left) == 0:
		how = "without a token nothing can happen"
	case end.Deadlock:
		how = fmt.Sprintf("with tokens in %s nothing can happen", strings.Join(end.Left, ", "))
	}
	if len(end.Run) > 0 {
		how = "after " + strings.Join(end.Run, ", ") + ", " + how
	}
	return fmt.Errorf("case %s of %s: %w: %s. Nothing was moved; to move all the same, force it", c.ID, c.Workflow, workflow.ErrDeadEnd, how)
}

// position is what a case can do next: its marking, and the tasks that are started.
type position struct {
	marking net.Marking
	busy    []net.TaskID
}

// positionOf returns the position of a case, which does not change with it.
func positionOf(c *state.Case) position {
	p := position{marking: c.Marking.Clone()}
	c.Busy().Each(func(t int) { p.busy = append(p.busy, net.TaskID(t)) })
	return p
}
