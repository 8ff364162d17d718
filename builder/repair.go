package builder

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Suspend has nothing of the run begin until it is resumed: what runs may end, what is due waits. The error wraps
// activities.ErrInactive if the run has ended.
func (r Run[Out]) Suspend(ctx context.Context, e workflow.Doer, opts ...workflow.Option) error {
	if _, err := r.do(ctx, e, workflow.Suspend(r.ID), opts); err != nil {
		return fmt.Errorf("suspend %s: %w", r, err)
	}
	return nil
}

// Resume has the run go on: one that is suspended begins again what is due; in one that has failed a fresh item, which is the next attempt, takes over the steps that
// were done. The error wraps workflow.ErrNotFailed if the run is not suspended and has not failed. To begin again as a fresh run see [Run.Restart].
func (r Run[Out]) Resume(ctx context.Context, e workflow.Doer, opts ...workflow.Option) error {
	if _, err := r.do(ctx, e, workflow.Resume(r.ID, nil), opts); err != nil {
		return fmt.Errorf("resume %s: %w", r, err)
	}
	return nil
}

// Retry has the work of an item tried again, now, with the input that it had: one that waits for its next attempt has it at once,
// and one that failed is replaced by a fresh one. A case that it failed goes on. The error wraps workflow.ErrNotFailed if there is
// nothing to try again.
func (t *TaskRef[In, Out]) Retry(ctx context.Context, e workflow.Doer, item workitem.ID, opts ...workflow.Option) error {
	return t.act(ctx, e, workflow.Retry(item, nil), opts)
}

// RetryWith is like [TaskRef.Retry], with another input. The error wraps a *domain.InvalidError if the input breaks its own rules.
func (t *TaskRef[In, Out]) RetryWith(
	ctx context.Context, e workflow.Doer, item workitem.ID, in In, opts ...workflow.Option,
) error {
	payload, err := encode(in)
	if err != nil {
		return fmt.Errorf("retry work item %s of %s: %w", item, t.Name(), err)
	}
	return t.act(ctx, e, workflow.Retry(item, payload), opts)
}

// GiveUp fails the task of an item that is an incident (see workitem.Incident), and its case with it.
func (t *TaskRef[In, Out]) GiveUp(ctx context.Context, e workflow.Doer, item workitem.ID, opts ...workflow.Option) error {
	return t.act(ctx, e, workflow.GiveUp(item), opts)
}

// Skip completes an item with an output as if its work had given it: a live one, or one that failed, whose case goes on then.
func (t *TaskRef[In, Out]) Skip(
	ctx context.Context, e workflow.Doer, item workitem.ID, out Out, opts ...workflow.Option,
) error {
	payload, err := encode(out)
	if err != nil {
		return fmt.Errorf("skip work item %s of %s: %w", item, t.Name(), err)
	}
	return t.act(ctx, e, workflow.Skip(item, payload), opts)
}
