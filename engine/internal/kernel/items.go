package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// items is the life cycle of work items: it opens them with their jobs, moves them with the callbacks of each action, and cancels them.
type items struct {
	*record
	agenda      *agenda
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	recorded    *recordedSteps
	activations itemOwner
}

// itemOwner is the activation of an item: it starts with its first item, and its policy judges the end of each.
type itemOwner interface {
	ensureStarted(id workitem.CaseID, t net.TaskID, generation int) step
	judge(id workitem.CaseID, t net.TaskID, generation int, o workitem.Outcome, failure *workitem.Failure) step
}

// move is a change of state of an item.
type move struct {
	do       workitem.Action
	payload  json.RawMessage
	accepted bool              // the payload is as Accept returned it
	reason   *workitem.Failure // of a teardown, which has no payload; else nil
	calls    calls
}

// calls selects the callbacks that a change of an item calls. Each value leaves out one more: a timer that must end an
// item whose callbacks return errors goes down the list until the item ends (see [ForcedEnd]).
type calls int

const (
	allCallbacks calls = iota
	hooksOnly          // without the action's callback
	taskHookOnly       // also without the item's hook: only its task's OnWorkItemStateChanged
	noCallbacks        // without any
)

// A worked case: the work of an item fails, and its task answers by opening a second attempt. The agenda does, in this
// order:
//
//	Work.Fail                         may refuse the failure
//	item a.1.1 failed                 its jobs are canceled
//	ItemHooks.OnFailed
//	OnWorkItemStateChanged            opens a.1.2 instead of a.1.1, at once: initialized, its job due after the backoff
//	judgeItem(a.1.1)                  a.1.1 has a successor, so it does not count; a.1.2 is live: the task continues
//
// Had the policy judged before the hook, the task would have failed before the second attempt was there.

// requestedAct executes an action that a callback requested. It does nothing if the item can no longer take the action.
// A caller would get an error then, as it decided by what it saw. A callback made its request before the other
// callbacks ran, and an error would roll back a command that did nothing wrong.
func (is *items) requestedAct(id workitem.CaseID, item workitem.ID, mv move) step {
	return func() error {
		c := is.tree.Case(id)
		it := c.Item(item)
		if it == nil || c.State.Final() {
			return nil
		}
		if _, ok := workitem.Next(it.State, mv.do); !ok {
			return nil
		}
		is.agenda.push(is.act(id, item, mv))
		return nil
	}
}

// act applies an action to an item whose state allows it. A start first starts the task, if this is its first item:
// tokens are consumed and competing tasks withdrawn before any work begins. That may end the item itself (onStarted of
// its task cancels it), so the move has the state that it expects.
func (is *items) act(id workitem.CaseID, item workitem.ID, mv move) step {
	return func() error {
		c := is.tree.Case(id)
		it := c.Item(item)
		t, _ := c.Net.TaskByName(it.Task)
		is.agenda.push(is.moveItem(id, item, it.State, mv))
		if mv.do == workitem.Start {
			is.agenda.push(is.activations.ensureStarted(id, t, it.Generation))
		}
		return nil
	}
}

// moveItem runs the action's callback, changes the state, ends the item's jobs, calls the item's hook and then that of
// its task, and asks the policy if the state is final:
//
//	action's callback ─▶ item moves, jobs end ─▶ item hook ─▶ OnWorkItemStateChanged ─▶ asked actions ─▶ policy
//
// The action's callback comes first, since it may refuse the action before anything has happened. Requests that
// callbacks make in between wait until all hooks have run: a change comes before its consequences. The policy comes
// last, so that a failed item whose hook has opened a successor does not fail its task.
func (is *items) moveItem(id workitem.CaseID, item workitem.ID, from workitem.State, mv move) step {
	return func() error {
		c := is.tree.Case(id)
		it := c.Item(item)
		if it.State != from {
			return nil // the start of its task has ended it
		}
		t, _ := c.Net.TaskByName(it.Task)
		spec, err := is.definitions.task(c, t)
		if err != nil {
			return err
		}
		if !mv.accepted {
			mv.payload, err = is.callbacks.acceptItem(spec, mv.do, mv.payload)
		}
		if err != nil {
			return fmt.Errorf("%s work item %s/%s (%s): %w", mv.do, c.Workflow, it.Label(), it.ID, err)
		}
		if mv.calls < hooksOnly {
			if err := is.runAction(c, t, spec, it, mv.do, mv.payload); err != nil {
				return err
			}
		}
		return is.moved(c, t, spec, it, mv, true)
	}
}

// tearDown cancels an item because its owner ended: no action callback runs, and no policy is asked. Its hooks are
// called, since they may have to undo something outside of the engine. The reason may be nil.
func (is *items) tearDown(id workitem.CaseID, item workitem.ID, reason *workitem.Failure) step {
	return func() error {
		c := is.tree.Case(id)
		it := c.Item(item)
		if it == nil || !it.State.Live() {
			return nil
		}
		t, _ := c.Net.TaskByName(it.Task)
		spec, err := is.definitions.task(c, t)
		if err != nil {
			return err
		}
		return is.moved(c, t, spec, it, move{do: workitem.Cancel, reason: reason}, false)
	}
}

