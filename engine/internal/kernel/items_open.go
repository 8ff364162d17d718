package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// open creates a work item with its jobs, and calls the initialize action and the item's onInitialized at once,
// instead of by the agenda: the callback that asked for the item gets it complete, and an error of these callbacks.
//
// An automatic item is started by a recorded request, as if a callback had made it. So all items of an activation exist
// before the first of them starts, and the policy cannot complete the task with the first.
func (is *items) open(id workitem.CaseID, t net.TaskID, generation int, n activities.NewItem) (*workitem.Item, error) {
	c := is.tree.Case(id)
	if err := mustBeActive(c, t, generation); err != nil {
		return nil, err
	}
	spec, err := is.definitions.task(c, t)
	if err != nil {
		return nil, err
	}
	if n.After < 0 {
		return nil, fmt.Errorf("a work item of task %s cannot be due %s ago: give zero or more", c.Net.TaskName(t), -n.After)
	}
	if err := errors.Join(workflow.CheckName("queue of the item", n.Queue), workflow.CheckPriority(n.Priority)); err != nil {
		return nil, fmt.Errorf("a work item of task %s: %w", c.Net.TaskName(t), err)
	}
	it := is.newItem(c, t, generation, spec, n)
	if n.Retry != nil {
		if it.Retry, err = n.Retry.Encode(); err != nil {
			return nil, err
		}
	}
	if spec.HasWorker() && n.Queue == "" {
		if it.Queue, err = queueOf(c, it.Queue); err != nil {
			return nil, err
		}
	}
	if it.Input = n.Input; !is.isAccepted(c, spec, n.Input) {
		it.Input, err = is.callbacks.acceptItem(spec, workitem.Initialize, n.Input)
	}
	if err != nil {
		return nil, fmt.Errorf("initialize work item %s/%s: %w", c.Workflow, it.Label(), err)
	}
	if err := is.emit(&state.ItemOpened{Item: it}); err != nil {
		return nil, err
	}
	if err := is.openJobs(c.ID, spec, it); err != nil {
		return nil, err
	}
	if n.KeepSteps && n.Predecessor != nil && spec.HasWorker() {
		if err := is.recorded.keep(c.ID, it, n.Predecessor); err != nil {
			return nil, err
		}
	}
	if len(is.recorded.copied) > 0 && spec.HasWorker() {
		if err := is.recorded.takeOver(c.ID, it); err != nil {
			return nil, err
		}
	}
	if err := is.callInitialized(c, t, spec, it); err != nil {
		return nil, err
	}
	if spec.Auto {
		is.agenda.request(is.requestedAct(id, it.ID, move{do: workitem.Start}))
	}
	return it, nil
}

// isAccepted reports whether an item's input is the same bytes as the input of its case, which the definition has
// accepted in this command as a value of the same type. Then it need not be decoded again. A case that an older program
// has started is checked by the present rules.
// The comparison of addresses is enough: the input of a task that passes on the input of the case is the same slice.
// The same bytes at another address are decoded once more, which only takes longer.
func (is *items) isAccepted(c *state.Case, spec *workflow.Task, input json.RawMessage) bool {
	if is.opened == nil || is.opened.ID != c.ID || !spec.AcceptIsPlain || len(input) == 0 || len(input) != len(c.Input) || &input[0] != &c.Input[0] {
		return false
	}
	d := is.definitions.host.Definition(c.Fingerprint)
	return d != nil && d.AcceptIsPlain && d.InputType != nil && d.InputType == spec.InputType
}

// callInitialized runs the initialize action of a new item, and then its onInitialized.
func (is *items) callInitialized(c *state.Case, t net.TaskID, spec *workflow.Task, it *workitem.Item) error {
	if err := is.runAction(c, t, spec, it, workitem.Initialize, it.Input); err != nil {
		return err
	}
	if hook := spec.ItemHooks.OnInitialized; hook != nil {
		return is.callbacks.callItem(c, t, it, "item onInitialized", hook)
	}
	return nil
}

// runAction runs the task's callback for an action on an item, if it has one.
func (is *items) runAction(
	c *state.Case, t net.TaskID, spec *workflow.Task, it *workitem.Item, a workitem.Action, payload json.RawMessage,
) error {
	action := spec.Actions[a]
	if action == nil {
		return nil
	}
	return is.callbacks.callItem(c, t, it, a.String(), func(ctx context.Context, s *activities.Item) error {
		return action(ctx, s, payload)
	})
}

// newItem returns a new work item. What its activity does not set comes from the task, and a priority that neither sets
// from the case, so that the items of an urgent case are urgent. An item that replaces another one is its next attempt,
// from which the backoff is computed.
// The number continues over the items of the activation that have ended, so a label such as a.1.2 means one item of a
// case for good.
// For the task a, which is retried once in its first activation, and enabled again by a loop:
//
//	a.1.1   attempt 1   fails
//	a.1.2   attempt 2   its predecessor is a.1.1; the number counts on
//	a.2.1   attempt 1   the next activation begins with number 1
func (is *items) newItem(
	c *state.Case, t net.TaskID, generation int, spec *workflow.Task, n activities.NewItem,
) *workitem.Item {
	it := &workitem.Item{
		ID: is.ids.NewID(is.now), Case: c.ID, Task: c.Net.TaskName(t), Generation: generation,
		Number: c.Tasks[t].Created + 1, State: workitem.Initialized, Attempt: 1,
		Queue: spec.Queue, Priority: spec.Priority, Created: is.now,
	}
	if it.Priority == 0 {
		it.Priority = c.Priority
	}
	if n.Queue != "" {
		it.Queue = n.Queue
	}
	if n.Priority != 0 {
		it.Priority = n.Priority
	}
	if n.After > 0 {
		it.Due = is.now.Add(n.After)
	}
	if n.Predecessor != nil {
		it.Attempt, it.Predecessor, it.Retry = n.Predecessor.Attempt+1, n.Predecessor.ID, n.Predecessor.Retry
	}
	return it
}

// openJobs opens the jobs of an item: its run, or the end of its wait, and its timers. The timers count from the
// time at which the item is due, since a backoff must not use up the time that the work has:
//
//	now           due = now + backoff         due + timeout
//	├─────────────┼───────────────────────────┤
//	item opened   run: a worker may claim it  timer: the item fails
//
// An item for a person has no run. If it has to wait, a wake job marks the time from which a person may work on it, and
// at which watchers are notified.
func (is *items) openJobs(id workitem.CaseID, spec *workflow.Task, it *workitem.Item) error {
	due := it.Created
	if !it.Due.IsZero() {
		due = it.Due
	}
	switch {
	case spec.HasWorker():
		if err := is.jobs.openOf(id, &state.Job{Kind: state.JobRun, Due: due, Queue: it.Queue, Priority: it.Priority}, it); err != nil {
			return err
		}
	case due.After(is.now):
		if err := is.jobs.openOf(id, &state.Job{Kind: state.JobWake, Due: due}, it); err != nil {
			return err
		}
	}
	for i := range spec.Timers {
		if timer := &spec.Timers[i]; timer.Item != nil {
			job := &state.Job{Kind: state.JobTimer, Name: timer.Name, Due: due.Add(timer.After)}
			if err := is.jobs.openOf(id, job, it); err != nil {
				return err
			}
		}
	}
	return nil
}

// itemPlace says where an item is, as callbacks see it.
// The item of a place may have ended when the callback uses it, so each effect checks it: see mustBeActive and
// openCall.
func itemPlace(it *workitem.Item) activities.Place {
	return activities.Place{Case: it.Case, Task: it.Task, Generation: it.Generation, Item: it.ID}
}
