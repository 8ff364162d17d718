package kernel

import (
	"context"
	"encoding/json"
	"errors"

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

// callbacks runs the code of the user in the transaction of a command: the hooks and actions of a definition, and what
// decodes, routes and decides. It says what that code sees, and who has control meanwhile.
type callbacks struct {
	*record
	effects activities.Effects // what callbacks can do
	host    Host
	ctx     context.Context  // of the command; of the callback, within one that calls the engine
	cause   activities.Cause // why the command runs, for callbacks
	lent    bool             // a callback was called, which may keep the effects
}

// prepare prepares for the callbacks of a command.
func (b *callbacks) prepare(ctx context.Context, host Host) {
	b.ctx, b.host, b.cause, b.lent = ctx, host, activities.CauseCaller, false
}

// call runs a callback. Its error names the callback and the place where its task was declared.
//
// The callback has control during the call (see [Control]). An abandoned callback may still run when call returns: control is
// revoked then, so that it cannot touch a tree that another command works on.
func (b *callbacks) call(c *state.Case, t net.TaskID, what string, f func(context.Context) error) error {
	b.lent = true
	control := b.host.Control()
	control.Give()
	err := b.host.Call(b.ctx, func(ctx context.Context) error {
		// A callback that creates an item or a child case comes back here; what it so calls runs within its own time.
		outer := b.ctx
		b.ctx = ctx
		defer func() { b.ctx = outer }()
		return f(ctx)
	})
	if errors.Is(err, ErrAbandoned) {
		control.Revoke()
	} else if in := control.Take(); in != nil {
		return in
	}
	return located(c, t, what, err)
}

// acceptItem is [Accept] during a command.
func (b *callbacks) acceptItem(spec *workflow.Task, a workitem.Action, payload json.RawMessage) (json.RawMessage, error) {
	return b.accept(spec.Accept == nil || spec.AcceptIsPlain, func() (json.RawMessage, error) { return Accept(spec, a, payload) })
}

// identity computes the business key and the labels of a new case from its input.
func (b *callbacks) identity(c *state.Case, d *workflow.Definition) (workflow.Identity, error) {
	if d.Identity == nil {
		return workflow.Identity{}, nil
	}
	var made workflow.Identity // an abandoned callback may still write to it, so it is read only without an error
	err := b.host.Call(b.ctx, func(context.Context) (err error) {
		made, err = d.Identity(c.Input)
		return err
	})
	if err != nil {
		return workflow.Identity{}, err
	}
	return made, nil
}

// accept decodes a payload with a definition. If that calls methods of the user's types, it runs as a callback.
func (b *callbacks) accept(plain bool, decode func() (json.RawMessage, error)) (accepted json.RawMessage, err error) {
	if plain {
		return decode()
	}
	var decoded json.RawMessage // a new variable, since an abandoned callback may still write to it
	err = b.host.Call(b.ctx, func(context.Context) (err error) {
		decoded, err = decode()
		return err
	})
	if err != nil {
		return nil, err
	}
	return decoded, nil
}

// lend returns what a callback can do. It may keep that, so the machine is not reused.
func (b *callbacks) lend() activities.Effects {
	b.lent = true
	return b.effects
}

// activation is what the hooks of a task see: the task, the time of the command, the case, and the number of items by
// state.
func (b *callbacks) activation(c *state.Case, t net.TaskID, generation int) *activities.Activation {
	place := activities.Place{Case: c.ID, Task: c.Net.TaskName(t), Generation: generation}
	return activities.NewActivation(b.lend(), place, b.now, b.info(c), tallyOf(b.tree, c, t, generation))
}

// taskHook returns the step that calls a hook of an activation; nil if there is none. The argument of the hook is made
// when the step runs, so its tally includes what earlier hooks have opened.
func (b *callbacks) taskHook(
	id workitem.CaseID, t net.TaskID, generation int, what string,
	hook func(context.Context, *activities.Activation) error,
) step {
	if hook == nil {
		return nil
	}
	return func() error {
		c := b.tree.Case(id)
		a := b.activation(c, t, generation)
		return b.call(c, t, what, func(ctx context.Context) error { return hook(ctx, a) })
	}
}

// changeHook returns the step that notifies a task of the change of an item or a child case. The details are filled in
// when it runs, from the tree at that time, in which the item has its output or failure. An item to which a repair gave a retry
// policy is retried also if its task has none.
func (b *callbacks) changeHook(
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
		c := b.tree.Case(id)
		change := activities.NewChange(b.activation(c, t, generation), spec.Function)
		fill(change)
		return b.call(c, t, "onWorkItemStateChanged", func(ctx context.Context) error { return hook(ctx, change) })
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
func (b *callbacks) itemHook(
	id workitem.CaseID, t net.TaskID, item workitem.ID, a workitem.Action, spec *workflow.Task,
) step {
	what, hook := hookOf(&spec.ItemHooks, a)
	if hook == nil {
		return nil
	}
	return func() error {
		c := b.tree.Case(id)
		return b.callItem(c, t, c.Item(item), what, hook)
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
func (b *callbacks) callItem(
	c *state.Case, t net.TaskID, it *workitem.Item, what string, f func(context.Context, *activities.Item) error,
) error {
	s := activities.NewItemScope(b.lend(), itemPlace(it), b.now, b.info(c), it)
	return b.call(c, t, what, func(ctx context.Context) error { return f(ctx, s) })
}

// caseHook returns the step that calls a hook of a case; nil if there is none.
func (b *callbacks) caseHook(id workitem.CaseID, what string, hook func(context.Context, *activities.Case) error) step {
	if hook == nil {
		return nil
	}
	return func() error {
		c := b.tree.Case(id)
		s := b.caseScope(c)
		return b.call(c, -1, what, func(ctx context.Context) error { return hook(ctx, s) })
	}
}

// caseScope is what the hooks of a case see.
func (b *callbacks) caseScope(c *state.Case) *activities.Case {
	return activities.NewCaseScope(b.lend(), activities.Place{Case: c.ID}, b.now, b.info(c))
}
