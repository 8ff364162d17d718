package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Act does an action on a work item. An action that the state of the item does not allow is refused before anything happens: the
// caller decided by what it saw, and has to look again. The route, if not nil, is where the task's split goes if the action completes the
// task.
func (m *Machine) Act(id workitem.ID, a workitem.Action, payload json.RawMessage, route []string) error {
	c, it := m.tree.Item(id)
	if it == nil {
		return fmt.Errorf("work item %s: %w", id, ErrNotFound)
	}
	t, _ := c.Net.TaskByName(it.Task)
	if _, ok := workitem.Next(it.State, a); !ok {
		return &workitem.TransitionError{Item: id, Label: c.Workflow + "/" + it.Label(), From: it.State, Action: a}
	}
	if a == workitem.Start {
		if err := m.mayBegin(c, "work item "+it.Label()); err != nil {
			return err
		}
	}
	if route != nil {
		m.choice = &choice{at: c.ID, t: t, to: route}
	}
	m.then(m.act(c.ID, id, move{do: a, payload: payload}))
	return m.run(0)
}

// A caller and a callback that ask for the same action are treated differently when the item has moved on in between. The caller
// gets a *workitem.TransitionError, since it decided by what it saw. What a callback asks for is done after other callbacks have
// answered, and is dropped if it no longer applies (see askedAct).

// OpenItem creates one more work item in an active task. A composite or routing task has none, whatever its state: the
// error wraps [ErrNotFound], as for a name that is no task at all.
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
	it, err := m.openItem(c.ID, t, c.Tasks[t].Generation, n)
	if err != nil {
		return nil, err
	}
	m.then(m.releaseRequested)
	return it, m.run(0)
}

// noItems refuses to add a work item to a task that has none by its kind.
func noItems(c *state.Case, task string) error {
	return fmt.Errorf("work items of task %q of workflow %s, which is a composite or routing task: %w", task, c.Workflow,
		ErrNotFound)
}

// Cancel cancels a case. Canceling a child case is judged by its parent's policy, as any end of it would be: to the parent it
// is an outcome like another, whereas a child that is canceled because its parent ends is not asked about.
func (m *Machine) Cancel(id workitem.CaseID, reason *workitem.Failure) error {
	c := m.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State.Final() {
		return fmt.Errorf("case %s %w: it is %s", id, activities.ErrInactive, c.State)
	}
	m.then(m.endCase(id, state.CaseCanceled, reason, false))
	return m.run(0)
}
