package step

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Info describes the job of a run to [NewRun].
type Info struct {
	Case    workitem.CaseID
	Job     workitem.JobID
	Item    workitem.ID  // zero if the job belongs to no item
	Attempt int          // of the job, from 1; a run that continues after a wait or a crash is the same attempt
	Log     *slog.Logger // Default: slog.Default()

	// Workflow and Function name the work in the log: the workflow of the case, and the task, the function or the
	// job. Default: "", which is omitted.
	Workflow, Function string

	// Key identifies the work over all retries and restarts: [Key] and [Rand] are derived from it. Default: the job's
	// id.
	Key string

	// Slots is a semaphore that limits how many functions of [Do] run concurrently, over all runs that share the
	// channel. Default: nil, which is no limit.
	Slots chan struct{}

	// Yield reports whether the worker is wanted back; [Yield] calls it. It must not block. Default: nil, which is
	// never.
	Yield func() bool

	// Limits admits the calls of steps with [Limits]. Default: nil, which admits all.
	Limits Limiter

	// Around is middleware for each call of the function of a [Do] or a [Tx]: next calls the function. Default: nil,
	// which is none.
	Around func(ctx context.Context, name string, next func(context.Context) error) error

	// Cancel cancels the context that is passed to [Run.Context], which belongs to this run alone. Default: nil; the
	// run then derives a context of its own.
	Cancel context.CancelCauseFunc

	// MaxResult is the longest result of a step, in bytes of JSON. Default: domain.MaxSize, which is also the most.
	MaxResult int
}

// Run is one run of a job: from the call of its function to the return. The engine makes one, and so does package
// steptest; the functions of this package find it in their context.
type Run struct {
	journal Journal
	info    Info
	ctx     context.Context
	cancel  context.CancelCauseFunc
	once    sync.Once      // reads the journal
	work    sync.WaitGroup // the goroutines of branches
	main    *branch

	// What every run has of its own, in the memory of the run.
	mainBranch branch
	mainScope  scope

	mu       sync.Mutex          // never held while the journal is called
	entries  map[string]*entry   // by the names of their steps; nil if there is none
	order    []*entry            // those that earlier runs recorded, oldest first
	unmet    int                 // of these, those that the function has still to come to
	choices  int                 // of these, choices between branches
	owed     int                 // of these, those of this attempt of the job, of which none may be left over
	out      map[string]*verdict // why, for the steps of branches that were not chosen
	loaded   bool
	early    []*workitem.Step // reported before the journal was read
	pending  []*workitem.Step // to be recorded with whatever is recorded next
	queued   *queued          // the record that the function has gone on without; nil if all records are durable
	latest   time.Time        // the latest time that a step of this run has seen
	branches []*branch        // all but main
	unknown  int              // of these, those whose result is not known
	ending   bool             // the function has returned, and its branches are waited for
	wrong    error            // the first mistake that the function can't be allowed to hide
	turns    turns
	endedBy  error         // why nothing more is done; nil while the run continues
	done     chan struct{} // closed when over is set
}

// Outcome describes how a run ended.
type Outcome struct {
	// Suspended says that the job is suspended until one of its waiting steps ends. The return value of the
	// function is ignored, and the job must not be settled.
	Suspended bool

	// Yielded says that the job has released its worker: release it, together with Steps, so that it becomes due again.
	// The return value of the function is ignored.
	Yielded bool

	// Err is the result to settle the job with: nil, the function's error, or an error of its steps, such as
	// ErrHistory. If it wraps ErrLost, this run has lost the job, which must not be settled.
	Err error

	// Steps must be recorded in the transaction that settles or releases the job: values without a commit of their own.
	// They follow those of the last call of [Journal.Queue].
	Steps []*workitem.Step
}

// scope is what a context knows of a run.
type scope struct {
	run    *Run
	branch *branch
	inside string // the step whose function was given the context; "" outside
}

type scopeKey struct{}

func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

var errEnded = fmt.Errorf("the function of this job has returned: %w", ErrNoJob)

// NewRun begins a run of a job whose steps are recorded in the journal. Every run must be ended with [Run.End].
func NewRun(journal Journal, info Info) *Run {
	if info.Log == nil {
		info.Log = slog.Default()
	}
	if info.MaxResult <= 0 || info.MaxResult > domain.MaxSize {
		info.MaxResult = domain.MaxSize
	}
	if info.Key == "" {
		info.Key = info.Job.String()
	}
	r := &Run{journal: journal, info: info, done: make(chan struct{}), ctx: context.Background(), cancel: func(error) {}}
	r.mainBranch = branch{run: r, cancel: func(error) {}}
	r.main = &r.mainBranch
	r.mainScope = scope{run: r, branch: r.main}
	r.turns.count[running] = 1
	return r
}

