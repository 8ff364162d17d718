package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// StartCase implements [builder.Runtime]; workflows call it. Use it directly to start a workflow by an untyped input.
func (e *Engine) StartCase(
	ctx context.Context, d *workflow.Definition, input json.RawMessage, call builder.Call,
) (workitem.CaseID, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (workitem.CaseID, error) {
		return tx.StartCase(tx.ctx, d, input, call)
	})
}

// Start starts a case of a workflow by its name.
func (e *Engine) Start(ctx context.Context, workflow string, input json.RawMessage, opts ...builder.CallOption) (
	workitem.CaseID, error,
) {
	d := e.byName[workflow]
	if d == nil {
		return workitem.CaseID{}, e.unknown(workflow)
	}
	return e.StartCase(ctx, d, input, builder.CallWith(opts...))
}

func (e *Engine) unknown(workflow string) error {
	return fmt.Errorf("%w: %q; the engine was opened with %s", ErrUnknown, workflow, e.names())
}

func (e *Engine) names() string {
	if len(e.byName) == 0 {
		return "none"
	}
	names := make(map[string]bool, len(e.byName))
	for name := range e.byName {
		names[name] = true
	}
	return fmt.Sprint(sorted(names))
}

// Act implements [builder.Runtime]; tasks call it.
func (e *Engine) Act(
	ctx context.Context, d *workflow.Definition, task string, item workitem.ID, a workitem.Action, payload json.RawMessage,
	call builder.Call,
) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error {
		return tx.Act(tx.ctx, d, task, item, a, payload, call)
	}})
}

// Do does an action on a work item by its id, with an untyped payload: the output of a completion, a [workitem.Failure] for
// a failure or a cancellation. The payload may be nil where the task asks for none.
func (e *Engine) Do(
	ctx context.Context, item workitem.ID, a workitem.Action, payload json.RawMessage, opts ...builder.CallOption,
) error {
	return e.Act(ctx, nil, "", item, a, payload, builder.CallWith(opts...))
}

// NewItem creates one more work item in an enabled or started task of a case. The error wraps [ErrInactive] if the task is
// neither, and [ErrNotFound] if the case has no task of that name that has work items: a composite or routing task has
// none.
func (e *Engine) NewItem(
	ctx context.Context, id workitem.CaseID, task string, n activities.NewItem, opts ...builder.CallOption,
) (*workitem.Item, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (*workitem.Item, error) {
		return tx.NewItem(tx.ctx, id, task, n, opts...)
	})
}

// Cancel cancels a case with all that it owns. The reason may be nil. The error wraps [ErrInactive] if the case has ended.
func (e *Engine) Cancel(
	ctx context.Context, id workitem.CaseID, reason *workitem.Failure, opts ...builder.CallOption,
) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error {
		return tx.CancelCase(tx.ctx, id, reason, builder.CallWith(opts...))
	}})
}
