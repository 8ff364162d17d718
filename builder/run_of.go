package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Runs is the interface that the methods of [Run] need; *engine.Engine and *engine.Tx implement it.
type Runs interface {
	workflow.Doer
	// RunInfo describes a root case. The error wraps workflow.ErrNotFound if there is none, or it was removed.
	RunInfo(ctx context.Context, id workitem.CaseID) (workflow.RunInfo, error)
}

// Waiter is an engine that can wait for the end of a run, which a transaction cannot: *engine.Engine is one.
type Waiter interface {
	// WaitRun returns once a root case has ended, or is stuck.
	WaitRun(ctx context.Context, id workitem.CaseID) (workflow.RunInfo, error)
}

// Status is the state of a run, with its result.
type Status[Out any] struct {
	State   workflow.RunState
	Attempt int               // the current or last attempt, for a workflow of a single task; 0 before the first
	Next    time.Time         // when it starts, is retried, or wakes up; zero if that is now or unknown
	Value   Out               // once it has completed
	Failure *workitem.Failure // why it failed, was canceled or is stuck; while it runs, why the latest attempt failed
	Created time.Time
	Ended   time.Time // zero before the end
}

// ErrStuck says that the run has no result and needs a decision by a person. The engine has given up its job, because
// the job crashed its process too often, or because neither its result nor its failure was accepted. The work item of
// the job is still started: retry it ([workflow.Retry], tasq item retry) to run it again, fail it to have the process
// handle the failure, or cancel the run. The incident, a *workitem.Failure, is in the same error.
var ErrStuck = errors.New("is stuck, and waits for a person")

// ErrCanceled says that the run was canceled, so it has no result. The reason, if one was given, is a
// *workitem.Failure in the same error.
var ErrCanceled = errors.New("was canceled")

// Run is the handle of one run of a function or of a workflow, with result type Out. It is a small value: store its
// ID, and make the handle again with [FuncRef.Of], [ResultRef.Of] or [Workflow.Of].
type Run[Out any] struct {
	ID workitem.CaseID
	d  *workflow.Definition
}

// Status returns the state of the run. The error wraps [workflow.ErrNotFound] if there is no such run, or it was
// removed.
func (r Run[Out]) Status(ctx context.Context, e Runs) (Status[Out], error) {
	var none Status[Out]
	if e == nil || r.d == nil {
		return none, fmt.Errorf("status of %s: %w", r, errNoRun)
	}
	info, err := e.RunInfo(ctx, r.ID)
	if err == nil {
		err = r.check(info.Case)
	}
	if err != nil {
		return none, fmt.Errorf("status of %s: %w", r, err)
	}
	s := Status[Out]{State: info.State, Attempt: info.Attempt, Next: info.Next, Failure: info.Failure,
		Created: info.Created, Ended: info.Ended}
	if s.State == workflow.RunCompleted {
		s.Value, err = r.value(info)
	}
	return s, err
}

// value reads what a completed run gave.
func (r Run[Out]) value(info workflow.RunInfo) (Out, error) {
	v, err := restore[Out](info.Case.Output)
	if err != nil {
		return v, fmt.Errorf("%s gave something else than the %T that is asked for; "+
			"read it with the version of the function that it ran on: %w", r, v, err)
	}
	return v, nil
}

// Result waits until the run has ended, and returns its result. The error wraps a *workitem.Failure if the run
// failed, [ErrCanceled] if it was canceled, [ErrStuck] if it cannot continue before a person decides, and
// [workflow.ErrNotFound] if there is no such run, or it was removed.
func (r Run[Out]) Result(ctx context.Context, e Waiter) (Out, error) {
	var none Out
	if e == nil || r.d == nil {
		return none, fmt.Errorf("result of %s: %w", r, errNoRun)
	}
	info, err := e.WaitRun(ctx, r.ID)
	if err == nil {
		err = r.check(info.Case)
	}
	switch {
	case err != nil:
		return none, fmt.Errorf("result of %s: %w", r, err)
	case info.State == workflow.RunCanceled:
		return none, fmt.Errorf("%s %w", r, reasoned(ErrCanceled, info.Failure))
	case info.State == workflow.RunStuck:
		return none, fmt.Errorf("%s %w; retry work item %s (tasq item retry) to run it again, skip it, or give it up", r,
			reasoned(ErrStuck, info.Failure), info.Stuck)
	case info.State == workflow.RunFailed:
		return none, fmt.Errorf("%s failed: %w", r, orSilent(info.Failure))
	}
	return r.value(info)
}