// Context returns the context to call the job's function with. It ends with the run.
func (r *Run) Context(ctx context.Context) context.Context {
	if r.ctx, r.cancel = ctx, r.info.Cancel; r.cancel == nil {
		r.ctx, r.cancel = context.WithCancelCause(ctx)
	}
	return context.WithValue(r.ctx, scopeKey{}, &r.mainScope)
}

// End ends the run after the function has returned err, or has panicked; a panic must be converted to an error. It
// waits for branches that are still running: if the function returned nil they are completed, for which the job may
// be suspended; otherwise they are canceled.
func (r *Run) End(err error) Outcome {
	r.load()
	if err == nil {
		err = r.join()
	}
	r.mu.Lock()
	r.stop(errEnded)
	over := r.endedBy
	r.mu.Unlock()
	r.work.Wait()
	emit(r.remainingLines())
	return r.outcome(over, err)
}

func (r *Run) outcome(over, err error) Outcome {
	switch {
	case over == errEnded:
	case errors.Is(over, ErrSuspended):
		r.warnIfIgnored(ErrSuspended, "ErrSuspended; it is suspended all the same", err)
		return Outcome{Suspended: true}
	case errors.Is(over, ErrYielded):
		r.warnIfIgnored(ErrYielded, "ErrYielded; its worker is given back all the same", err)
		r.mu.Lock()
		defer r.mu.Unlock()
		return Outcome{Yielded: true, Steps: r.pending}
	default:
		return Outcome{Err: over}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.wrong != nil && err == nil:
		err = r.wrong
	case r.wrong != nil && !errors.Is(err, r.wrong):
		err = &ignoredMistake{r.wrong, err}
	case err == nil:
		err = r.leftOver()
	case errors.Is(err, ErrSuspended):
		err = mistakef(ErrUsage, "the function returned ErrSuspended, but none of its steps waits (%v); "+
			"return it only as a step has returned it in this run", err)
	case errors.Is(err, ErrYielded):
		err = mistakef(ErrUsage, "the function returned ErrYielded, but Yield did not in this run (%v)", err)
	}
	return Outcome{Err: err, Steps: r.pending}
}

// warnIfIgnored logs that a function did not return what a step has returned.
func (r *Run) warnIfIgnored(want error, text string, returned error) {
	if !errors.Is(returned, want) {
		r.info.Log.Warn("step: a function went on after "+text, append(r.who(), "returned", returned)...)
	}
}

// who names the job in logs.
func (r *Run) who() []any {
	who := []any{"case", r.info.Case, "job", r.info.Job}
	if !r.info.Item.IsZero() {
		who = append(who, "item", r.info.Item)
	}
	return who
}

// attempted logs one line for an attempt at a step that has ended.
func (r *Run) attempted(ctx context.Context, s *workitem.Step, wait time.Duration, again bool) {
	if !r.info.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	who := append(r.who(), "workflow", r.info.Workflow, "function", r.info.Function, "step", s.Name, "attempt", s.Attempt)
	if s.Failure == nil {
		r.info.Log.DebugContext(ctx, "attempt completed", who...)
		return
	}
	if again {
		who = append(who, "wait", wait)
	}
	r.info.Log.DebugContext(ctx, "attempt failed", append(who, "code", s.Failure.Code, "error", s.Failure.Message)...)
}

// stop lets nothing more be done, for the given reason, unless there is one already. The lock is held.
func (r *Run) stop(why error) {
	if r.endedBy != nil {
		return
	}
	r.endedBy = why
	close(r.done)
	r.cancel(why)
	for _, b := range r.branches {
		b.cancel(why)
	}
}

// fail ends the run with what the journal said.
func (r *Run) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop(err)
	return r.endedBy
}

// record writes steps, with all that waits to be recorded, and returns them as stored.
func (r *Run) record(steps ...*workitem.Step) ([]*workitem.Step, error) {
	r.mu.Lock()
	if r.endedBy != nil {
		defer r.mu.Unlock()
		return nil, r.endedBy
	}
	all := append(r.pending, steps...)
	r.pending = nil
	r.mu.Unlock()
	if len(all) == 0 {
		return nil, nil
	}
	// What has happened is to be remembered, even if the job is being stopped.
	stored, err := r.journal.Record(context.WithoutCancel(r.ctx), all...)
	if err == nil {
		err = complete(all, stored)
	}
	if err != nil {
		return nil, r.fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(stored)
	return stored[len(stored)-len(steps):], nil
}

// complete checks that a journal has returned what it was given.
func complete(given, stored []*workitem.Step) error {
	if len(given) != len(stored) {
		return fmt.Errorf("the journal took %d steps and returned %d", len(given), len(stored))
	}
	return nil
}
