package kernel

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The repairs of a work item. Nothing is rewritten: what has ended keeps its state in the journal, and a new item
// replaces it. So the history shows the failure, who decided, and the result.
//
//	item is                               Retry                           Skip
//	live, waits for its next attempt      the attempt is due now          completed with the output
//	not started; another policy is given  likewise, with that policy        -
//	live, its job was given up            failed; a fresh one             completed with the output
//	failed, its case continues             a fresh one                     a fresh one, which completes
//	failed or canceled with its case      the case is resumed, with one   the same; the fresh one completes
//	replaced already, or completed        refused (ErrNotFailed)          refused

// NoteReason records in the journal why the actor sent a command to a case. It does nothing for a nil reason.
func (m *Machine) NoteReason(id workitem.CaseID, reason *workitem.Failure) error {
	if reason == nil || m.tree.Case(id) == nil {
		return nil
	}
	return m.note(id, -1, state.NoteReason, reason.String())
}

// Repairs is what a person does to a case that does not continue as it should: a retry or a skip of a work item, a resume of a case, a
// move of tokens, a decision about an incident, a suspension. The life cycles of cases, activations and items know nothing of repairs.
type Repairs struct {
	*record
	agenda      *agenda
	joins       *joins
	keys        *keys
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	incidents   *incidents
	recorded    *recordedSteps
	items       *items
	routes      *routes
	activations *activations
	cases       *cases
}

// Retry retries the work of an item now. An item that waits for its next attempt gets it at once. An item that failed,
// or whose job was given up, is replaced by a new one, with another input if one is given; if its case failed, the case
// is resumed. It returns the item that is tried. Changes of the retry policy, if given, are for that item and its retries,
// whose attempts count anew.
//
// The error wraps [workflow.ErrNotFailed] if the item did not fail and waits for nothing, and [workflow.ErrBadCommand] if the
// changed policy is invalid.
func (rp *Repairs) Retry(id workitem.ID, input json.RawMessage, policy *retry.Changes) (workitem.ID, error) {
	c, it := rp.tree.Item(id)
	if it == nil {
		return id, fmt.Errorf("work item %s: %w", id, ErrNotFound)
	}
	if it.State.Live() && len(input) == 0 {
		waits := rp.bringForward(c, it)
		if policy != nil && it.State == workitem.Initialized {
			if err := rp.changeRetry(c, it, policy); err != nil {
				return id, err
			}
			waits = true
		}
		if waits {
			return id, rp.agenda.run(0)
		}
	}
	return rp.replace(c, it, &resumption{item: id, input: input, policy: policy})
}

// changeRetry gives an item that was not started the changed policy. Its own attempt has not been made, and counts.
func (rp *Repairs) changeRetry(c *state.Case, it *workitem.Item, policy *retry.Changes) error {
	own, err := rp.retryOf(c, it, policy, it.Attempt-1)
	if err != nil {
		return err
	}
	e := &state.RetryChanged{Case: c.ID, Item: it.ID}
	if e.Retry, err = own.Encode(); err != nil {
		return err
	}
	return rp.emit(e)
}

// retryOf returns the retry policy of an item after a repair: the changes are made to those of earlier repairs, and the attempts
// before do not count. It checks the result with the policy of the task, as far as that is known without calling its activities.
func (rp *Repairs) retryOf(c *state.Case, it *workitem.Item, policy *retry.Changes, before int) (*activities.ItemRetry, error) {
	earlier, err := activities.RetryOfItem(it)
	if err != nil {
		return nil, err
	}
	own := &activities.ItemRetry{Changes: *policy, Before: before}
	if earlier != nil {
		own.Changes = earlier.Then(*policy)
	}
	t, _ := c.Net.TaskByName(it.Task)
	spec, err := rp.definitions.task(c, t)
	if err != nil {
		return nil, err
	}
	task, err := workflow.RetryOf(rp.callbacks.info(c), spec.Retry)
	if err != nil {
		return nil, err
	}
	if err := activities.Refused(activities.Retry(own.Of(task))); err != nil {
		return nil, fmt.Errorf("%w: work item %s (%s/%s) cannot have this retry policy: %w", workflow.ErrBadCommand, it.ID, c.Workflow,
			it.Label(), err)
	}
	return own, nil
}

// bringForward makes an item due now that waits for its time, and reports whether it waited.
func (rp *Repairs) bringForward(c *state.Case, it *workitem.Item) bool {
	for _, j := range c.Jobs.Of(it.ID) {
		if j.State != state.JobPending || !j.Due.After(rp.now) || j.Kind != state.JobRun && j.Kind != state.JobWake {
			continue
		}
		rp.agenda.push(func() error { return rp.jobs.move(c.ID, j, func(e *state.JobMoved) { e.Due = rp.now }) })
		return true
	}
	return false
}

