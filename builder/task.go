package builder

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// TaskRef is the handle of a task whose items have inputs of type In and outputs of type Out. Its methods that act on
// items require that the workflow is built. Their error wraps a *workitem.TransitionError if the item's state forbids
// the action, and workflow.ErrNotFound if the item belongs to another task.
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
func (t *TaskRef[In, Out]) Start(ctx context.Context, e workflow.Doer, item workitem.ID, opts ...workflow.Option) error {
	return t.act(ctx, e, workflow.Act(item, workitem.Start, nil), opts)
}

// Complete completes an item with its output. The error wraps a *domain.InvalidError if the output is invalid.
func (t *TaskRef[In, Out]) Complete(
	ctx context.Context, e workflow.Doer, item workitem.ID, out Out, opts ...workflow.Option,
) error {
	payload, err := encode(out)
	if err != nil {
		return fmt.Errorf("complete work item %s of %s: %w", item, t.Name(), err)
	}
	return t.act(ctx, e, workflow.Act(item, workitem.Complete, payload), opts)
}

// Fail fails an item. The failure may be nil.
func (t *TaskRef[In, Out]) Fail(
	ctx context.Context, e workflow.Doer, item workitem.ID, f *workitem.Failure, opts ...workflow.Option,
) error {
	return t.act(ctx, e, workflow.Fail(item, f), opts)
}

// Cancel cancels an item. The reason may be nil.
func (t *TaskRef[In, Out]) Cancel(
	ctx context.Context, e workflow.Doer, item workitem.ID, reason *workitem.Failure, opts ...workflow.Option,
) error {
	return t.act(ctx, e, workflow.CancelItem(item, reason), opts)
}

// Reset returns a started item to the state initialized, so that another person can start it.
func (t *TaskRef[In, Out]) Reset(ctx context.Context, e workflow.Doer, item workitem.ID, opts ...workflow.Option) error {
	return t.act(ctx, e, workflow.Act(item, workitem.Reset, nil), opts)
}

var (
	errNotBuilt = errors.New("its workflow is not built; call Build first")
	errNoEngine = errors.New("there is no engine; give the engine, or its transaction")
)

// act has an engine do a command on an item of the task.
func (t *TaskRef[In, Out]) act(ctx context.Context, e workflow.Doer, c workflow.Command, opts []workflow.Option) error {
	err := errNoEngine
	switch {
	case t.node() == nil || t.n.d.def == nil:
		err = errNotBuilt
	case e != nil:
		c.Workflow, c.Task = t.n.d.def.Name, t.n.name
		_, err := e.Do(ctx, workflow.With(c, opts...))
		return err
	}
	what := c.Action.String()
	if c.Kind != workflow.KindAct {
		what = string(c.Kind)
	}
	return fmt.Errorf("%s work item %s of %s: %w", what, c.Item, t.Name(), err)
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
