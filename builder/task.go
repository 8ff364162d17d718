package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Runtime is what typed handles need of an engine.
type Runtime interface {
	// StartCase starts a root case of a workflow.
	StartCase(ctx context.Context, d *workflow.Definition, input json.RawMessage, c Call) (workitem.CaseID, error)
	// Act does an action on a work item of a task of a workflow, and refuses an item of another one.
	Act(
		ctx context.Context, d *workflow.Definition, task string, item workitem.ID, a workitem.Action,
		payload json.RawMessage, c Call,
	) error
}

// TaskRef is the handle of a task whose items take an In and give an Out. Its methods that act need the workflow to be
// built. What they return for an item that may not take the action, or that belongs to another task, is up to the
// [Runtime]; see package engine.
type TaskRef[In, Out any] struct{ n *node }

// Name is the task's name.
func (t *TaskRef[In, Out]) Name() string { return t.node().nameOf() }

func (t *TaskRef[In, Out]) node() *node {
	if t == nil {
		return nil
	}
	return t.n
}

func (t *TaskRef[In, Out]) member() (*draft, string) { return t.node().asMember() }

// Start starts an item.
func (t *TaskRef[In, Out]) Start(ctx context.Context, rt Runtime, item workitem.ID, opts ...CallOption) error {
	return t.act(ctx, rt, item, workitem.Start, nil, opts)
}

// Complete completes an item with its output. The error wraps a *domain.InvalidError if the output breaks its own
// rules.
func (t *TaskRef[In, Out]) Complete(
	ctx context.Context, rt Runtime, item workitem.ID, out Out, opts ...CallOption,
) error {
	payload, err := encode(out)
	if err != nil {
		return fmt.Errorf("complete work item %s of %s: %w", item, t.Name(), err)
	}
	return t.act(ctx, rt, item, workitem.Complete, payload, opts)
}

// Fail fails an item. The failure may be nil if there is nothing to say.
func (t *TaskRef[In, Out]) Fail(
	ctx context.Context, rt Runtime, item workitem.ID, f *workitem.Failure, opts ...CallOption,
) error {
	return t.actFailure(ctx, rt, item, workitem.Fail, f, opts)
}

// Cancel cancels an item. The reason may be nil.
func (t *TaskRef[In, Out]) Cancel(
	ctx context.Context, rt Runtime, item workitem.ID, reason *workitem.Failure, opts ...CallOption,
) error {
	return t.actFailure(ctx, rt, item, workitem.Cancel, reason, opts)
}

// Reset puts a started item back, so that somebody else can start it.
func (t *TaskRef[In, Out]) Reset(ctx context.Context, rt Runtime, item workitem.ID, opts ...CallOption) error {
	return t.act(ctx, rt, item, workitem.Reset, nil, opts)
}

func (t *TaskRef[In, Out]) actFailure(
	ctx context.Context, rt Runtime, item workitem.ID, a workitem.Action, f *workitem.Failure, opts []CallOption,
) error {
	if f == nil {
		return t.act(ctx, rt, item, a, nil, opts)
	}
	payload, err := encode(f)
	if err != nil {
		return fmt.Errorf("%s work item %s of %s: %w", a, item, t.Name(), err)
	}
	return t.act(ctx, rt, item, a, payload, opts)
}

var (
	errNotBuilt  = errors.New("its workflow is not built; call Build first")
	errNoRuntime = errors.New("there is no runtime; give the engine")
)

func (t *TaskRef[In, Out]) act(
	ctx context.Context, rt Runtime, item workitem.ID, a workitem.Action, payload json.RawMessage, opts []CallOption,
) error {
	err := errNoRuntime
	switch {
	case t.node() == nil || t.n.d.def == nil:
		err = errNotBuilt
	case rt != nil:
		return rt.Act(ctx, t.n.d.def, t.n.name, item, a, payload, CallWith(opts...))
	}
	return fmt.Errorf("%s work item %s of %s: %w", a, item, t.Name(), err)
}

// InputOf reads the input of one of the task's items.
func (t *TaskRef[In, Out]) InputOf(it *workitem.Item) (In, error) {
	var none In
	if err := t.mine(it, "input"); err != nil {
		return none, err
	}
	return restore[In](it.Input)
}

// OutputOf reads the output of one of the task's items. It is an error if the item has not completed.
func (t *TaskRef[In, Out]) OutputOf(it *workitem.Item) (Out, error) {
	var none Out
	if err := t.mine(it, "output"); err != nil {
		return none, err
	}
	if it.State != workitem.Completed {
		return none, fmt.Errorf("output of work item %s: it is %s, and only a completed one has an output",
			it.Label(), it.State)
	}
	return restore[Out](it.Output)
}

func (t *TaskRef[In, Out]) mine(it *workitem.Item, what string) error {
	switch {
	case it == nil:
		return fmt.Errorf("%s of a work item of %s: there is no item", what, t.Name())
	case it.Task != t.Name():
		return fmt.Errorf("%s of work item %s: it belongs to task %s, and not to %s", what, it.Label(), it.Task, t.Name())
	}
	return nil
}
