package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/notify"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// RunInfo describes a root case: whether it runs, waits or is stuck, and how it ended. The error wraps ErrNotFound if there is no
// such case, or it was removed.
func (e *Engine) RunInfo(ctx context.Context, id workitem.CaseID) (workflow.RunInfo, error) {
	r, _, err := e.lookAtRun(id)(ctx)
	return r.info, err
}

// run is the state of a root case, for lookAtRun.
type run struct {
	c    *state.Case
	info workflow.RunInfo
}

// lookAtRun describes a case; done reports whether the case has ended or is stuck. A child case is examined after every
// change of its tree. A stuck run is detected by a pass through the whole tree, so only the first call does that.
func (e *Engine) lookAtRun(id workitem.CaseID) notify.Look[run] {
	first := true
	read := look(e, func(tx *commit.Tx) (r run, done bool, err error) {
		if r.c, err = tx.Case(id); err != nil {
			return r, false, err
		}
		r.info = runInfo(r.c, tx.Now())
		if first || r.c.Parent.IsZero() {
			if by := e.stuckBy(tx, id); by != nil {
				stuck(&r.info, by)
			}
		}
		return r, false, nil
	})
	return func(ctx context.Context) (run, bool, error) {
		r, _, err := read(ctx)
		if err != nil {
			return r, false, err
		}
		first = false
		return r, r.info.State.Final() || r.info.State == workflow.RunStuck, err
	}
}

// WaitRun waits until a root case has ended, or is stuck, and describes it.
func (e *Engine) WaitRun(ctx context.Context, id workitem.CaseID) (workflow.RunInfo, error) {
	var info workflow.RunInfo
	describe := e.lookAtRun(id)
	c, err := e.notifier.Wait(ctx, id, func(ctx context.Context) (*state.Case, bool, error) {
		if e.writer.HasJob(id) { // as in Wait: an incident that makes it stuck would be notified as well
			return nil, false, ctx.Err()
		}
		r, done, err := describe(ctx)
		info = r.info
		return r.c, done, err
	})
	if err != nil {
		return workflow.RunInfo{}, err
	}
	if c.State.Final() {
		return runInfo(c, e.now()), nil
	}
	return info, nil
}

// The state of a live run follows from its first job in the order of this table:
//
//	a job runs                                     running
//	the case is suspended                          suspended
//	no job at all                                  waiting, for a person or an event
//	suspended at a step, until an event or a time  waiting, Next is its time if it has one
//	due now                                        pending: for a worker, a limit or a paused queue
//	due later, and nothing of it was tried yet     scheduled
//	due later                                      waiting, for the next attempt
//
// Whether a run is stuck is determined separately, since it takes a pass through the whole tree (see stuckBy).

// runInfo returns the description of a root case.
func runInfo(c *state.Case, now time.Time) workflow.RunInfo {
	info := workflow.RunInfo{Case: kernel.Info(c), Failure: c.Failure, Created: c.Created, Ended: c.Ended}
	var last *workitem.Item
	for it := range c.Items.All() {
		last = it
	}
	// Only the run of a single function has attempts of its own; those of a workflow belong to its items.
	action := c.IsFunction()
	if last != nil && action {
		info.Attempt = attemptOf(last)
	}
	if c.State.Final() {
		info.State = workflow.RunState(c.State.String())
		return info
	}
	info.State = workflow.RunRunning
	// The failure of a live run is why it makes another attempt, and belongs to the attempt before.
	if last != nil && last.Attempt > 1 {
		if before := c.Item(last.Predecessor); before != nil {
			info.Failure = before.Failure
		}
	}
	job := soonest(c)
	switch {
	case job == nil:
		info.State = workflow.RunWaiting
	case job.State == state.JobWaiting:
		info.State, info.Next = workflow.RunWaiting, job.Due
	case job.State == state.JobPending && !job.Due.After(now):
		info.State = workflow.RunPending
	case job.State == state.JobPending && (job.Kind == state.JobStart || action && info.Attempt == 0):
		info.State, info.Next = workflow.RunScheduled, job.Due
	case job.State == state.JobPending:
		info.State, info.Next = workflow.RunWaiting, job.Due
	}
	if c.Suspended != nil && info.State != workflow.RunRunning {
		info.State, info.Next = workflow.RunSuspended, time.Time{}
	}
	return info
}

// attemptOf returns the attempt of an item: the next one counts once it has started.
func attemptOf(it *workitem.Item) int {
	if it.State == workitem.Initialized || it.State == workitem.Canceled && it.Started.IsZero() {
		return it.Attempt - 1
	}
	return it.Attempt
}

// soonest returns the job that describes a live case best: a running one, or else the one that is due first.
// Timers, calls and incidents do not count: a run that waits for a person is not pending because its timeout is due.
func soonest(c *state.Case) *state.Job {
	rank := func(j *state.Job) int {
		if j.State == state.JobRunning {
			return 0
		}
		return 1
	}
	var jobs []*state.Job
	for j := range c.Jobs.All() {
		if j.Kind == state.JobRun || j.Kind == state.JobStart || j.Kind == state.JobWake {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	return slices.MinFunc(jobs, func(a, b *state.Job) int {
		return cmp.Or(rank(a)-rank(b), a.Due.Compare(b.Due))
	})
}
