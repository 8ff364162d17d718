package kernel

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The callbacks of a change, in their order. Each is a step of the agenda, so it sees the tree as it is at that time:
//
//	action's callback   Work.Start, Complete, Fail ...   before the change; it may refuse it
//	itemHook            ItemHooks, of the work item      after the change
//	changeHook          OnWorkItemStateChanged           after the item's own hook; it may open a fresh item
//	taskHook            TaskHooks, of the activation     as the task is enabled, started, completed, failed, canceled
//	caseHook            CaseHooks                        as the case is opened, begins, and has ended
//
// They get the effects of this command only (see effects).

// activation is what the hooks of a task see: the task, the time of the command, the case, and the number of items by
// state.
func (m *Machine) activation(c *state.Case, t net.TaskID, generation int) *activities.Activation {
	place := activities.Place{Case: c.ID, Task: c.Net.TaskName(t), Generation: generation}
	return activities.NewActivation(m.effects(), place, m.now, m.info(c), m.tally(c, t, generation))
}

// taskHook returns the step that calls a hook of an activation; nil if there is none. The argument of the hook is made
// when the step runs, so its tally includes what earlier hooks have opened.
func (m *Machine) taskHook(
	id workitem.CaseID, t net.TaskID, generation int, what string,
	hook func(context.Context, *activities.Activation) error,
) step {
	if hook == nil {
		return nil
	}
	return func() error {
		c := m.tree.Case(id)
		a := m.activation(c, t, generation)
		return m.call(c, t, what, func(ctx context.Context) error { return hook(ctx, a) })
	}
}

// changeHook returns the step that notifies a task of the change of an item or a child case. The details are filled in
// when it runs, from the tree at that time, in which the item has its output or failure. An item to which a repair gave a retry
// policy is retried also if its task has none.
func (m *Machine) changeHook(
	id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task, repaired bool, fill func(*activities.Change),
) step {
	hook := spec.Hooks.OnWorkItemStateChanged
	if repaired {
		hook = thenAsRepaired(hook)
	}
	if hook == nil {
		return nil
	}
	return func() error {
		c := m.tree.Case(id)
		change := activities.NewChange(m.activation(c, t, generation), spec.Function)
		fill(change)
		return m.call(c, t, "onWorkItemStateChanged", func(ctx context.Context) error { return hook(ctx, change) })
	}
}

// thenAsRepaired calls the activities of a task, which may be nil, and then retries the item as its repair says.
func thenAsRepaired(hook func(context.Context, *activities.Change) error) func(context.Context, *activities.Change) error {
	return func(ctx context.Context, c *activities.Change) error {
		if hook != nil {
			if err := hook(ctx, c); err != nil {
				return err
			}
		}
		return activities.RetryAsRepaired(ctx, c)
	}
}

// itemHook returns the step that calls the hook of an item for an action; nil if there is none.
func (m *Machine) itemHook(
	id workitem.CaseID, t net.TaskID, item workitem.ID, a workitem.Action, spec *workflow.Task,
) step {
	what, hook := hookOf(&spec.ItemHooks, a)
	if hook == nil {
		return nil
	}
	return func() error {
		c := m.tree.Case(id)
		return m.callItem(c, t, c.Item(item), what, hook)
	}
}

// hookOf returns the hook for an action, and its name in errors.
func hookOf(h *activities.ItemHooks, a workitem.Action) (
	what string, hook func(context.Context, *activities.Item) error,
) {
	switch a {
	case workitem.Start:
		return "item onStarted", h.OnStarted
	case workitem.Complete:
		return "item onCompleted", h.OnCompleted
	case workitem.Fail:
		return "item onFailed", h.OnFailed
	case workitem.Cancel:
		return "item onCanceled", h.OnCanceled
	case workitem.Reset:
		return "item onReset", h.OnReset
	}
	return "", nil
}

// callItem runs a callback about a work item.
func (m *Machine) callItem(
	c *state.Case, t net.TaskID, it *workitem.Item, what string, f func(context.Context, *activities.Item) error,
) error {
	s := activities.NewItemScope(m.effects(), itemPlace(it), m.now, m.info(c), it)
	return m.call(c, t, what, func(ctx context.Context) error { return f(ctx, s) })
}

// caseHook returns the step that calls a hook of a case; nil if there is none.
func (m *Machine) caseHook(id workitem.CaseID, what string, hook func(context.Context, *activities.Case) error) step {
	if hook == nil {
		return nil
	}
	return func() error {
		c := m.tree.Case(id)
		s := m.caseScope(c)
		return m.call(c, -1, what, func(ctx context.Context) error { return hook(ctx, s) })
	}
}

// caseScope is what the hooks of a case see.
func (m *Machine) caseScope(c *state.Case) *activities.Case {
	return activities.NewCaseScope(m.effects(), activities.Place{Case: c.ID}, m.now, m.info(c))
}
