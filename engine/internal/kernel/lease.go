package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Claim gives a job to a worker: a pending one, or a suspended one whose time has come. The item of a run is started.
// The error wraps [ErrNotDue] if a suspended job waits on, [ErrLeaseLost] if somebody has it, and [ErrNotFound] if it
// has ended.
func (m *Machine) Claim(id workitem.JobID, owner string, lease time.Time) (*activities.Work, error) {
	c, j := m.tree.Job(id)
	if j == nil {
		return nil, fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	m.cause = activities.CauseJob
	if err := m.mayClaim(j); err != nil {
		return nil, err
	}
	if err := m.stepsDue(c.ID, id); err != nil {
		return nil, err
	}
	err := m.moveJob(c.ID, j, func(e *state.JobMoved) {
		e.To, e.Owner, e.Lease, e.Fence, e.Attempt = state.JobRunning, owner, lease, j.Fence+1, j.Attempt+1
	})
	if err != nil {
		return nil, err
	}
	it := c.Item(j.Item)
	w, err := m.work(c, j, it)
	if err != nil {
		return nil, err
	}
	if it == nil || j.Kind != state.JobRun || it.State != workitem.Initialized {
		return w, m.run(0)
	}
	m.then(m.act(c.ID, it.ID, move{do: workitem.Start}))
	if err := m.run(0); err != nil {
		return nil, err
	}
	if _, still := m.tree.Job(id); still == nil {
		return nil, fmt.Errorf("job %s was canceled as it started: %w", id, ErrLeaseLost)
	}
	return w, nil
}

func (m *Machine) mayClaim(j *state.Job) error {
	switch {
	case j.State == state.JobPending:
		return nil
	case j.State != state.JobWaiting:
		return fmt.Errorf("job %s is %s: %w", j.ID, j.State, ErrLeaseLost)
	case j.Due.IsZero() || j.Due.After(m.now):
		return fmt.Errorf("job %s: %w", j.ID, ErrNotDue)
	}
	return nil
}

// work is what the worker that claims a job is told. The item is nil for a job that has none.
func (m *Machine) work(c *state.Case, j *state.Job, it *workitem.Item) (*activities.Work, error) {
	w := &activities.Work{Case: Info(c), Job: j.ID, Name: j.Name, Item: it, Input: j.Input, Attempt: j.Attempt + 1,
		Run: j.Attempt + 1, Fence: j.Fence + 1, Began: j.Created}
	if it != nil {
		w.Attempt, w.First, w.Began = it.Attempt, first(c, it), it.Created
		if oldest := c.Item(w.First); oldest != nil {
			w.Began = oldest.Created
		}
	}
	if it != nil && j.Kind == state.JobRun {
		w.Input = it.Input
	}
	if err := restarted(c, w); err != nil {
		return nil, err
	}
	var err error
	w.Steps, err = m.recalled(c, j, it)
	return w, err
}

// first finds the attempt that an item goes back to.
func first(c *state.Case, it *workitem.Item) workitem.ID {
	for !it.Predecessor.IsZero() {
		before := c.Item(it.Predecessor)
		if before == nil {
			return it.Predecessor
		}
		it = before
	}
	return it.ID
}

// restarted has the first item of a case that restarts another go on with the work of that one: what is told to the world by
// a key of it is told by the same key again. A person may have added further items; they are work of their own.
func restarted(c *state.Case, w *activities.Work) error {
	if c.Predecessor.IsZero() || w.First != FirstItem(c) {
		return nil
	}
	o, err := workflow.OptionsOf(w.Case)
	if err == nil && !o.Work.IsZero() {
		w.First = o.Work
	}
	return err
}

// FirstItem is the first work item that a case had; zero if it had none.
func FirstItem(c *state.Case) workitem.ID {
	for it := range c.Items.All() {
		return it.ID
	}
	return workitem.ID{}
}

// Settle hands in the result of a running job. The fence must be the one that the claim gave.
func (m *Machine) Settle(id workitem.JobID, fence int64, output json.RawMessage, failure *workitem.Failure) error {
	c, j, err := m.held(id, fence)
	if err != nil {
		return err
	}
	if j.Kind == state.JobCall {
		return m.settleCall(c, j, failure)
	}
	action, payload := workitem.Complete, output
	if failure != nil {
		action = workitem.Fail
		if payload, err = json.Marshal(failure); err != nil {
			return err
		}
	}
	m.then(m.act(c.ID, j.Item, move{do: action, payload: payload})) // after the child cases of its steps have ended
	err = m.endJob(c.ID, j, func(e *state.JobMoved) { e.To, e.Failure = state.JobDone, failure })
	if err != nil {
		return err
	}
	return m.run(0)
}

// settleCall ends a call, or puts it off until its next attempt.
func (m *Machine) settleCall(c *state.Case, j *state.Job, failure *workitem.Failure) error {
	if failure == nil {
		if err := m.endJob(c.ID, j, func(e *state.JobMoved) { e.To = state.JobDone }); err != nil {
			return err
		}
		return m.run(0)
	}
	d, err := m.definition(c)
	if err != nil {
		return err
	}
	if call := d.Calls[j.Name]; call != nil && failure.Retryable {
		p := call.Retry
		p.Filters = nil // the worker has asked them; the answer is in the failure
		if wait, again := p.Next(callFailure(j, failure, m.now)); again {
			return m.moveJob(c.ID, j, func(e *state.JobMoved) {
				e.To, e.Due, e.Failure, e.Owner = state.JobPending, m.now.Add(wait), failure, ""
			})
		}
	}
	return m.giveUp(c, j, failure)
}

// giveUp fails a job for good and leaves a note for the operator.
func (m *Machine) giveUp(c *state.Case, j *state.Job, failure *workitem.Failure) error {
	if err := m.endJob(c.ID, j, func(e *state.JobMoved) { e.To, e.Failure = state.JobFailed, failure }); err != nil {
		return err
	}
	what := j.Name
	if what == "" {
		what = j.Kind
	}
	err := m.emit(&state.Noted{Case: c.ID, Task: taskOf(c, j), Code: state.NoteIncident,
		Text: fmt.Sprintf("job %s (%s) was given up: %s", j.ID, what, failure)})
	if err != nil {
		return err
	}
	if j.Kind == state.JobStart { // nothing else would ever happen to the case
		m.then(m.endCase(c.ID, state.CaseFailed, failure, false))
	}
	return m.run(0)
}

// Release takes a running job back from a worker that is gone. A crash counts against the job: one that takes its
// worker down more than [MaxCrashes] times, and records no step in between, is given up.
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
	return m.moveJob(c.ID, j, func(e *state.JobMoved) {
		e.To, e.Crashes, e.Owner, e.Lease, e.Attempt = state.JobPending, crashes, "", time.Time{}, j.Attempt-1
	})
}

