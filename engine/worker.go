package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// maxTries is how often something that the engine itself does for a job may fail before a person has to look.
const maxTries = 10

// backoff is how long the engine waits after such a failure.
var backoff = retry.Policy{Attempts: maxTries, Initial: time.Second, MaxWait: time.Minute}

// onJob runs a kernel command on the tree of a job.
func (e *Engine) onJob(root workitem.CaseID, command string, lazy bool, f func(*kernel.Machine) error) *request {
	return &request{lazy: lazy, run: func(tx *Tx) error {
		u, err := tx.open(root)
		if err != nil {
			return err
		}
		return tx.internal(u, command, f)
	}}
}

// run does a job: it calls the function behind it, and sees to its steps. A function that waits for one of its steps has given
// the job up when it returns.
func (e *Engine) run(ctx context.Context, def *workflow.Definition, w *activities.Work, j *journal) (
	output json.RawMessage, failure *workitem.Failure, suspended bool,
) {
	run := step.NewRun(j, e.infoOf(def, w))
	output, err := e.call(run.Context(ctx), def, w)
	outcome := run.End(err)
	j.last = outcome.Steps
	if outcome.Suspended {
		return nil, nil, true
	}
	if outcome.Err != nil {
		return nil, e.failureOf(def, w, outcome.Err), false
	}
	return output, nil, false
}

// infoOf describes a job to its steps.
func (e *Engine) infoOf(def *workflow.Definition, w *activities.Work) step.Info {
	info := step.Info{Case: w.Case.ID, Job: w.Job, Attempt: w.Run, Key: w.Job.String(), Log: e.log, MaxResult: e.cfg.MaxPayload,
		Workflow: w.Case.Workflow, Function: functionOf(def, w).Name, Slots: e.slots}
	if w.Item != nil && w.Name == "" {
		info.Item, info.Key = w.Item.ID, w.First.String()
	}
	return info
}

// call calls the function behind a job. Panics and overruns are failures like any other.
func (e *Engine) call(ctx context.Context, def *workflow.Definition, w *activities.Work) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = retry.NewPanicError(p)
		}
	}()
	if w.Name != "" {
		call := def.Calls[w.Name]
		if call == nil {
			return nil, &workitem.Failure{Code: workitem.CodeError,
				Message: fmt.Sprintf("workflow %s has no function %q", def.Name, w.Name)}
		}
		return nil, call.Run(ctx, w)
	}
	t, _ := def.Net.TaskByName(w.Item.Task)
	spec := &def.Tasks[t]
	if spec.RunTimeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, spec.RunTimeout)
		defer cancel()
	}
	if output, err = spec.Run(ctx, w); err != nil {
		return nil, overtime(ctx, err, spec.RunTimeout)
	}
	if err = e.checkPayload("output", output); err != nil {
		return nil, &activities.OutputError{Err: err}
	}
	return output, nil
}

// settle hands the result of a job in. A result that the process refuses becomes a failure, a failure that it refuses becomes an
// incident. A fault of the store changes nothing of that: the same is handed in again until the store takes it or the engine
// closes.
func (e *Engine) settle(
	n entry, w *activities.Work, output json.RawMessage, failure *workitem.Failure, steps ...*workitem.Step,
) {
	err := e.submitSettle(n, w, output, failure, steps)
	if err == nil || e.refused(n, err) {
		return
	}
	if failure == nil {
		failure = refusal(err)
		if err = e.submitSettle(n, w, nil, failure, steps); err == nil || e.refused(n, err) {
			return
		}
	}
	e.log.Error("the process refuses both the result and the failure of a job; it is given up",
		"job", n.job, "case", n.root, "error", err)
	e.giveUp(n, w, workitem.FailureOf(err))
}

