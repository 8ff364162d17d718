package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Act applies an action to a work item. If the state of the item does not allow the action, it fails before anything
// happens: the caller decided by what it saw, and has to look again. The route, if not nil, selects the outputs of the
// task's split if the action completes the task.
func (m *Machine) Act(id workitem.ID, a workitem.Action, payload json.RawMessage, route []string) error {
	c, it := m.tree.Item(id)
	if it == nil {
		return fmt.Errorf("work item %s: %w", id, ErrNotFound)
	}
	t, _ := c.Net.TaskByName(it.Task)
	if _, ok := workitem.Next(it.State, a); !ok {
		return &workitem.TransitionError{Item: id, Label: c.Workflow + "/" + it.Label(), From: it.State, Action: a}
	}
	// Nothing of a suspended case begins. What has begun may end, as its result would be lost otherwise.
	if a == workitem.Start {
		if err := mayBegin(m.tree, c, "work item "+it.Label()); err != nil {
			return err
		}
	}
	if route != nil {
		m.routes.choice = &choice{at: c.ID, t: t, to: route}
	}
	m.agenda.push(m.items.act(c.ID, id, move{do: a, payload: payload}))
	return m.agenda.run(0)
}

// A caller and a callback that request the same action are treated differently if the item has changed in between. The
// caller gets a *workitem.TransitionError, since it decided by an old state. The request of a callback is executed
// after the other callbacks, and is dropped if it no longer applies (see requestedAct).

// OpenItem creates another work item in an active task. A composite or routing task has no items: the error then wraps
// [ErrNotFound], as for an unknown name.
func (m *Machine) OpenItem(at workitem.CaseID, task string, n activities.NewItem) (*workitem.Item, error) {
	c := m.tree.Case(at)
	if c == nil {
		return nil, fmt.Errorf("case %s: %w", at, ErrNotFound)
	}
	t, ok := c.Net.TaskByName(task)
	if !ok {
		return nil, fmt.Errorf("task %q of workflow %s: %w", task, c.Workflow, ErrNotFound)
	}
	if c.Net.Task(t).Kind != net.Atomic {
		return nil, noItems(c, task)
	}
	it, err := m.items.open(c.ID, t, c.Tasks[t].Generation, n)
	if err != nil {
		return nil, err
	}
	// Callbacks of the new item may have requested actions. No change has moved it, behind whose hooks these would be
	// released.
	m.agenda.push(m.agenda.release)
	return it, m.agenda.run(0)
}

// noItems returns an error for a task whose kind has no work items.
func noItems(c *state.Case, task string) error {
	return fmt.Errorf("work items of task %q of workflow %s, which is a composite or routing task: %w", task, c.Workflow,
		ErrNotFound)
}

// Cancel cancels a case. The parent's policy decides what the cancellation of a child case means, as for any end of it.
// It is not asked about a child that is canceled because its parent ends.
func (m *Machine) Cancel(id workitem.CaseID, reason *workitem.Failure) error {
	c := m.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State.Final() {
		return fmt.Errorf("case %s %w: it is %s", id, activities.ErrInactive, c.State)
	}
	m.agenda.push(m.cases.endCase(id, state.CaseCanceled, reason, false))
	return m.agenda.run(0)
}
