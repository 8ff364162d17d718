package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Act does an action on a work item. The route, if not nil, is where the task's split goes if the action completes the
// task.
func (m *Machine) Act(id workitem.ID, a workitem.Action, payload json.RawMessage, route []string) error {
	c, it := m.tree.Item(id)
	if it == nil {
		return fmt.Errorf("work item %s: %w", id, ErrNotFound)
	}
	t, _ := c.Net.TaskByName(it.Task)
	if _, ok := workitem.Next(it.State, a); !ok {
		return &workitem.TransitionError{Item: id, Label: c.Workflow + "/" + it.Label(), From: it.State, Action: a}
	}
	if route != nil {
		m.choice = &choice{at: c.ID, t: t, to: route}
	}
	m.then(m.act(c.ID, id, a, payload))
	return m.run(0)
}

// OpenItem creates one more work item in an active task. A composite or routing task has none, whatever its state: the
// error wraps [ErrNotFound], as for a name that is no task at all.
func (m *Machine) OpenItem(at workitem.CaseID, task string, n activities.NewItem) (*workitem.Item, error) {
	c := m.tree.Case(at)
	if c == nil {
		return nil, fmt.Errorf("case %s: %w", at, ErrNotFound)
	}
	t, ok := c.Net.TaskByName(task)
	if !ok {
		return nil, fmt.Errorf("task %q of workflow %s: %w", task, c.Workflow, ErrNotFound)
	}
	if c.Net.Task(t).Kind != net.Atomic {
		return nil, noItems(c, task)
	}
	it, err := m.openItem(c.ID, t, c.Tasks[t].Generation, n)
	if err != nil {
		return nil, err
	}
	m.then(m.letGo)
	return it, m.run(0)
}

func noItems(c *store.Case, task string) error {
	return fmt.Errorf("work items of task %q of workflow %s, which is a composite or routing task: %w", task, c.Workflow,
		ErrNotFound)
}

// Cancel cancels a case. Canceling a child case is judged by its parent's policy, as any end of it would be.
func (m *Machine) Cancel(id workitem.CaseID, reason *workitem.Failure) error {
	c := m.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State.Final() {
		return fmt.Errorf("case %s %w: it is %s", id, activities.ErrInactive, c.State)
	}
	m.then(m.endCase(id, store.CaseCanceled, reason, false))
	return m.run(0)
}

// Claim gives a pending job to a worker. The item of a run is started. A job that crashed before counts its crashes.
func (m *Machine) Claim(id workitem.JobID, owner string, lease time.Time) (*activities.Work, error) {
	c, j := m.tree.Job(id)
	if j == nil {
		return nil, fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	overslept := j.State == store.JobWaiting && !j.Due.IsZero() && !j.Due.After(m.now)
	if j.State == store.JobWaiting && !overslept {
		return nil, fmt.Errorf("job %s: %w", id, ErrNotDue)
	}
	if j.State != store.JobPending && !overslept {
		return nil, fmt.Errorf("job %s is %s: %w", id, j.State, ErrLeaseLost)
	}
	if err := m.stepsDue(c.ID, id); err != nil {
		return nil, err
	}
	it := c.Item(j.Item)
	err := m.moveJob(c.ID, j, func(e *store.JobMoved) {
		e.To, e.Owner, e.Lease, e.Fence, e.Attempt = store.JobRunning, owner, lease, j.Fence+1, j.Attempt+1
	})
	if err != nil {
		return nil, err
	}
	w := &activities.Work{Case: info(c), Job: id, Name: j.Name, Item: it, Input: j.Input, Attempt: j.Attempt + 1,
		Run: j.Attempt + 1, Fence: j.Fence + 1}
	if w.Steps, err = m.recalled(c, j, it); err != nil {
		return nil, err
	}
	if it == nil {
		return w, m.run(0)
	}
	w.Attempt, w.First = it.Attempt, first(c, it)
	if j.Kind == store.JobRun {
		w.Input = it.Input
	}
	if j.Kind != store.JobRun || it.State != workitem.Initialized {
		return w, m.run(0)
	}
	m.then(m.act(c.ID, it.ID, workitem.Start, nil))
	if err := m.run(0); err != nil {
		return nil, err
	}
	if _, still := m.tree.Job(id); still == nil {
		return nil, fmt.Errorf("job %s was canceled as it started: %w", id, ErrLeaseLost)
	}
	return w, nil
}

// first finds the attempt that an item goes back to.
func first(c *store.Case, it *workitem.Item) workitem.ID {
	for !it.Predecessor.IsZero() {
		before := c.Item(it.Predecessor)
		if before == nil {
			return it.Predecessor
		}
		it = before
	}
	return it.ID
}

// Settle hands in the result of a running job. The fence must be the one that the claim gave.
func (m *Machine) Settle(id workitem.JobID, fence int64, output json.RawMessage, failure *workitem.Failure) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	if j.Kind == store.JobCall {
		return m.settleCall(c, j, failure)
	}
	action, payload := workitem.Complete, output
	if failure != nil {
		action = workitem.Fail
		if payload, err = json.Marshal(failure); err != nil {
			return err
		}
	}
	m.then(m.act(c.ID, j.Item, action, payload)) // after the child cases of its steps have ended
	err = m.endJob(c.ID, j, func(e *store.JobMoved) { e.To, e.Failure = store.JobDone, failure })
	if err != nil {
		return err
	}
	return m.run(0)
}