// moved is the common end of every change of an item. It cancels the jobs here and not by a step, so that the hooks do
// not see them: one of the hooks may open the next attempt, with a job of its own.
func (is *items) moved(
	c *state.Case, t net.TaskID, spec *workflow.Task, it *workitem.Item, mv move, judge bool,
) error {
	from, a := it.State, mv.do
	to, _ := workitem.Next(from, a)
	e := &state.ItemMoved{Case: c.ID, Item: it.ID, Action: a, To: to, By: is.by, At: is.now}
	switch a {
	case workitem.Complete:
		e.Output = mv.payload
	case workitem.Fail, workitem.Cancel:
		if e.Failure = mv.reason; e.Failure == nil {
			e.Failure = failureIn(mv.payload)
		}
	}
	if err := is.emit(e); err != nil {
		return err
	}
	id, generation := c.ID, it.Generation
	steps := make([]step, 0, 6)
	if mv.calls < taskHookOnly {
		steps = append(steps, is.callbacks.itemHook(id, t, it.ID, a, spec))
	}
	if mv.calls < noCallbacks && (to == workitem.Failed || !spec.OnlyFailures) {
		steps = append(steps, is.callbacks.changeHook(id, t, generation, spec, to == workitem.Failed && it.Retry != nil, func(change *activities.Change) {
			change.Item, change.From, change.To = is.tree.Case(id).Item(it.ID), from, to
		}))
	}
	if a == workitem.Reset {
		steps = append(steps, is.rerun(id, it.ID, spec))
	}
	if a == workitem.Start && spec.Auto {
		steps = append(steps, func() error {
			is.agenda.request(is.requestedAct(id, it.ID, move{do: workitem.Complete}))
			return nil
		})
	}
	steps = append(steps, is.agenda.release)
	if judge && to.Final() {
		steps = append(steps, is.judgeItem(id, t, generation, it.ID, to))
	}
	is.agenda.push(steps...)
	if to.Final() || a == workitem.Reset {
		return is.jobs.cancel(c.ID, c.Jobs.Of(it.ID))
	}
	return nil
}

// judgeItem asks the policy about the end of an item. It reads the item again, since a hook may have given it a
// successor, and the activation may have ended in between.
func (is *items) judgeItem(id workitem.CaseID, t net.TaskID, generation int, item workitem.ID, to workitem.State) step {
	return func() error {
		c := is.tree.Case(id)
		it := c.Item(item)
		if it == nil {
			return nil // its activation has ended
		}
		is.agenda.push(is.activations.judge(id, t, generation, workitem.Outcome{Item: it, State: to}, it.Failure))
		return nil
	}
}

// rerun opens a new run for an item that was reset, due now. Its timers are gone with its other jobs, and are not
// opened again: they counted from when the item was due.
func (is *items) rerun(id workitem.CaseID, item workitem.ID, spec *workflow.Task) step {
	if !spec.HasWorker() {
		return nil
	}
	return func() error {
		it := is.tree.Case(id).Item(item)
		if it == nil || it.State != workitem.Initialized {
			return nil
		}
		return is.jobs.openOf(id, &state.Job{Kind: state.JobRun, Due: is.now, Queue: it.Queue, Priority: it.Priority}, it)
	}
}

// failureIn decodes the payload of a fail or a cancel, which may also be plain text.
// A payload that is no failure becomes the details of one, so that nothing of what a worker reported is lost.
func failureIn(payload json.RawMessage) *workitem.Failure {
	if len(payload) == 0 || string(payload) == "null" {
		return nil
	}
	var f workitem.Failure
	if err := json.Unmarshal(payload, &f); err != nil || f.Code == "" && f.Message == "" {
		return &workitem.Failure{Message: "see the details", Details: payload, Retryable: true}
	}
	return &f
}

// endLate ends a live item after its timeout. Only a started item can fail, so another one is started first. The action
// callback of the start is skipped, since no work begins:
//
//	initialized ──(start, hooks only)──▶ started ──(fail)──▶ failed
//
// The default of a timeout is to fail the item and not to cancel it: a canceled item counts as done, and the task would
// complete without the output that later tasks read.
func (is *items) endLate(it *workitem.Item, a workitem.Action, reason *workitem.Failure, c calls) (step, error) {
	payload, err := json.Marshal(reason)
	if err != nil {
		return nil, err
	}
	id, item := it.Case, it.ID
	return func() error {
		is.agenda.push(is.requestedAct(id, item, move{do: a, payload: payload, calls: c}))
		if it := is.tree.Case(id).Item(item); a == workitem.Fail && it != nil && it.State == workitem.Initialized {
			is.agenda.push(is.requestedAct(id, item, move{do: workitem.Start, calls: max(c, hooksOnly)}))
		}
		return nil
	}, nil
}
