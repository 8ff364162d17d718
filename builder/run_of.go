package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Runs is what the handles of runs need of an engine: *engine.Engine and *engine.Tx have it. An error about a run that
// is not there, was removed, or is one of another workflow wraps engine.ErrNotFound.
type Runs interface {
	Runtime
	// RunInfo says where a root case of the workflow stands.
	RunInfo(ctx context.Context, d *workflow.Definition, id workitem.CaseID) (RunInfo, error)
	// CancelRun cancels a root case of the workflow, and reports whether there was anything to cancel.
	CancelRun(
		ctx context.Context, d *workflow.Definition, id workitem.CaseID, reason *workitem.Failure, c Call,
	) (bool, error)
	// RemoveRun removes a root case of the workflow that has ended, with all that it had.
	RemoveRun(ctx context.Context, d *workflow.Definition, id workitem.CaseID, c Call) error
	// RestartRun starts a fresh root case with the input and the options of one that has ended. Steps that its last job
	// had done are taken over: all of them if from is "", otherwise those before the last one of that name.
	RestartRun(
		ctx context.Context, d *workflow.Definition, id workitem.CaseID, from string, c Call,
	) (workitem.CaseID, error)
}

// Waiter is an engine that can wait for the end of a run, which a transaction cannot: *engine.Engine is one.
type Waiter interface {
	// WaitRun returns once a root case of the workflow has ended, or is stuck.
	WaitRun(ctx context.Context, d *workflow.Definition, id workitem.CaseID) (RunInfo, error)
}

// RunState says where a run stands, in a word.
type RunState string

// The states of a run. The last three are final.
const (
	RunScheduled RunState = "scheduled" // it begins later
	RunPending   RunState = "pending"   // it is due, and no worker has it yet
	RunRunning   RunState = "running"   // a worker has it
	RunWaiting   RunState = "waiting"   // for the next attempt, for a person, or in a step: for a time, an event, a child case
	RunStuck     RunState = "stuck"     // its job was given up, and a person has to decide: see [ErrStuck]
	RunCompleted RunState = "completed"
	RunFailed    RunState = "failed"
	RunCanceled  RunState = "canceled"
)

// Final reports whether the run has ended.
func (s RunState) Final() bool { return s == RunCompleted || s == RunFailed || s == RunCanceled }

// RunInfo is what an engine knows of a run.
type RunInfo struct {
	Stuck   workitem.ID // the work item whose job was given up; zero if the run is not stuck
	Case    activities.CaseInfo
	State   RunState
	Attempt int               // of a single task: the present attempt, at the end the latest; 0 before the first
	Next    time.Time         // when it begins, is tried again, or wakes; zero if that is now or not known
	Failure *workitem.Failure // why it failed, was canceled, or is stuck; while it goes on, why the latest attempt failed
	Created time.Time
	Ended   time.Time // zero before the end
}

// Status is where a run stands, with the value that it gave.
type Status[Out any] struct {
	State   RunState
	Attempt int               // of a single task: the present attempt, at the end the latest; 0 before the first
	Next    time.Time         // when it begins, is tried again, or wakes; zero if that is now or not known
	Value   Out               // once it has completed
	Failure *workitem.Failure // why it failed, was canceled, or is stuck; while it goes on, why the latest attempt failed
	Created time.Time
	Ended   time.Time // zero before the end
}

// ErrStuck says that there is no result, and that there will be none before a person has decided: the run's job took
// its process down too often, or neither its result nor its failure was accepted, so the engine has given it up. The
// work item of the job is still started. Reset it (Engine.Do with workitem.Reset, tasq item reset), and it runs again;
// fail it, and the process answers as to any failure; or cancel the run. The incident, a *workitem.Failure, is in the
// same error.
var ErrStuck = errors.New("is stuck, and waits for a person")

// ErrCanceled says that there is no result since the run was canceled. The reason, if one was given, is a
// *workitem.Failure in the same error.
var ErrCanceled = errors.New("was canceled")

// Run is the handle of one run of an action, or of a workflow, which gives an Out. It is a small value: keep its ID,
// and make it again with Of of an action ([ActionRef.Of]), of a result ([ResultRef.Of]), or of a workflow
// ([Workflow.Of]).
type Run[Out any] struct {
	ID workitem.CaseID
	d  *workflow.Definition
}

// Status says where the run stands. The error wraps engine.ErrNotFound if there is no such run, or it was removed.
func (r Run[Out]) Status(ctx context.Context, e Runs) (Status[Out], error) {
	var none Status[Out]
	if err := r.usable(e); err != nil {
		return none, fmt.Errorf("status of %s: %w", r, err)
	}
	info, err := e.RunInfo(ctx, r.d, r.ID)
	if err != nil {
		return none, fmt.Errorf("status of %s: %w", r, err)
	}
	s := Status[Out]{State: info.State, Attempt: info.Attempt, Next: info.Next, Failure: info.Failure,
		Created: info.Created, Ended: info.Ended}
	if s.State == RunCompleted {
		s.Value, err = r.value(info)
	}
	return s, err
}

// value reads what a completed run gave.
func (r Run[Out]) value(info RunInfo) (Out, error) {
	v, err := restore[Out](info.Case.Output)
	if err != nil {
		return v, fmt.Errorf("%s gave something else than the %T that is asked for; "+
			"read it with the version of the action that it ran on: %w", r, v, err)
	}
	return v, nil
}

