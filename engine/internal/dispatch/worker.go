package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/readable"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A worker calls the function of a job through these, from the outside in:
//
//	claim.do     limits, batch; settles or releases the job, whatever has happened inside
//	run          the steps of the function: step.Run is in its context
//	call         panics, Config.AroundJob
//	function     the timeout of the task, the batch, checks of the output
//	Run          the function itself, after its input was decoded

// run runs a job: it calls the function, with the journal of its steps.
// The steps that the run has left for its end are in j.last: they are recorded with the result, in one commit.
func (d *Dispatcher) run(ctx context.Context, def *workflow.Definition, w *activities.Work, j *journal) (
	output json.RawMessage, failure *workitem.Failure, how ending,
) {
	run := step.NewRun(j, d.infoOf(def, w, j))
	if j.n.ticket != nil {
		ctx = limit.NewContext(ctx, jobLease{d, j.n.ticket})
	}
	output, err := d.call(run.Context(ctx), def, w)
	outcome := run.End(err)
	j.last = outcome.Steps
	switch {
	case outcome.Suspended:
		return nil, nil, suspended
	case outcome.Yielded:
		return nil, nil, yielded
	case outcome.Err != nil:
		return nil, d.failureOf(def, w, outcome.Err), returned
	}
	return output, nil, returned
}

// ending is how a call of a function has ended.
type ending uint8

const (
	returned  ending = iota // with a result, to be settled
	suspended               // its job was suspended for one of its steps
	yielded                 // its job is to be released
)

// infoOf returns the description of a job for its steps.
func (d *Dispatcher) infoOf(def *workflow.Definition, w *activities.Work, j *journal) step.Info {
	info := step.Info{Case: w.Case.ID, Job: w.Job, Attempt: w.Run, Log: d.o.Log, MaxResult: d.o.MaxPayload,
		Workflow: w.Case.Workflow, Function: functionOf(def, w).Name, Slots: d.slots, Cancel: j.cancel,
		Yield: func() bool { return d.sched.mustRelease(j.n) }}
	if len(d.o.Limits) > 0 {
		info.Limits = j
	}
	// All attempts of an item have the key of the first, so a service that is called with it sees one request.
	if w.Item != nil && w.Name == "" {
		info.Item, info.Key = w.Item.ID, w.First.String()
	}
	if around := d.o.AroundStep; around != nil {
		info.Around = func(ctx context.Context, name string, next func(context.Context) error) error {
			return around(ctx, w, name, next)
		}
	}
	return info
}

// call calls the function of a job with its middleware. Panics and timeouts are failures like any other.
func (d *Dispatcher) call(ctx context.Context, def *workflow.Definition, w *activities.Work) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = retry.NewPanicError(p)
		}
		// An error whose own methods panic is replaced: it is formatted later, where no panic is expected.
		err = cmp.Or(readable.Error(err), err)
	}()
	if d.o.AroundJob == nil {
		return d.function(ctx, def, w)
	}
	err = d.o.AroundJob(ctx, w, func(ctx context.Context) (err error) {
		output, err = d.function(ctx, def, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	return output, nil
}

// function calls the function of a job.
func (d *Dispatcher) function(ctx context.Context, def *workflow.Definition, w *activities.Work) (output json.RawMessage, err error) {
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
	// The time counts from the call and not from the claim, which may have waited for its commit.
	if spec.RunTimeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, spec.RunTimeout)
		defer cancel()
	}
	if spec.Batch != nil {
		g, _ := ctx.Value(groupKey{}).(*group)
		// A job that was claimed alone, as after a retry, is a batch of one.
		if g == nil {
			g = newGroup(d, w.Job)
		}
		output, err = g.join(ctx, spec.Batch, w)
	} else {
		output, err = spec.Run(ctx, w)
	}
	if err != nil {
		return nil, overtime(ctx, err, spec.RunTimeout)
	}
	// Otherwise the function has returned a checked value of the right type.
	if spec.Batch != nil || !spec.RunAccepts {
		output, err = kernel.Accept(spec, workitem.Complete, output)
	}
	if err == nil {
		err = d.o.CheckPayload("output", output)
	}
	if err != nil {
		return nil, &activities.OutputError{Err: err}
	}
	return output, nil
}

// settle settles a job with its result. If the kernel refuses the result, the job fails; if it refuses the failure too,
// or the command exceeds its bounds, which is a fault of the net and not of the work, the job becomes an incident.
// After a fault of the store the same result is sent again until the store accepts it or the engine closes.
func (d *Dispatcher) settle(j *journal, output json.RawMessage, failure *workitem.Failure) {
	n := j.n
	err := d.submitSettle(j, output, failure)
	if err == nil || d.refused(n, err) {
		return
	}
	// The failure is tried once: if the kernel refuses it as well, there is no result that it would take.
	if failure == nil && !errors.Is(err, kernel.ErrRunaway) {
		failure = refusal(err)
		if errors.Is(err, errUnrecorded) {
			j.setLatest(nil) // the job fails because of it
		}
		if err = d.submitSettle(j, nil, failure); err == nil || d.refused(n, err) {
			return
		}
	}
	d.o.Log.Error("the process refuses every result of a job; it is given up", "job", n.job, "case", n.root, "error", err)
	d.giveUp(j, causeOf(err))
}

// causeOf is workitem.FailureOf with the code of a command that exceeded the bounds of the kernel.
func causeOf(err error) *workitem.Failure {
	failure := workitem.FailureOf(err)
	if errors.Is(err, kernel.ErrRunaway) {
		failure.Code = workitem.CodeRunaway
	}
	return failure
}

