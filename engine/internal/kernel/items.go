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

// openItem creates a work item with its jobs, and calls the initialize action and the item's onInitialized at once,
// instead of by the agenda: the callback that asked for the item gets it complete, and an error of these callbacks.
//
// An automatic item is started by a recorded request, as if a callback had made it. So all items of an activation exist
// before the first of them starts, and the policy cannot complete the task with the first.
func (m *Machine) openItem(id workitem.CaseID, t net.TaskID, generation int, n activities.NewItem) (*workitem.Item, error) {
	c := m.tree.Case(id)
	if err := mustBeActive(c, t, generation); err != nil {
		return nil, err
	}
	spec, err := m.definitions.task(c, t)
	if err != nil {
		return nil, err
	}
	if n.After < 0 {
		return nil, fmt.Errorf("a work item of task %s cannot be due %s ago: give zero or more", c.Net.TaskName(t), -n.After)
	}
	if err := errors.Join(workflow.CheckName("queue of the item", n.Queue), workflow.CheckPriority(n.Priority)); err != nil {
		return nil, fmt.Errorf("a work item of task %s: %w", c.Net.TaskName(t), err)
	}
	it := m.newItem(c, t, generation, spec, n)
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
	if it.Input = n.Input; !m.isAccepted(c, spec, n.Input) {
		it.Input, err = m.callbacks.acceptItem(spec, workitem.Initialize, n.Input)
	}
	if err != nil {
		return nil, fmt.Errorf("initialize work item %s/%s: %w", c.Workflow, it.Label(), err)
	}
	if err := m.emit(&state.ItemOpened{Item: it}); err != nil {
		return nil, err
	}
	if err := m.openItemJobs(c.ID, spec, it); err != nil {
		return nil, err
	}
	if n.KeepSteps && n.Predecessor != nil && spec.HasWorker() {
		if err := m.keepSteps(c.ID, it, n.Predecessor); err != nil {
			return nil, err
		}
	}
	if len(m.copied) > 0 && spec.HasWorker() {
		if err := m.takeOver(c.ID, it); err != nil {
			return nil, err
		}
	}
	if err := m.callInitialized(c, t, spec, it); err != nil {
		return nil, err
	}
	if spec.Auto {
		m.agenda.request(m.requestedAct(id, it.ID, move{do: workitem.Start}))
	}
	return it, nil
}

// callInitialized runs the initialize action of a new item, and then its onInitialized.
func (m *Machine) callInitialized(c *state.Case, t net.TaskID, spec *workflow.Task, it *workitem.Item) error {
	if err := m.runAction(c, t, spec, it, workitem.Initialize, it.Input); err != nil {
		return err
	}
	if hook := spec.ItemHooks.OnInitialized; hook != nil {
		return m.callbacks.callItem(c, t, it, "item onInitialized", hook)
	}
	return nil
}

