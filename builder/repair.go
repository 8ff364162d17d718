package builder

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Suspend suspends the run until it is resumed: jobs that run may finish, and no further work starts. The error
// wraps activities.ErrInactive if the run has ended.
func (r Run[Out]) Suspend(ctx context.Context, e workflow.Doer, opts ...workflow.Option) error {
	if _, err := r.do(ctx, e, workflow.Suspend(r.ID), opts); err != nil {
		return fmt.Errorf("suspend %s: %w", r, err)
	}
	return nil
}

// Resume continues a run. A suspended run starts its due work again. A failed run gets a new item, which is the next attempt and takes over
// the completed steps. The error wraps workflow.ErrNotFailed if the run is neither suspended nor failed. To start over as a new run use
// [Run.Restart].
func (r Run[Out]) Resume(ctx context.Context, e workflow.Doer, opts ...workflow.Option) error {
	if _, err := r.do(ctx, e, workflow.Resume(r.ID, nil), opts); err != nil {
		return fmt.Errorf("resume %s: %w", r, err)
	}
	return nil
}

// Retry retries the work of an item now, with the same input. An item that waits for its next attempt starts it at once; a failed
// item is replaced by a new one, and a case that failed with it is resumed. The error wraps workflow.ErrNotFailed if there is
// nothing to retry.
func (t *TaskRef[In, Out]) Retry(ctx context.Context, e workflow.Doer, item workitem.ID, opts ...workflow.Option) error {
	return t.act(ctx, e, workflow.Retry(item, nil), opts)
}

// RetryWith is like [TaskRef.Retry], with another input. The error wraps a *domain.InvalidError if the input is invalid.
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

// Skip completes an item with this output, as if its work had returned it. The item is live, or has failed; a case that
// failed with it is resumed.
func (t *TaskRef[In, Out]) Skip(
	ctx context.Context, e workflow.Doer, item workitem.ID, out Out, opts ...workflow.Option,
) error {
	payload, err := encode(out)
	if err != nil {
		return fmt.Errorf("skip work item %s of %s: %w", item, t.Name(), err)
	}
	return t.act(ctx, e, workflow.Skip(item, payload), opts)
}
