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

// Leases gives jobs to workers, and takes their results. A worker holds a job until its lease ends; what it sends has the fence of its
// claim.
type Leases struct {
	*record
	agenda      *agenda
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	incidents   *incidents
	items       *items
	recorded    *recordedSteps
}

// Claim gives a job to a worker: a pending one, or a suspended one that is due. It starts the item of a run. The error
// wraps [ErrNotDue] if a suspended job has to wait, [ErrLeaseLost] if another worker has the job, and [ErrNotFound] if
// the job has ended.
//
// The states of a job, and what moves it:
//
//	          Claim             Settle
//	pending ─────────▶ running ─────────▶ done, failed
//	   ▲ ▲               │  │
//	   │ └───────────────┘  │ Suspend
//	   │ Release, a retry   ▼
//	   └────────────────  waiting ──▶ running
//	     a step ends              Claim, once it is due
//
// Every claim increases the fence. A worker that has lost its lease without noticing has an older one, and its commands
// are refused: two workers may run the same function for a while, but only one of them can record a result.
//
// The job moves before the item starts, in one command. If the start ends the item, by a hook or the policy of the
// task, the job is canceled with it. The result is then nil without an error: there is no work.
func (ls *Leases) Claim(id workitem.JobID, owner string, lease time.Time) (*activities.Work, error) {
	c, j := ls.tree.Job(id)
	if j == nil {
		return nil, fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	ls.callbacks.cause = activities.CauseJob
	if err := mayClaim(j, ls.now); err != nil {
		return nil, err
	}
	if !j.Detached {
		if err := mayBegin(ls.tree, c, "job "+j.ID.String()); err != nil {
			return nil, err
		}
	}
	if err := ls.jobs.endWaits(c.ID, id); err != nil {
		return nil, err
	}
	err := ls.jobs.move(c.ID, j, func(e *state.JobMoved) {
		e.To, e.Owner, e.Lease, e.Fence, e.Attempt = state.JobRunning, owner, lease, j.Fence+1, j.Attempt+1
	})
	if err != nil {
		return nil, err
	}
	it := c.Item(j.Item)
	w, err := ls.work(c, j, it)
	if err != nil {
		return nil, err
	}
	if it == nil || j.Kind != state.JobRun || it.State != workitem.Initialized {
		return w, ls.agenda.run(0)
	}
	ls.agenda.push(ls.items.act(c.ID, it.ID, move{do: workitem.Start}))
	if err := ls.agenda.run(0); err != nil {
		return nil, err
	}
	if _, still := ls.tree.Job(id); still == nil {
		return nil, nil
	}
	return w, nil
}

// mayClaim returns why a job cannot be claimed now. A pending job can be claimed before it is due: the dispatcher
// checks the time, and a person who retries an item does not have to wait. A suspended one cannot, since its steps
// decide when it continues.
func mayClaim(j *state.Job, now time.Time) error {
	switch {
	case j.State == state.JobPending:
		return nil
	case j.State != state.JobWaiting:
		return fmt.Errorf("job %s is %s: %w", j.ID, j.State, ErrLeaseLost)
	case j.Due.IsZero() || j.Due.After(now):
		return fmt.Errorf("job %s: %w", j.ID, ErrNotDue)
	}
	return nil
}

// work returns what the worker of a claim gets. The item is nil for a job that has none. It is made before the claim is
// applied to the job, so it adds what the claim changes.
//
// The attempt of an item counts its predecessors, the run counts the claims of this job: an item in its third attempt
// whose job was suspended once has attempt 3 and run 1, since a suspended run does not use up an attempt.
func (ls *Leases) work(c *state.Case, j *state.Job, it *workitem.Item) (*activities.Work, error) {
	w := &activities.Work{Case: Info(c), Job: j.ID, Name: j.Name, Item: it, Input: j.Input, Attempt: j.Attempt + 1,
		Run: j.Attempt + 1, Fence: j.Fence + 1, Began: j.Created, Queue: j.Queue, Due: j.Due}
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
	err := traced(ls.tree, w)
	if err != nil {
		return nil, err
	}
	w.Steps, err = ls.recorded.earlier(c, j, it)
	return w, err
}

// traced sets the trace of the root case on a job.
func traced(tree *state.Tree, w *activities.Work) error {
	root := tree.Case(tree.Root)
	if root == nil || len(root.Options) == 0 {
		return nil
	}
	o, err := workflow.OptionsOf(Info(root))
	w.Trace = o.Trace
	return err
}

// first returns the first attempt of an item. The items of an activation stay in memory until the task is enabled
// again, so the chain is complete, except for an oldest link that belongs to an earlier activation, of which only the
// id is known.
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

// restarted makes the first item of a restarted case continue the work of the original: its id is the key that outside
// services have seen, and with the same key they recognise a second request. Further items that a person adds are work
// of their own.
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

// FirstItem returns the id of the first work item of a case; zero if it had none.
func FirstItem(c *state.Case) workitem.ID {
	for it := range c.Items.All() {
		return it.ID
	}
	return workitem.ID{}
}

// Settle ends a running job with its result: an output as [Accept] returned it to the worker, which decodes it because
// the writer's goroutine has no time for that, or a failure. The fence must be that of the claim.
//
// The job ends before its item changes. So the hooks of the item, one of which may open the next attempt, see a tree in
// which this attempt has ended, and the child cases of its steps too: their cancellation is pushed above the move.
func (ls *Leases) Settle(id workitem.JobID, fence int64, output json.RawMessage, failure *workitem.Failure) error {
	c, j, err := ls.held(id, fence)
	if err != nil {
		return err
	}
	if j.Kind == state.JobCall {
		return ls.settleCall(c, j, failure)
	}
	mv := move{do: workitem.Complete, payload: output, accepted: true}
	if failure != nil {
		mv = move{do: workitem.Fail}
		if mv.payload, err = json.Marshal(failure); err != nil {
			return err
		}
	}
	ls.agenda.push(ls.items.act(c.ID, j.Item, mv)) // after the child cases of its steps have ended
	err = ls.jobs.end(c.ID, j, func(e *state.JobMoved) { e.To, e.Failure = state.JobDone, failure })
	if err != nil {
		return err
	}
	return ls.agenda.run(0)
}

// settleCall ends a call, or postpones it until its next attempt. A call is retried as the same job, unlike a work
// item, whose attempts are separate items: no net waits for its outcome, and only the last failure is of interest.
func (ls *Leases) settleCall(c *state.Case, j *state.Job, failure *workitem.Failure) error {
	if failure == nil {
		if err := ls.jobs.end(c.ID, j, func(e *state.JobMoved) { e.To = state.JobDone }); err != nil {
			return err
		}
		return ls.agenda.run(0)
	}
	d, err := ls.definitions.of(c)
	if err != nil {
		return err
	}
	if call := d.Calls[j.Name]; call != nil && failure.Retryable {
		p := call.Retry
		p.Filters = nil // the worker has evaluated them; the failure has the result
		if wait, again := p.Next(callFailure(j, failure, ls.now)); again {
			return ls.jobs.move(c.ID, j, func(e *state.JobMoved) {
				e.To, e.Due, e.Failure, e.Owner, e.Lease = state.JobPending, ls.now.Add(wait), failure, "", time.Time{}
			})
		}
	}
	return ls.incidents.giveUp(c, j, failure)
}

// Release takes a running job from a worker that is gone. A crash counts: a job that crashes its process more than
// [MaxCrashes] times without recording a step is given up.
//
// The attempt does not count in either case: a crash says nothing about the work, and a policy of three attempts means
// three results of the function.
func (ls *Leases) Release(id workitem.JobID, fence int64, crashed bool) error {
	c, j, err := ls.held(id, fence)
	if err != nil {
		return err
	}
	crashes := j.Crashes
	if crashed {
		crashes++
	}
	if crashes > MaxCrashes {
		return ls.incidents.giveUp(c, j, &workitem.Failure{Code: workitem.CodeCrash,
			Message: fmt.Sprintf("its worker died %d times while it ran", crashes)})
	}
	return ls.jobs.move(c.ID, j, func(e *state.JobMoved) {
		e.To, e.Crashes, e.Owner, e.Lease, e.Attempt = state.JobPending, crashes, "", time.Time{}, j.Attempt-1
	})
}

// Reclaim takes a running job from its worker, without the fence: it is pending again, and the results of the worker
// are refused. The error wraps [ErrLeaseLost] if no worker has the job.
func (ls *Leases) Reclaim(id workitem.JobID) error {
	_, j := ls.tree.Job(id)
	if j == nil || j.State != state.JobRunning {
		return fmt.Errorf("job %s is not running: %w", id, ErrLeaseLost)
	}
	return ls.Release(id, j.Fence, false)
}

// held returns a job that a worker holds, and makes it the cause of the changes that follow. Every command of a worker
// begins with it: this is where fences are checked.
func (ls *Leases) held(id workitem.JobID, fence int64) (*state.Case, *state.Job, error) {
	ls.callbacks.cause = activities.CauseJob
	c, j := ls.tree.Job(id)
	if j == nil {
		return nil, nil, fmt.Errorf("job %s has ended: %w", id, ErrLeaseLost)
	}
	if j.State != state.JobRunning || j.Fence != fence {
		return nil, nil, fmt.Errorf("job %s is %s with fence %d, and the worker holds fence %d: %w",
			id, j.State, j.Fence, fence, ErrLeaseLost)
	}
	return c, j, nil
}

// GiveUp fails a job of a worker without changing its item: the kernel refuses every result of it, so a person has to
// look.
func (ls *Leases) GiveUp(id workitem.JobID, fence int64, failure *workitem.Failure) error {
	c, j, err := ls.held(id, fence)
	if err != nil {
		return err
	}
	return ls.incidents.giveUp(c, j, failure)
}

// Renew extends the lease of a running job.
func (ls *Leases) Renew(id workitem.JobID, fence int64, lease time.Time) error {
	c, j, err := ls.held(id, fence)
	if err != nil {
		return err
	}
	return ls.jobs.move(c.ID, j, func(e *state.JobMoved) { e.Lease = lease })
}

// callFailure returns the input of the retry policy of a call. The time counts from the creation of the job, over all
// its attempts.
func callFailure(j *state.Job, f *workitem.Failure, now time.Time) retry.Failure {
	return retry.Failure{Attempt: j.Attempt, Elapsed: now.Sub(j.Created), Err: f, Name: j.Name}
}
