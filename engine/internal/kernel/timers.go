package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// startTimers schedules the timers of an activation. Those of its items are scheduled with each item, as they count
// from when the item is due. They follow the items, so that of timers due at one instant those of the items act first.
func (m *Machine) startTimers(id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task) step {
	if len(spec.Timers) == 0 {
		return nil
	}
	return func() error {
		c := m.tree.Case(id)
		if m.mustBeActive(c, t, generation) != nil {
			return nil
		}
		for i := range spec.Timers {
			timer := &spec.Timers[i]
			if timer.Task == nil {
				continue
			}
			err := m.addJob(id, &state.Job{Kind: state.JobTimer, Name: timer.Name, Task: c.Net.TaskName(t),
				Generation: generation, Due: m.now.Add(timer.After)})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// fireTimer calls what a timer is for. A timer whose item has ended in the meantime does nothing: it was canceled with
// the item unless both are of one command.
func (m *Machine) fireTimer(id workitem.CaseID, t net.TaskID, timer *activities.Timer, j *state.Job) step {
	return func() error {
		c := m.tree.Case(id)
		if timer.Task != nil {
			a := m.activation(c, t, j.Generation)
			err := m.call(c, t, "timer "+timer.Name, func(ctx context.Context) error { return timer.Task(ctx, a) })
			return m.failUnread(id, t, j.Generation, err)
		}
		it := c.Item(j.Item)
		if it == nil || !it.State.Live() {
			return nil
		}
		return m.failUnread(id, t, j.Generation, m.callItem(c, t, it, "timer "+timer.Name, timer.Item))
	}
}

// endLate ends a live item whose time is over. Only a started one can fail, so one that was not is started first,
// without the callback of the start, as no work begins:
//
//	initialized ──(start, hooks only)──▶ started ──(fail)──▶ failed
//
// To fail and not to cancel is the default of a timeout: a canceled item counts as done, and the task would complete
// without the output that its successors read.
func (m *Machine) endLate(it *workitem.Item, a workitem.Action, reason *workitem.Failure, c calls) (step, error) {
	payload, err := json.Marshal(reason)
	if err != nil {
		return nil, err
	}
	id, item := it.Case, it.ID
	return func() error {
		m.push(m.requestedAct(id, item, move{do: a, payload: payload, calls: c}))
		if it := m.tree.Case(id).Item(item); a == workitem.Fail && it != nil && it.State == workitem.Initialized {
			m.push(m.requestedAct(id, item, move{do: workitem.Start, calls: max(c, hooksOnly)}))
		}
		return nil
	}, nil
}

// Fire does what a due timer, or the end of a wait, is for. The job is done before its function is called, so that it
// does not find itself among the jobs that it may cancel. If the function fails, the command is undone, the job is
// pending as before, and the caller postpones it (see [Machine.Postpone]).
func (m *Machine) Fire(id workitem.JobID) error {
	c, j := m.tree.Job(id)
	if j == nil || j.State != state.JobPending {
		return fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	if err := m.mayBegin(c, "job "+id.String()); err != nil {
		return err
	}
	m.cause = activities.CauseTimer
	if err := m.moveJob(c.ID, j, func(e *state.JobMoved) { e.To, e.Attempt = state.JobDone, j.Attempt+1 }); err != nil {
		return err
	}
	switch j.Kind {
	case state.JobStart:
		m.push(m.firstTasks(c.ID))
	case state.JobTimer:
		t, timer, err := m.timerOf(c, j)
		if err != nil {
			return err
		}
		if timer != nil {
			m.push(m.fireTimer(c.ID, t, timer, j), m.releaseRequested)
		}
	}
	return m.run(0)
}

// timerOf finds what the definition says of the timer that a job is for; nil if nothing: a job belongs to the
// definition that its case runs on, which the program may have registered without this timer's code.
func (m *Machine) timerOf(c *state.Case, j *state.Job) (net.TaskID, *activities.Timer, error) {
	t, _ := c.Net.TaskByName(j.Task)
	spec, err := m.spec(c, t)
	if err != nil {
		return t, nil, err
	}
	for i := range spec.Timers {
		if spec.Timers[i].Name == j.Name {
			return t, &spec.Timers[i], nil
		}
	}
	return t, nil, nil
}

// ForcedEnd is what becomes of the items of a timer that is given up although it was to end them. In their order, each
// asks fewer callbacks: one that refuses the last try is left out at the next.
type ForcedEnd int

const (
	EndWithoutHooks ForcedEnd = iota // the items end without the callback of the action and the hook of the item
	EndWithoutTask                   // and without their task's OnWorkItemStateChanged
	EndNothing                       // the items stay as they are: what refuses is not theirs
)

// calls are the callbacks that are still asked. What remains after EndWithoutHooks is the task's answer, which may
// open a fresh item.
func (i ForcedEnd) calls() calls {
	if i == EndWithoutHooks {
		return taskHookOnly
	}
	return noCallbacks
}

// MaxTries is how often something that the engine itself does for a job may fail before a person has to look.
const MaxTries = 10

// Backoff is how long the engine waits after such a failure.
var Backoff = retry.Policy{Attempts: MaxTries, Initial: time.Second, MaxWait: time.Minute}

// What becomes of a timeout whose callbacks refuse it, with the waits of [Backoff]:
//
//	try 1       the item fails with all its callbacks; Work.Fail returns an error: the command is undone
//	tries 2-9   the same, 1 s, 2 s, 4 s ... 1 min later
//	try 10      forceEnd: the item fails without the refusing callbacks, and an incident notes it
//
// A case is so held up for minutes by a broken callback, and never without end.

// Postpone lets a pending job wait longer after its function failed in the transaction, or could not be claimed. After
// maxAttempts such failures in all it is given up. What a timer was to fail or to cancel then ends without the
// callbacks that refuse it, as far as force allows: otherwise the case would wait for what never comes.
func (m *Machine) Postpone(
	id workitem.JobID, wait time.Duration, maxAttempts int, failure *workitem.Failure, force ForcedEnd,
) error {
	c, j := m.tree.Job(id)
	if j == nil || j.State != state.JobPending {
		return fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	m.cause = activities.CauseTimer
	if j.Attempt+1 >= maxAttempts {
		last := *j
		last.Attempt++
		if j.Kind == state.JobTimer && force < EndNothing {
			if err := m.forceEnd(c, &last, failure, force.calls()); err != nil {
				return err
			}
		}
		return m.giveUp(c, &last, failure)
	}
	return m.moveJob(c.ID, j, func(e *state.JobMoved) {
		e.Due, e.Attempt, e.Failure = m.now.Add(wait), j.Attempt+1, failure
	})
}

// forceEnd ends the items that a timer was to end, and notes an incident for each. The failure of the item is that of
// the timeout, with what refused it as details: a policy decides by the code as for any timeout, and a person finds the
// cause.
func (m *Machine) forceEnd(c *state.Case, j *state.Job, cause *workitem.Failure, calls calls) error {
	t, timer, err := m.timerOf(c, j)
	if err != nil || timer == nil || timer.Does != workitem.Fail && timer.Does != workitem.Cancel {
		return err
	}
	reason := timer.Late()
	if reason.Details, err = json.Marshal(workitem.Failf(cause.Code, "%s", cause.Message)); err != nil {
		return err
	}
	var steps []step
	for it := range c.Items.All() {
		if !it.State.Live() || it.ID != j.Item && !(j.Item.IsZero() && j.Owned(it.Task, it.Generation)) {
			continue
		}
		end, err := m.endLate(it, timer.Does, reason, calls)
		if err != nil {
			return err
		}
		steps = append(steps, end)
		err = m.emit(&state.Noted{Case: c.ID, Task: t, Code: state.NoteIncident, Text: fmt.Sprintf(
			"timer %s: %s of work item %s without its callbacks, which refused it %d times: %s",
			timer.Name, timer.Does, it.Label(), j.Attempt, cause)})
		if err != nil {
			return err
		}
	}
	m.push(steps...)
	return nil
}
