// Package worker runs claimed jobs: it calls the function of a job, records its steps, and sends its result to the writer.
//
//	claim ──▶ NewJournal ──▶ Run ──▶ Settle, Yield or Release ──▶ the writer
//	                          │
//	                          └── steps ──▶ Journal ──▶ the writer
//
// Which job runs, and when, is decided above this package. A [Runner] calls the function of a job through these, from the outside in:
//
//	Run          runner.go    the steps of the function: step.Run is in its context
//	call         call.go      panics, middleware around jobs
//	function     call.go      the timeout of the task, the batch (batch.go), checks of the output
//	Run          activities   the function itself, after its input was decoded
package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/alarm"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Options configure a runner. Fields are required unless their comment says otherwise.
type Options struct {
	Context     context.Context // the parent of the contexts of batches; canceled when the engine stops waiting for its jobs
	Writer      *commit.Writer
	Definitions *registry.Registry
	Now         func() time.Time
	Alarms      *alarm.Clock
	Log         *slog.Logger
	Faults      *fault.Log
	Retrier     fault.Retrier
	Limited     bool // some functions have limits, so that their steps can have some
	Steps       int  // the maximum number of running functions of steps; no bound if it is not positive
	MaxPayload  int

	// AroundJob and AroundStep are middleware around the functions of jobs and steps; nil for none.
	AroundJob  func(ctx context.Context, w *activities.Work, next func(context.Context) error) error
	AroundStep func(ctx context.Context, w *activities.Work, name string, next func(context.Context) error) error

	// CheckPayload returns an error for a payload that is too large, or that some database would not store unchanged.
	CheckPayload func(what string, data json.RawMessage) error
}

// Runner runs the jobs of an engine. Make one with [New]. Its methods are safe for concurrent use.
type Runner struct {
	o        Options
	attempts attemptLog
	slots    chan struct{} // one for each running function of a step; nil without a bound
}

// New returns a runner.
func New(o Options) *Runner {
	r := &Runner{o: o, attempts: attemptLog{log: o.Log, definitions: o.Definitions}}
	if o.Steps > 0 {
		r.slots = make(chan struct{}, o.Steps)
	}
	return r
}

// Committed logs the attempts that a command has ended.
func (r *Runner) Committed(tree *state.Tree, changes []state.Change) {
	r.attempts.committed(tree, changes)
}

// Run runs a job: it calls the function, with the journal of its steps. taken is what was acquired for the function; nil if it has no
// limits. yield reports whether the worker is wanted back.
// The steps that the run has left for its end are in j.last: they are recorded with the result, in one commit.
func (r *Runner) Run(ctx context.Context, def *workflow.Definition, j *Journal, taken limit.Taken, yield func() bool) (
	output json.RawMessage, failure *workitem.Failure, how Ending,
) {
	info := r.infoOf(def, j)
	info.Yield = yield
	run := step.NewRun(j, info)
	if taken != nil {
		ctx = limit.NewContext(ctx, taken)
	}
	output, err := r.call(run.Context(ctx), def, j.w)
	outcome := run.End(err)
	j.last = outcome.Steps
	switch {
	case outcome.Suspended:
		return nil, nil, Suspended
	case outcome.Yielded:
		return nil, nil, Yielded
	case outcome.Err != nil:
		return nil, r.failureOf(def, j.w, outcome.Err), Returned
	}
	return output, nil, Returned
}

// Ending is how a call of a function has ended.
type Ending uint8

const (
	// Returned is the ending with a result, to be settled.
	Returned Ending = iota
	// Suspended is the ending of a job that was suspended for one of its steps.
	Suspended
	// Yielded is the ending of a job that is to be released.
	Yielded
)

// infoOf returns the description of a job for its steps.
func (r *Runner) infoOf(def *workflow.Definition, j *Journal) step.Info {
	w := j.w
	info := step.Info{Case: w.Case.ID, Job: w.Job, Attempt: w.Run, Log: r.o.Log, MaxResult: r.o.MaxPayload,
		Workflow: w.Case.Workflow, Function: functionOf(def, w).Name, Slots: r.slots, Cancel: j.cancel}
	if r.o.Limited {
		info.Limits = j
	}
	// All attempts of an item have the key of the first, so a service that is called with it sees one request.
	if w.Item != nil && w.Name == "" {
		info.Item, info.Key = w.Item.ID, w.First.String()
	}
	if around := r.o.AroundStep; around != nil {
		info.Around = func(ctx context.Context, name string, next func(context.Context) error) error {
			return around(ctx, w, name, next)
		}
	}
	return info
}