// settleCall ends a call, or puts it off until its next attempt.
func (m *Machine) settleCall(c *store.Case, j *store.Job, failure *workitem.Failure) error {
	if failure == nil {
		if err := m.endJob(c.ID, j, func(e *store.JobMoved) { e.To = store.JobDone }); err != nil {
			return err
		}
		return m.run(0)
	}
	d, err := m.definition(c)
	if err != nil {
		return err
	}
	if call := d.Calls[j.Name]; call != nil && failure.Retryable {
		if wait, again := call.Retry.Next(callFailure(j, failure, m.now)); again {
			return m.moveJob(c.ID, j, func(e *store.JobMoved) {
				e.To, e.Due, e.Failure, e.Owner = store.JobPending, m.now.Add(wait), failure, ""
			})
		}
	}
	return m.giveUp(c, j, failure)
}

// giveUp fails a job for good and leaves a note for the operator.
func (m *Machine) giveUp(c *store.Case, j *store.Job, failure *workitem.Failure) error {
	if err := m.endJob(c.ID, j, func(e *store.JobMoved) { e.To, e.Failure = store.JobFailed, failure }); err != nil {
		return err
	}
	t, ok := c.Net.TaskByName(j.Task)
	if !ok {
		t = -1
	}
	what := j.Name
	if what == "" {
		what = j.Kind
	}
	err := m.emit(&store.Noted{Case: c.ID, Task: t, Code: store.NoteIncident,
		Text: fmt.Sprintf("job %s (%s) was given up: %s", j.ID, what, failure)})
	if err != nil {
		return err
	}
	if j.Kind == store.JobStart { // nothing else would ever happen to the case
		m.then(m.endCase(c.ID, store.CaseFailed, failure, false))
	}
	return m.run(0)
}

// Release takes a running job back from a worker that is gone. A crash counts against the job: one that takes its worker
// down more than [MaxCrashes] times, and records no step in between, is given up.
func (m *Machine) Release(id workitem.JobID, fence int64, crashed bool) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	crashes := j.Crashes
	if crashed {
		crashes++
	}
	if crashes > MaxCrashes {
		return m.giveUp(c, j, &workitem.Failure{Code: workitem.CodeCrash,
			Message: fmt.Sprintf("its worker died %d times while it ran", crashes)})
	}
	return m.moveJob(c.ID, j, func(e *store.JobMoved) {
		e.To, e.Crashes, e.Owner, e.Lease, e.Attempt = store.JobPending, crashes, "", time.Time{}, j.Attempt-1
	})
}

func (m *Machine) held(id workitem.JobID, fence int64) (*store.Case, *store.Job, error) {
	c, j := m.tree.Job(id)
	if j == nil {
		return nil, nil, fmt.Errorf("job %s has ended: %w", id, ErrLeaseLost)
	}
	if j.State != store.JobRunning || j.Fence != fence {
		return nil, nil, fmt.Errorf("job %s is %s with fence %d, and the worker holds fence %d: %w",
			id, j.State, j.Fence, fence, ErrLeaseLost)
	}
	return c, j, nil
}

// Fire does what a due timer, or the end of a wait, is for.
func (m *Machine) Fire(id workitem.JobID) error {
	c, j := m.tree.Job(id)
	if j == nil || j.State != store.JobPending {
		return fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	if err := m.moveJob(c.ID, j, func(e *store.JobMoved) { e.To, e.Attempt = store.JobDone, j.Attempt+1 }); err != nil {
		return err
	}
	switch j.Kind {
	case store.JobStart:
		m.then(m.firstTasks(c.ID))
	case store.JobTimer:
		t, _ := c.Net.TaskByName(j.Task)
		spec, err := m.spec(c, t)
		if err != nil {
			return err
		}
		for i := range spec.Timers {
			if spec.Timers[i].Name == j.Name {
				m.then(m.fireTimer(c.ID, t, &spec.Timers[i], j), m.letGo)
			}
		}
	}
	return m.run(0)
}

// PutOff lets a pending job wait longer after its function failed in the transaction, or could not be claimed. After
// maxAttempts such failures in all it is given up.
func (m *Machine) PutOff(id workitem.JobID, wait time.Duration, maxAttempts int, failure *workitem.Failure) error {
	c, j := m.tree.Job(id)
	if j == nil || j.State != store.JobPending {
		return fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	if j.Attempt+1 >= maxAttempts {
		last := *j
		last.Attempt++
		return m.giveUp(c, &last, failure)
	}
	return m.moveJob(c.ID, j, func(e *store.JobMoved) {
		e.Due, e.Attempt, e.Failure = m.now.Add(wait), j.Attempt+1, failure
	})
}

// GiveUp fails a job that the worker holds, without a word to its item: the transaction that should have taken its result
// refuses every result, so a person has to look.
func (m *Machine) GiveUp(id workitem.JobID, fence int64, failure *workitem.Failure) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	return m.giveUp(c, j, failure)
}

// JobAttempt says how often a live job was tried; 0 if it is not there.
func (m *Machine) JobAttempt(id workitem.JobID) int {
	if _, j := m.tree.Job(id); j != nil {
		return j.Attempt
	}
	return 0
}

// Renew makes the lease of a running job last longer.
func (m *Machine) Renew(id workitem.JobID, fence int64, lease time.Time) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	return m.moveJob(c.ID, j, func(e *store.JobMoved) { e.Lease = lease })
}
