package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// ItemRetry is the retry policy that a repair gave a work item, as workitem.Item.Retry stores it: that of its task, with changes.
// Retries of the item take it over; later activations of the task do not. The attempts count anew from the repair on:
//
//	draft.1.1   attempt 1 of 2   fails
//	draft.1.2   attempt 2 of 2   fails for good; a person retries it with 5 attempts
//	draft.1.3   attempt 3        the policy's attempt 1 of 5, as Before is 2
//	draft.1.4   attempt 4        the policy's attempt 2 of 5
type ItemRetry struct {
	retry.Changes
	Before int `json:"before,omitempty"` // the attempts before the repair, which do not count
}

// RetryOfItem returns the retry policy that a repair gave an item; nil if it has that of its task.
func RetryOfItem(it *workitem.Item) (*ItemRetry, error) {
	if len(it.Retry) == 0 {
		return nil, nil
	}
	r := new(ItemRetry)
	if err := json.Unmarshal(it.Retry, r); err != nil {
		return nil, fmt.Errorf("the retry policy of work item %s cannot be read: %w", it.ID, err)
	}
	return r, nil
}

// Encode returns the stored form.
func (r *ItemRetry) Encode() (json.RawMessage, error) { return json.Marshal(r) }

// firstWait is the first wait of work whose task has no retry policy, unless the repair says another: that of a function.
const firstWait = 250 * time.Millisecond

// Of returns the policy of an item whose task has the given one. If the task has none, the waits begin at 250 ms and
// double.
func (r *ItemRetry) Of(task retry.Policy) retry.Policy {
	if r == nil {
		return task
	}
	if task.Attempts == 0 {
		task = retry.Exponential(1, firstWait)
	}
	return r.Changes.Of(task)
}

// Attempt returns the number of an item's attempt for its policy, from 1.
func (r *ItemRetry) Attempt(it *workitem.Item) int {
	if r == nil {
		return it.Attempt
	}
	return it.Attempt - r.Before
}

// RetryAsRepaired retries a failed item with the policy that a repair gave it, unless a ready-made activity, such as [Retry], has
// decided that already, or another activity has replaced the item. It is for the kernel, which calls it after the activities of the
// task, for tasks without a retry policy.
func RetryAsRepaired(ctx context.Context, c *Change) error {
	replaces := func(it *workitem.Item) bool { return it.Predecessor == c.Item.ID }
	if c.decided || c.Item == nil || slices.ContainsFunc(c.Items(), replaces) {
		return nil
	}
	return c.again(ctx, retry.Policy{}, (*Change).Resume)
}