// replace opens a new item for one that failed, or whose job was given up; in the second case the old item fails.
func (rp *Repairs) replace(c *state.Case, it *workitem.Item, r *resumption) (workitem.ID, error) {
	t, _ := c.Net.TaskByName(it.Task)
	failed := it.State == workitem.Failed || isLost(it.Failure) ||
		it.State.Final() && slices.ContainsFunc(c.Jobs.Of(it.ID), isIncident)
	abandoned, err := rp.givenUp(c, it)
	switch {
	case err != nil:
		return it.ID, err
	case abandoned:
		f := abandonment(c, it.ID)
		if err := rp.emit(&state.ItemMoved{Case: c.ID, Item: it.ID, Action: workitem.Fail, To: workitem.Failed, Failure: f, By: rp.by,
			At: rp.now}); err != nil {
			return it.ID, err
		}
		// The incident is resolved below, when the item has its successor.
		others := slices.DeleteFunc(c.Jobs.Of(it.ID), isIncident)
		if err := rp.jobs.cancel(c.ID, others); err != nil {
			return it.ID, err
		}
	case !failed:
		return it.ID, fmt.Errorf("work item %s (%s/%s) cannot be retried: it %w; it is %s", it.ID, c.Workflow, it.Label(),
			workflow.ErrNotFailed, it.State)
	case !it.Successor.IsZero():
		return it.ID, fmt.Errorf("work item %s (%s/%s) cannot be retried: it %w for good: item %s has replaced it", it.ID, c.Workflow,
			it.Label(), workflow.ErrNotFailed, it.Successor)
	case c.State.Final():
		if _, err := rp.resume(c.ID, r); err != nil {
			return it.ID, err
		}
		return successor(rp.tree, it.ID)
	}
	if err := rp.succeed(c.ID, t, rp.tree.Case(c.ID).Item(it.ID), r); err != nil {
		return it.ID, err
	}
	if err := rp.incidents.resolve(c.ID, func(j *state.Job) bool { return j.Item == it.ID }); err != nil {
		return it.ID, err
	}
	rp.agenda.push(rp.agenda.release)
	if err := rp.agenda.run(0); err != nil {
		return it.ID, err
	}
	return successor(rp.tree, it.ID)
}

// abandonment is the failure of an item whose job was given up: the incident has the cause, its code, and its details. A database
// of an early version may have no incident.
func abandonment(c *state.Case, id workitem.ID) *workitem.Failure {
	f := &workitem.Failure{Code: workitem.CodeError, Message: "its job was given up"}
	for _, j := range c.Jobs.Of(id) {
		if !isIncident(j) || j.Failure == nil {
			continue
		}
		if f.Code, f.Details = j.Failure.Code, j.Failure.Details; j.Failure.Message != "" {
			f.Message += ": " + j.Failure.Message
		}
	}
	return f
}

// givenUp reports whether a live item is the work of a function and has no live job: that was given up. The job of an item that has not
// started is given up if a callback refuses each start; the incident tells such an item from one that is due later.
func (rp *Repairs) givenUp(c *state.Case, it *workitem.Item) (bool, error) {
	if !it.State.Live() || it.State != workitem.Started && !slices.ContainsFunc(c.Jobs.Of(it.ID), isIncident) {
		return false, nil
	}
	t, _ := c.Net.TaskByName(it.Task)
	spec, err := rp.definitions.task(c, t)
	if err != nil || !spec.HasWorker() {
		return false, err
	}
	return !slices.ContainsFunc(c.Jobs.Of(it.ID), func(j *state.Job) bool { return j.Kind == state.JobRun }), nil
}

// successor returns the item that has replaced another one.
func successor(tree *state.Tree, id workitem.ID) (workitem.ID, error) {
	_, it := tree.Item(id)
	if it == nil || it.Successor.IsZero() {
		return id, fmt.Errorf("work item %s cannot be tried again: it %w by itself: its task had not started when its case failed, and is "+
			"enabled anew when the case is resumed, with fresh items. Resume the case", id, workflow.ErrNotFailed)
	}
	return it.Successor, nil
}

// Skip completes an item with an output as if its work had returned it: a live one, or one that failed, which is
// replaced by a new one first. An item that was not started is started without its callback. It returns the completed
// item.
func (rp *Repairs) Skip(id workitem.ID, output json.RawMessage, route []string) (workitem.ID, error) {
	c, it := rp.tree.Item(id)
	if it == nil {
		return id, fmt.Errorf("work item %s: %w", id, ErrNotFound)
	}
	if it.State.Final() {
		var err error
		if id, err = rp.replace(c, it, &resumption{item: id}); err != nil {
			return id, err
		}
		c, it = rp.tree.Item(id)
	}
	if !it.State.Live() {
		return id, nil // an automatic item, which has completed by itself
	}
	t, _ := c.Net.TaskByName(it.Task)
	// The route is for the split of this task alone, if this item is what completes it.
	if route != nil {
		rp.routes.choice = &choice{at: c.ID, t: t, to: route}
	}
	complete := rp.items.requestedAct(c.ID, id, move{do: workitem.Complete, payload: output})
	if it.State == workitem.Started {
		rp.agenda.push(complete)
	} else {
		rp.agenda.push(rp.items.act(c.ID, id, move{do: workitem.Start, calls: hooksOnly}), complete)
	}
	return id, rp.agenda.run(0)
}