// Done returns a channel that is closed when [Run.Result] would return at once: the run has ended or is stuck, there is no such run, or the
// engine is closed. If the context ends first, the channel is never closed.
//
//	select {
//	case <-run.Done(ctx, e):
//		receipt, err := run.Result(ctx, e) // at once
//	case <-hurry:
//	}
//
// It also works for a run that another engine executes. Each call starts a goroutine, which ends with the wait.
func (r Run[Out]) Done(ctx context.Context, e Waiter) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		if _, err := r.Result(ctx, e); err == nil || ctx.Err() == nil {
			close(done)
		}
	}()
	return done
}

func reasoned(err error, reason *workitem.Failure) error {
	if reason == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

func orSilent(f *workitem.Failure) *workitem.Failure {
	if f == nil {
		return &workitem.Failure{Code: workitem.CodeError, Message: "no reason was given"}
	}
	return f
}

// Cancel cancels the run with its items, jobs and child cases. The context of its function is canceled, and a result
// that the function returns later is rejected. The reason may be nil. Cancel reports whether the run was canceled:
// false, without an error, if there is no such run or it has ended already.
func (r Run[Out]) Cancel(ctx context.Context, e workflow.Doer, reason *workitem.Failure, opts ...workflow.Option) (bool, error) {
	_, err := r.do(ctx, e, workflow.Cancel(r.ID, reason), opts)
	switch {
	case errors.Is(err, workflow.ErrNotFound), errors.Is(err, workflow.ErrInactive):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cancel %s: %w", r, err)
	}
	return true, nil
}

// Cleanup removes a run that has ended, with its result, its history and its steps. The error wraps
// workflow.ErrUnfinished if the run has not ended, or if a job has yet to call one of its completion handlers, and
// workflow.ErrNotFound if there is no such run, as after a Cleanup.
func (r Run[Out]) Cleanup(ctx context.Context, e workflow.Doer) error {
	if _, err := r.do(ctx, e, workflow.Remove(r.ID), nil); err != nil {
		return fmt.Errorf("clean up %s: %w", r, err)
	}
	return nil
}

// Restart starts a new run with the input and options of this one, which must have ended and stays as it is; the new run
// is linked to it. Completed steps are taken over; with [workflow.FromStep] only those before a given step. The error
// wraps workflow.ErrUnfinished if the run has not ended.
func (r Run[Out]) Restart(ctx context.Context, e workflow.Doer, opts ...workflow.Option) (Run[Out], error) {
	c := workflow.Restart(r.ID)
	if r.d != nil {
		c.Fingerprint = r.d.Fingerprint
	}
	result, err := r.do(ctx, e, c, opts)
	if err != nil {
		return Run[Out]{}, fmt.Errorf("restart %s: %w", r, err)
	}
	return Run[Out]{ID: result.Case, d: r.d}, nil
}

// do has an engine do a command on the run.
func (r Run[Out]) do(
	ctx context.Context, e workflow.Doer, c workflow.Command, opts []workflow.Option,
) (workflow.Result, error) {
	if e == nil || r.d == nil {
		return workflow.Result{}, errNoRun
	}
	c.Workflow = r.d.Name
	return e.Do(ctx, workflow.With(c, opts...))
}

// String names the run: "run 0197a3c4-… of charge".
func (r Run[Out]) String() string {
	name := "nothing"
	if r.d != nil {
		name = r.d.Name
	}
	return fmt.Sprintf("run %s of %s", printable.ID(r.ID), name)
}

var errNoRun = errors.New("there is no run, or no engine; take the handle from Run or Of, " +
	"and give the engine")

// check refuses what is no run of the workflow. One of another version is fine.
func (r Run[Out]) check(c activities.CaseInfo) error {
	switch {
	case !c.Parent.IsZero():
		return fmt.Errorf("case %s is a child case of %s, and no run of its own: %w", r.ID, c.Root, workflow.ErrNotFound)
	case c.Workflow != r.d.Name:
		return fmt.Errorf("case %s is a run of %s, and not of %s: %w", r.ID, c.Workflow, r.d.Name, workflow.ErrNotFound)
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

// WithTx returns a context that carries the transaction of a completion handler. It is for engines.
func WithTx(ctx context.Context, tx InTx) context.Context { return context.WithValue(ctx, txKey{}, tx) }