// runAction runs the task's callback for an action on an item, if it has one.
func (m *Machine) runAction(
	c *state.Case, t net.TaskID, spec *workflow.Task, it *workitem.Item, a workitem.Action, payload json.RawMessage,
) error {
	action := spec.Actions[a]
	if action == nil {
		return nil
	}
	return m.callbacks.callItem(c, t, it, a.String(), func(ctx context.Context, s *activities.Item) error {
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
func (m *Machine) newItem(
	c *state.Case, t net.TaskID, generation int, spec *workflow.Task, n activities.NewItem,
) *workitem.Item {
	it := &workitem.Item{
		ID: m.ids.NewID(m.now), Case: c.ID, Task: c.Net.TaskName(t), Generation: generation,
		Number: c.Tasks[t].Created + 1, State: workitem.Initialized, Attempt: 1,
		Queue: spec.Queue, Priority: spec.Priority, Created: m.now,
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
		it.Due = m.now.Add(n.After)
	}
	if n.Predecessor != nil {
		it.Attempt, it.Predecessor, it.Retry = n.Predecessor.Attempt+1, n.Predecessor.ID, n.Predecessor.Retry
	}
	return it
}

// openItemJobs opens the jobs of an item: its run, or the end of its wait, and its timers. The timers count from the
// time at which the item is due, since a backoff must not use up the time that the work has:
//
//	now           due = now + backoff         due + timeout
//	├─────────────┼───────────────────────────┤
//	item opened   run: a worker may claim it  timer: the item fails
//
// An item for a person has no run. If it has to wait, a wake job marks the time from which a person may work on it, and
// at which watchers are notified.
func (m *Machine) openItemJobs(id workitem.CaseID, spec *workflow.Task, it *workitem.Item) error {
	due := it.Created
	if !it.Due.IsZero() {
		due = it.Due
	}
	switch {
	case spec.HasWorker():
		if err := m.jobs.openOf(id, &state.Job{Kind: state.JobRun, Due: due, Queue: it.Queue, Priority: it.Priority}, it); err != nil {
			return err
		}
	case due.After(m.now):
		if err := m.jobs.openOf(id, &state.Job{Kind: state.JobWake, Due: due}, it); err != nil {
			return err
		}
	}
	for i := range spec.Timers {
		if timer := &spec.Timers[i]; timer.Item != nil {
			job := &state.Job{Kind: state.JobTimer, Name: timer.Name, Due: due.Add(timer.After)}
			if err := m.jobs.openOf(id, job, it); err != nil {
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
func (m *Machine) requestedAct(id workitem.CaseID, item workitem.ID, mv move) step {
	return func() error {
		c := m.tree.Case(id)
		it := c.Item(item)
		if it == nil || c.State.Final() {
			return nil
		}
		if _, ok := workitem.Next(it.State, mv.do); !ok {
			return nil
		}
		m.agenda.push(m.act(id, item, mv))
		return nil
	}
}

// act applies an action to an item whose state allows it. A start first starts the task, if this is its first item:
// tokens are consumed and competing tasks withdrawn before any work begins. That may end the item itself (onStarted of
// its task cancels it), so the move has the state that it expects.
func (m *Machine) act(id workitem.CaseID, item workitem.ID, mv move) step {
	return func() error {
		c := m.tree.Case(id)
		it := c.Item(item)
		t, _ := c.Net.TaskByName(it.Task)
		m.agenda.push(m.moveItem(id, item, it.State, mv))
		if mv.do == workitem.Start {
			m.agenda.push(m.ensureStarted(id, t, it.Generation))
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
func (m *Machine) moveItem(id workitem.CaseID, item workitem.ID, from workitem.State, mv move) step {
	return func() error {
		c := m.tree.Case(id)
		it := c.Item(item)
		if it.State != from {
			return nil // the start of its task has ended it
		}
		t, _ := c.Net.TaskByName(it.Task)
		spec, err := m.definitions.task(c, t)
		if err != nil {
			return err
		}
		if !mv.accepted {
			mv.payload, err = m.callbacks.acceptItem(spec, mv.do, mv.payload)
		}
		if err != nil {
			return fmt.Errorf("%s work item %s/%s (%s): %w", mv.do, c.Workflow, it.Label(), it.ID, err)
		}
		if mv.calls < hooksOnly {
			if err := m.runAction(c, t, spec, it, mv.do, mv.payload); err != nil {
				return err
			}
		}
		return m.moved(c, t, spec, it, mv, true)
	}
}

// tearDown cancels an item because its owner ended: no action callback runs, and no policy is asked. Its hooks are
// called, since they may have to undo something outside of the engine. The reason may be nil.
func (m *Machine) tearDown(id workitem.CaseID, item workitem.ID, reason *workitem.Failure) step {
	return func() error {
		c := m.tree.Case(id)
		it := c.Item(item)
		if it == nil || !it.State.Live() {
			return nil
		}
		t, _ := c.Net.TaskByName(it.Task)
		spec, err := m.definitions.task(c, t)
		if err != nil {
			return err
		}
		return m.moved(c, t, spec, it, move{do: workitem.Cancel, reason: reason}, false)
	}
}

// moved is the common end of every change of an item. It cancels the jobs here and not by a step, so that the hooks do
// not see them: one of the hooks may open the next attempt, with a job of its own.
func (m *Machine) moved(
	c *state.Case, t net.TaskID, spec *workflow.Task, it *workitem.Item, mv move, judge bool,
) error {
	from, a := it.State, mv.do
	to, _ := workitem.Next(from, a)
	e := &state.ItemMoved{Case: c.ID, Item: it.ID, Action: a, To: to, By: m.by, At: m.now}
	switch a {
	case workitem.Complete:
		e.Output = mv.payload
	case workitem.Fail, workitem.Cancel:
		if e.Failure = mv.reason; e.Failure == nil {
			e.Failure = failureIn(mv.payload)
		}
	}
	if err := m.emit(e); err != nil {
		return err
	}
	id, generation := c.ID, it.Generation
	steps := make([]step, 0, 6)
	if mv.calls < taskHookOnly {
		steps = append(steps, m.callbacks.itemHook(id, t, it.ID, a, spec))
	}
	if mv.calls < noCallbacks && (to == workitem.Failed || !spec.OnlyFailures) {
		steps = append(steps, m.callbacks.changeHook(id, t, generation, spec, to == workitem.Failed && it.Retry != nil, func(change *activities.Change) {
			change.Item, change.From, change.To = m.tree.Case(id).Item(it.ID), from, to
		}))
	}
	if a == workitem.Reset {
		steps = append(steps, m.rerun(id, it.ID, spec))
	}
	if a == workitem.Start && spec.Auto {
		steps = append(steps, func() error {
			m.agenda.request(m.requestedAct(id, it.ID, move{do: workitem.Complete}))
			return nil
		})
	}
	steps = append(steps, m.agenda.release)
	if judge && to.Final() {
		steps = append(steps, m.judgeItem(id, t, generation, it.ID, to))
	}
	m.agenda.push(steps...)
	if to.Final() || a == workitem.Reset {
		return m.jobs.cancel(c.ID, c.Jobs.Of(it.ID))
	}
	return nil
}

// judgeItem asks the policy about the end of an item. It reads the item again, since a hook may have given it a
// successor, and the activation may have ended in between.
func (m *Machine) judgeItem(id workitem.CaseID, t net.TaskID, generation int, item workitem.ID, to workitem.State) step {
	return func() error {
		c := m.tree.Case(id)
		it := c.Item(item)
		if it == nil {
			return nil // its activation has ended
		}
		m.agenda.push(m.judge(id, t, generation, workitem.Outcome{Item: it, State: to}, it.Failure))
		return nil
	}
}

// rerun opens a new run for an item that was reset, due now. Its timers are gone with its other jobs, and are not
// opened again: they counted from when the item was due.
func (m *Machine) rerun(id workitem.CaseID, item workitem.ID, spec *workflow.Task) step {
	if !spec.HasWorker() {
		return nil
	}
	return func() error {
		it := m.tree.Case(id).Item(item)
		if it == nil || it.State != workitem.Initialized {
			return nil
		}
		return m.jobs.openOf(id, &state.Job{Kind: state.JobRun, Due: m.now, Queue: it.Queue, Priority: it.Priority}, it)
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