// Result waits until the run has ended, and returns what it gave. The error is a *workitem.Failure, by errors.As, if
// the run failed; it wraps [ErrCanceled] if the run was canceled, [ErrStuck] if nothing more happens before a person
// has decided, and engine.ErrNotFound if there is no such run, or it was removed.
func (r Run[Out]) Result(ctx context.Context, e Waiter) (Out, error) {
	var none Out
	if e == nil || r.d == nil {
		return none, fmt.Errorf("result of %s: %w", r, errNoRun)
	}
	info, err := e.WaitRun(ctx, r.d, r.ID)
	switch {
	case err != nil:
		return none, fmt.Errorf("result of %s: %w", r, err)
	case info.State == RunCanceled:
		return none, fmt.Errorf("%s %w", r, reasoned(ErrCanceled, info.Failure))
	case info.State == RunStuck:
		return none, fmt.Errorf("%s %w; reset work item %s (tasq item reset) to run it again, or fail it", r,
			reasoned(ErrStuck, info.Failure), info.Stuck)
	case info.State == RunFailed:
		return none, fmt.Errorf("%s failed: %w", r, orSilent(info.Failure))
	}
	return r.value(info)
}

func reasoned(err error, reason *workitem.Failure) error {
	if reason == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

func orSilent(f *workitem.Failure) *workitem.Failure {
	if f == nil {
		return &workitem.Failure{Code: workitem.CodeError, Message: "nobody said why"}
	}
	return f
}

// Cancel cancels the run with all that it owns: its function's context is canceled, and whatever that hands in later is
// refused. The reason may be nil. It reports whether the run was canceled: false, and no error, if there is no such run
// or it has ended already.
func (r Run[Out]) Cancel(ctx context.Context, e Runs, reason *workitem.Failure, opts ...CallOption) (bool, error) {
	if err := r.usable(e); err != nil {
		return false, fmt.Errorf("cancel %s: %w", r, err)
	}
	done, err := e.CancelRun(ctx, r.d, r.ID, reason, CallWith(opts...))
	if err != nil {
		return false, fmt.Errorf("cancel %s: %w", r, err)
	}
	return done, nil
}

// Cleanup removes a run that has ended, with its result, its history and its steps. It is an error if the run goes on,
// or a handler has still to be told of its end in a job; the error wraps engine.ErrUnfinished then, and
// engine.ErrNotFound if there is no such run, as after a Cleanup.
func (r Run[Out]) Cleanup(ctx context.Context, e Runs) error {
	if err := r.usable(e); err != nil {
		return fmt.Errorf("clean up %s: %w", r, err)
	}
	if err := e.RemoveRun(ctx, r.d, r.ID, Call{}); err != nil {
		return fmt.Errorf("clean up %s: %w", r, err)
	}
	return nil
}

// Restart runs again what has ended: a fresh run with the same input and the same options, linked to this one, which
// stays as it is. The steps that this one had finished are taken over; with [FromStep] only those before one of them.
// The error wraps engine.ErrUnfinished if the run has not ended.
func (r Run[Out]) Restart(ctx context.Context, e Runs, opts ...RestartOption) (Run[Out], error) {
	var spec restartSpec
	for _, opt := range opts {
		if opt != nil {
			opt.ofRestart(&spec)
		}
	}
	fresh := Run[Out]{d: r.d}
	err := r.usable(e)
	if err == nil {
		err = spec.problem()
	}
	if err == nil {
		fresh.ID, err = e.RestartRun(ctx, r.d, r.ID, spec.from, spec.call)
	}
	if err != nil {
		return Run[Out]{}, fmt.Errorf("restart %s: %w", r, err)
	}
	return fresh, nil
}

// RestartOption sets something of a [Run.Restart]: every [CallOption] is one, and [FromStep].
type RestartOption interface{ ofRestart(*restartSpec) }

type restartSpec struct {
	call Call
	from string
	told int // how often from was given
}

func (s *restartSpec) problem() error {
	switch {
	case s.told > 1:
		return errors.New("FromStep is given twice: name the first step that is to be done again")
	case s.told == 1 && s.from == "":
		return errors.New("FromStep names no step; leave it out to take over all that were finished")
	}
	return nil
}

func (o CallOption) ofRestart(s *restartSpec) { o(&s.call) }

type fromStep string

func (f fromStep) ofRestart(s *restartSpec) { s.from, s.told = string(f), s.told+1 }

// FromStep has a restart take over the steps before this one only, which is so done again with all that came after it.
// An unknown name is an error, and so is an empty one.
func FromStep(step string) RestartOption { return fromStep(step) }

// String names the run: "run 0197a3c4-… of charge".
func (r Run[Out]) String() string {
	name := "nothing"
	if r.d != nil {
		name = r.d.Name
	}
	return fmt.Sprintf("run %s of %s", r.ID, name)
}

var errNoRun = errors.New("there is no run, or no engine; take the handle from Run or Of, " +
	"and give the engine")

func (r Run[Out]) usable(e Runs) error {
	if e == nil || r.d == nil {
		return errNoRun
	}
	return nil
}

// InTx is the transaction that a completion handler runs in.
type InTx interface {
	Runs
	// DB runs the user's own SQL in the transaction.
	DB() domain.DB
	// Now is the time of the transaction.
	Now() time.Time
}

type txKey struct{}

// WithTx is for engines: the context of a completion handler carries its transaction.
func WithTx(ctx context.Context, tx InTx) context.Context { return context.WithValue(ctx, txKey{}, tx) }