// giveUp ends a job that can end in no other way. Until that is done, nothing else is done for it.
func (e *Engine) giveUp(n entry, w *activities.Work, failure *workitem.Failure) {
	for tries := 0; ; tries++ {
		err := e.submit(context.Background(), e.onJob(n.root, "job give up", false, func(m *kernel.Machine) error {
			return m.GiveUp(n.job, w.Fence, failure)
		}))
		if err == nil || e.refused(n, err) {
			return
		}
		e.faults.note("giving up", err, "a job could not be given up; it is tried again", "job", n.job, "case", n.root)
		if !e.pause(e.ctx, tries) {
			return
		}
	}
}

// refused reports whether an error means that the result is not wanted any more, which is the end of it.
func (e *Engine) refused(n entry, err error) bool {
	if unwanted(err) {
		e.log.Debug("a late result was refused", "job", n.job, "case", n.root, "reason", err)
		return true
	}
	return false
}

func (e *Engine) submitSettle(
	n entry, w *activities.Work, output json.RawMessage, failure *workitem.Failure, steps []*workitem.Step,
) error {
	return e.insist(e.ctx, func() error {
		r := e.onJob(n.root, "job settle", false, func(m *kernel.Machine) error {
			if len(steps) > 0 {
				if _, err := m.RecordSteps(n.job, w.Fence, steps); err != nil {
					return err
				}
			}
			return m.Settle(n.job, w.Fence, output, failure)
		})
		err := e.submit(context.Background(), r)
		if err == nil {
			e.attempts.call(w, failure, r.tx.writes[0].changes())
		}
		return err
	})
}

// recover takes up the pending jobs, and takes back those that a process that died was running.
func (e *Engine) recover(ctx context.Context) error {
	page := store.Page{Limit: 10_000}
	for {
		var jobs []*state.Job
		err := e.store.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobRunning}, Page: page})
			return err
		})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			err := e.submit(ctx, e.onJob(j.Root, "job release", false, func(m *kernel.Machine) error {
				return m.Release(j.ID, j.Fence, true)
			}))
			if err != nil && !errors.Is(err, ErrLeaseLost) {
				return fmt.Errorf("job %s: %w", j.ID, err)
			}
		}
		if len(jobs) < page.Limit {
			return e.takeUp(ctx)
		}
		page.After = jobs[len(jobs)-1].ID.String()
	}
}

// takeUp fills the scheduler. Any of the jobs may have ended the process before this one: it may have been called, and its claim not
// been durable. So each is claimed durably before it runs, and what it ends from now on is counted.
func (e *Engine) takeUp(ctx context.Context) error {
	e.sched.mu.Lock()
	e.sched.waiting = nil
	e.sched.mu.Unlock()
	page := store.Page{Limit: 10_000}
	for {
		var jobs []*state.Job
		err := e.store.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobPending, state.JobWaiting}, Page: page})
			return err
		})
		if err != nil {
			return err
		}
		e.sched.mu.Lock()
		for _, j := range jobs {
			e.sched.add(j, true)
		}
		e.sched.mu.Unlock()
		if len(jobs) < page.Limit {
			return nil
		}
		page.After = jobs[len(jobs)-1].ID.String()
	}
}

// giveBack releases the jobs whose workers did not end in time.
func (e *Engine) giveBack() {
	e.sched.mu.Lock()
	left := make(map[workitem.JobID]*running, len(e.sched.running))
	for id, r := range e.sched.running {
		left[id] = r
	}
	e.sched.mu.Unlock()
	for id, r := range left {
		e.release(id, r.root, r.fence)
	}
}

// release gives a job back that this engine will not end. Once the engine is closing for good, that is the matter of the next
// one that opens the store.
func (e *Engine) release(id workitem.JobID, root workitem.CaseID, fence int64) {
	err := e.submit(context.Background(), e.onJob(root, "job release", false, func(m *kernel.Machine) error {
		return m.Release(id, fence, false)
	}))
	if err != nil && !unwanted(err) {
		e.log.Error("a job could not be given back; it is when the engine is opened next", "job", id, "error", err)
	}
}
