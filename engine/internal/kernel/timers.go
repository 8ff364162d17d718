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
	"github.com/tasq-dev/tasq/workitem"
)

// Timers executes what is due by itself: timers, the beginnings of delayed cases, the ends of waits. It postpones a job that cannot be
// executed now, also for a worker.
type Timers struct {
	*record
	agenda      *agenda
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	incidents   *incidents
	items       *items
	activations *activations
	cases       *cases
}

// fireTimer executes a timer. It does nothing if the item of the timer has ended: usually the timer was canceled with
// the item, unless both are in one command.
func (tm *Timers) fireTimer(id workitem.CaseID, t net.TaskID, timer *activities.Timer, j *state.Job) step {
	return func() error {
		c := tm.tree.Case(id)
		if timer.Task != nil {
			a := tm.callbacks.activation(c, t, j.Generation)
			err := tm.callbacks.call(c, t, "timer "+timer.Name, func(ctx context.Context) error { return timer.Task(ctx, a) })
			return tm.activations.failUnread(id, t, j.Generation, err)
		}
		it := c.Item(j.Item)
		if it == nil || !it.State.Live() {
			return nil
		}
		return tm.activations.failUnread(id, t, j.Generation, tm.callbacks.callItem(c, t, it, "timer "+timer.Name, timer.Item))
	}
}

// Fire executes a due timer, or the end of a delay. The job is completed before its function is called, so that the
// function does not find it among the jobs that it may cancel. If the function fails, the command is rolled back, the
// job is pending as before, and the caller postpones it (see [Timers.Postpone]).
func (tm *Timers) Fire(id workitem.JobID) error {
	c, j := tm.tree.Job(id)
	if j == nil || j.State != state.JobPending {
		return fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	if err := mayBegin(tm.tree, c, "job "+id.String()); err != nil {
		return err
	}
	tm.callbacks.cause = activities.CauseTimer
	if err := tm.jobs.move(c.ID, j, func(e *state.JobMoved) { e.To, e.Attempt = state.JobDone, j.Attempt+1 }); err != nil {
		return err
	}
	// A wake job needs no case here: its end is the change that watchers are notified of.
	switch j.Kind {
	case state.JobStart:
		tm.agenda.push(tm.cases.firstTasks(c.ID))
	case state.JobTimer:
		t, timer, err := tm.timerOf(c, j)
		if err != nil {
			return err
		}
		if timer != nil {
			tm.agenda.push(tm.fireTimer(c.ID, t, timer, j), tm.agenda.release)
		}
	}
	return tm.agenda.run(0)
}

// timerOf returns the definition of the timer of a job; nil if there is none: a job belongs to the definition of its
// case, and the program may have registered that without the code of this timer.
func (tm *Timers) timerOf(c *state.Case, j *state.Job) (net.TaskID, *activities.Timer, error) {
	t, _ := c.Net.TaskByName(j.Task)
	spec, err := tm.definitions.task(c, t)
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

// ForcedEnd says how the items of a timer end that is given up although it was to end them. Each value calls fewer
// callbacks than the one before, so that a callback which failed in one try is skipped in the next.
type ForcedEnd int

const (
	EndWithoutHooks ForcedEnd = iota // without the callback of the action and the hook of the item
	EndWithoutTask                   // also without OnWorkItemStateChanged of their task
	EndNothing                       // the items are left as they are: the error is not from their callbacks
)

// calls returns the callbacks that are still called. With EndWithoutHooks that is the hook of the task, which may open
// a new item.
func (i ForcedEnd) calls() calls {
	if i == EndWithoutHooks {
		return taskHookOnly
	}
	return noCallbacks
}

// MaxTries is the number of failures after which work that the engine itself does for a job becomes an incident.
const MaxTries = 10

// Backoff is the wait after such a failure.
var Backoff = retry.Policy{Attempts: MaxTries, Initial: time.Second, MaxWait: time.Minute}

// A timeout whose callbacks return errors, with the waits of [Backoff]:
//
//	try 1       the item fails with all its callbacks; Work.Fail returns an error: the command is rolled back
//	tries 2-9   the same, 1 s, 2 s, 4 s ... 1 min later
//	try 10      forceEnd: the item fails without the refusing callbacks, and an incident notes it
//
// So a broken callback delays a case by minutes, and never blocks it.

// Postpone delays a pending job after its function failed in the transaction, or its claim was refused. After
// maxAttempts such failures the job is given up. The items that a timer was to fail or cancel then end without the
// callbacks that force excludes; otherwise the case would wait for them without end.
func (tm *Timers) Postpone(
	id workitem.JobID, wait time.Duration, maxAttempts int, failure *workitem.Failure, force ForcedEnd,
) error {
	c, j := tm.tree.Job(id)
	if j == nil || j.State != state.JobPending {
		return fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	tm.callbacks.cause = activities.CauseTimer
	if j.Attempt+1 >= maxAttempts {
		last := *j
		last.Attempt++
		if j.Kind == state.JobTimer && force < EndNothing {
			if err := tm.forceEnd(c, &last, failure, force.calls()); err != nil {
				return err
			}
		}
		return tm.incidents.giveUp(c, &last, failure)
	}
	return tm.jobs.move(c.ID, j, func(e *state.JobMoved) {
		e.Due, e.Attempt, e.Failure = tm.now.Add(wait), j.Attempt+1, failure
	})
}

// forceEnd ends the items that a timer was to end, and opens an incident for each. The failure of an item is that of
// the timeout, with the error of the callback as details: a policy decides by the same code as for any timeout, and the
// person who handles the incident sees the cause.
func (tm *Timers) forceEnd(c *state.Case, j *state.Job, cause *workitem.Failure, calls calls) error {
	t, timer, err := tm.timerOf(c, j)
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
		end, err := tm.items.endLate(it, timer.Does, reason, calls)
		if err != nil {
			return err
		}
		steps = append(steps, end)
		err = tm.note(c.ID, t, state.NoteIncident, fmt.Sprintf(
			"timer %s: %s of work item %s without its callbacks, which refused it %d times: %s",
			timer.Name, timer.Does, it.Label(), j.Attempt, cause))
		if err != nil {
			return err
		}
	}
	tm.agenda.push(steps...)
	return nil
}

// JobAttempt returns how often a live job was tried; 0 if it does not exist.
func (tm *Timers) JobAttempt(id workitem.JobID) int {
	if _, j := tm.tree.Job(id); j != nil {
		return j.Attempt
	}
	return 0
}
