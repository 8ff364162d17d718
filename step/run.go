package step

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tasq-dev/tasq/workitem"
)

// Info says which job a run does.
type Info struct {
	Case    workitem.CaseID
	Job     workitem.JobID
	Item    workitem.ID  // zero if the job belongs to no item
	Attempt int          // the attempt of the job, from 1; a run that goes on after a wait or a crash is the same attempt
	Key     string       // names the work over all its retries and restarts: what [Key] and [Rand] are made of
	Log     *slog.Logger // Default: slog.Default()

	// MaxResult is the longest result of a step, in bytes of JSON. Default: domain.MaxSize, which is also the most.
	MaxResult int
}

// Run is one run of a job: from the call of its function to the return. The engine makes one, and so does package steptest;
// the functions of this package find it in their context.
type Run struct {
	journal Journal
	info    Info

	suspended bool
	broken    error // what the journal said when it failed
}

// Outcome says how a run ended.
type Outcome struct {
	// Suspended says that the job was given up until one of its waiting steps ends. Whatever the function returned counts
	// for nothing then, and nothing is to be settled.
	Suspended bool

	// Err is what the job is to be settled with: nil, the function's error, or what was wrong with its steps, such as
	// ErrHistory. It wraps ErrLost if the job is no longer this run's, and nothing is to be settled.
	Err error

	// Steps are to be recorded in the transaction that settles the job: values that had no commit of their own.
	Steps []*workitem.Step
}

type runKey struct{}

// NewRun begins a run of a job whose steps the journal remembers. The run ends with [Run.End].
func NewRun(journal Journal, info Info) *Run {
	if info.Log == nil {
		info.Log = slog.Default()
	}
	return &Run{journal: journal, info: info}
}

// Context returns the context to call the job's function with.
func (r *Run) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, runKey{}, r)
}

// End ends the run, after the function has returned err (or has panicked: then with an error made of that). It waits
// for the branches that the function has left behind, and may suspend the job for them.
func (r *Run) End(err error) Outcome {
	switch {
	case r.broken != nil:
		return Outcome{Err: r.broken}
	case r.suspended:
		if !errors.Is(err, ErrSuspended) {
			r.info.Log.Warn("step: the function did not return ErrSuspended; its job is suspended all the same")
		}
		return Outcome{Suspended: true}
	}
	return Outcome{Err: err}
}