// giveUp turns a job that can end in no other way into an incident. Until that is committed, the job is not run again.
func (d *Dispatcher) giveUp(j *journal, failure *workitem.Failure) {
	n := j.n
	for tries := 0; ; tries++ {
		err := d.o.Writer.Submit(context.Background(), d.onJob(n, "job give up", false, func(m *kernel.Machine) error {
			return m.GiveUp(n.job, j.fence.Load(), failure)
		}))
		if err == nil || d.refused(n, err) {
			return
		}
		d.o.Faults.Note("giving up", err, "a job could not be given up; it is tried again", "job", n.job, "case", n.root)
		if !d.o.Retrier.Pause(d.o.Context, tries) {
			return
		}
	}
}

// refused reports whether an error says that the result is no longer needed, so that it is dropped.
// A job that was canceled, or claimed by another engine after its lease, has its outcome elsewhere.
func (d *Dispatcher) refused(n entry, err error) bool {
	if unwanted(err) {
		d.o.Log.Debug("a late result was refused", "job", n.job, "case", n.root, "reason", err)
		return true
	}
	return false
}

// submitSettle sends the result of a job. The attempt is logged once the result is committed, so that no line of the log
// is about a result that the database does not have.
func (d *Dispatcher) submitSettle(j *journal, output json.RawMessage, failure *workitem.Failure) error {
	return d.submitEnd(j, "job settle", func(m *kernel.Machine) error { return m.Settle(j.n.job, j.fence.Load(), output, failure) },
		func(changes []state.Change) { d.attempts.call(j.w, failure, changes) })
}

// yield releases the job of a function that has yielded its worker. If it cannot be released now, its lease expires.
func (d *Dispatcher) yield(j *journal) {
	release := func() error {
		return d.submitEnd(j, "job yield", func(m *kernel.Machine) error { return m.Release(j.n.job, j.fence.Load(), false) }, nil)
	}
	err := release()
	if errors.Is(err, errUnrecorded) {
		j.setLatest(nil) // the step runs again, and the function gets the refusal then
		err = release()
	}
	if err != nil && !d.refused(j.n, err) {
		d.o.Log.Error("a job could not give its worker back; it is due again when its lease is over", "job", j.n.job, "case", j.n.root, "error", err)
	}
}

// submitEnd ends a run by a command, together with the steps that are still to be recorded. It calls done, if not nil,
// with the changes of the command.
// The context is not that of the job: a result is also recorded while the engine closes, or after the job's context
// has ended.
func (d *Dispatcher) submitEnd(j *journal, word string, end func(*kernel.Machine) error, done func([]state.Change)) error {
	later := j.queued()
	return d.o.Retrier.Retry(d.o.Context, func() error {
		r := d.onJob(j.n, word, false, func(m *kernel.Machine) error {
			if err := later.missing(); err != nil {
				return err
			}
			if len(j.last) > 0 {
				if _, err := m.RecordSteps(j.n.job, j.fence.Load(), j.last); err != nil {
					return err
				}
			}
			return end(m)
		})
		err := d.o.Writer.Submit(context.Background(), r)
		if err == nil && done != nil {
			done(r.Changes())
		}
		return err
	})
}

// Recover loads the pending jobs, and releases those that a process was running when it died.
func (d *Dispatcher) Recover(ctx context.Context) error {
	page := store.Page{Limit: 10_000}
	for {
		var jobs []*state.Job
		err := d.o.Store.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobRunning}, Page: page})
			return err
		})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			err := d.o.Writer.Submit(ctx, d.onJob(entry{job: j.ID, root: j.Root}, "job release", false, func(m *kernel.Machine) error {
				return m.Release(j.ID, j.Fence, true)
			}))
			if err != nil && !errors.Is(err, kernel.ErrLeaseLost) {
				return fmt.Errorf("job %s: %w", j.ID, err)
			}
		}
		if len(jobs) < page.Limit {
			return d.addPending(ctx)
		}
		page.After = jobs[len(jobs)-1].ID.String()
	}
}

// Jobs are read in pages, in the order of their ids, each in a view of its own: an engine with a million pending jobs
// opens in bounded memory beyond that of its entries.

// addPending adds the pending jobs to the scheduler. Any of them may have crashed the previous process: it may have run
// without a durable claim. So each is claimed durably before it runs, and from now on its crashes are counted.
func (d *Dispatcher) addPending(ctx context.Context) error {
	d.sched.mu.Lock()
	d.sched.waiting.clear()
	d.sched.mu.Unlock()
	page := store.Page{Limit: 10_000}
	for {
		var jobs []*state.Job
		err := d.o.Store.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobPending, state.JobWaiting}, Page: page})
			return err
		})
		if err != nil {
			return err
		}
		d.sched.mu.Lock()
		for _, j := range jobs {
			d.sched.add(nil, j, true)
		}
		d.sched.mu.Unlock()
		if len(jobs) < page.Limit {
			return nil
		}
		page.After = jobs[len(jobs)-1].ID.String()
	}
}

// releaseRunning releases the jobs whose functions did not end in time.
// It works on a snapshot, since each release changes the claims.
func (d *Dispatcher) releaseRunning() {
	d.sched.mu.Lock()
	left := d.sched.claims.snapshot()
	d.sched.mu.Unlock()
	for id, r := range left {
		d.release(id, r.root, r.steps)
	}
}

// release releases a job that this engine cannot end. If the engine is closing, the next process that opens the store
// releases it instead.
func (d *Dispatcher) release(id workitem.JobID, root workitem.CaseID, j *journal) {
	err := d.o.Writer.Submit(context.Background(), d.onJob(entry{job: id, root: root}, "job release", false, func(m *kernel.Machine) error {
		return m.Release(id, j.fence.Load(), false)
	}))
	if err != nil && !unwanted(err) {
		d.o.Log.Error("a job could not be given back; it is when the engine is opened next", "job", id, "error", err)
	}
}