// Reclaim takes a running job from its worker, whoever that is: it is pending again, and what the worker hands in later is
// refused. The error wraps [ErrLeaseLost] if no worker holds the job.
func (m *Machine) Reclaim(id workitem.JobID) error {
	_, j := m.tree.Job(id)
	if j == nil || j.State != state.JobRunning {
		return fmt.Errorf("job %s is not running: %w", id, ErrLeaseLost)
	}
	return m.Release(id, j.Fence, false)
}

// held finds a job that a worker holds, and makes it the cause of what follows.
func (m *Machine) held(id workitem.JobID, fence int64) (*state.Case, *state.Job, error) {
	m.cause = activities.CauseJob
	c, j := m.tree.Job(id)
	if j == nil {
		return nil, nil, fmt.Errorf("job %s has ended: %w", id, ErrLeaseLost)
	}
	if j.State != state.JobRunning || j.Fence != fence {
		return nil, nil, fmt.Errorf("job %s is %s with fence %d, and the worker holds fence %d: %w",
			id, j.State, j.Fence, fence, ErrLeaseLost)
	}
	return c, j, nil
}

// GiveUp fails a job that the worker holds, without a word to its item: the transaction that should have taken its
// result refuses every result, so a person has to look.
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
	return m.moveJob(c.ID, j, func(e *state.JobMoved) { e.Lease = lease })
}

func callFailure(j *state.Job, f *workitem.Failure, now time.Time) retry.Failure {
	return retry.Failure{Attempt: j.Attempt, Elapsed: now.Sub(j.Created), Err: f, Name: j.Name}
}
