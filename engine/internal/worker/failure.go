package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// function is the part of a definition that concerns the function of a job.
type function struct {
	activities.Function
	retry retry.Policy
}

// functionOf returns the function of a job; only with its name if the definition does not have it.
func functionOf(def *workflow.Definition, w *activities.Work) function {
	if w.Name != "" {
		if call := def.Calls[w.Name]; call != nil {
			return function{activities.Function{Name: w.Name, Decode: call.Decode}, call.Retry}
		}
		return function{Function: activities.Function{Name: w.Name}}
	}
	t, ok := def.Net.TaskByName(w.Item.Task)
	if !ok {
		return function{Function: activities.Function{Name: w.Item.Task}}
	}
	f := def.Tasks[t].Function
	f.Name = f.NameOr(w.Item.Task)
	return function{f, def.Tasks[t].Retry}
}

// failureOf returns the failure with which a job is settled. It evaluates the filters of the retry policy here, on the
// error that the function returned: the kernel gets only the stored form of the failure, and decides by the result of
// the filters.
func (r *Runner) failureOf(def *workflow.Definition, w *activities.Work, err error) *workitem.Failure {
	failure := workitem.FailureOf(err)
	f := functionOf(def, w)
	if len(f.retry.Filters) == 0 {
		return failure
	}
	failure.Filtered = true
	if !failure.Retryable {
		return failure
	}
	_, refused := errors.AsType[*activities.OutputError](err)
	accepted, broken := f.retry.Judge(retry.Failure{
		Attempt: w.Attempt, Elapsed: max(r.o.Now().Sub(w.Began), 0), Err: err, Name: f.Name, Input: f.Typed(w.Input),
		Refused: refused,
	})
	if broken != nil {
		r.o.Log.Error("a filter of a retry policy panicked, and accepts nothing", "job", w.Job, "case", w.Case.ID, "function", f.Name,
			"error", broken, "stack", string(broken.Panic.Stack))
		failure = workitem.FailureOf(broken.Beside(err))
		failure.Filtered = true
	}
	failure.Retryable = accepted
	return failure
}

// refusal returns the failure of a job whose output the kernel has refused. Filters do not apply to it.
func refusal(err error) *workitem.Failure {
	failure := workitem.FailureOf(err)
	failure.Code, failure.Filtered = workitem.CodeInvalid, true
	return failure
}

// CauseOf is workitem.FailureOf with the code of a command that exceeded the bounds of the kernel.
func CauseOf(err error) *workitem.Failure {
	failure := workitem.FailureOf(err)
	if errors.Is(err, kernel.ErrRunaway) {
		failure.Code = workitem.CodeRunaway
	}
	return failure
}

// Unwanted reports whether an error says that there is nothing left to do: the job has ended, belongs to another
// engine, or the engine is closed.
func Unwanted(err error) bool {
	return errors.Is(err, commit.ErrClosed) || errors.Is(err, kernel.ErrLeaseLost) || errors.Is(err, store.ErrNotFound) || errors.Is(err, registry.ErrNotLoaded)
}

// ErrExited is the failure of a function that ended its goroutine, as runtime.Goexit does. It is set in a deferred
// function, since nothing else runs after that.
var ErrExited = &workitem.Failure{Code: workitem.CodePanic, Retryable: true,
	Message: "the function ended its goroutine, as runtime.Goexit and the FailNow of a test do; let it return an error"}

// A function whose context has ended by its timeout usually returns an error of the call that it was in, such as "context
// deadline exceeded" of a driver. The code says what happened, and the error of the function stays in the message.

// overtime sets the code of an error that was returned after the timeout of the run, unless it has one.
func overtime(ctx context.Context, err error, limit time.Duration) error {
	if limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) && workitem.FailureOf(err).Code == workitem.CodeError {
		return &lateError{limit, err}
	}
	return err
}

// lateError says that a run exceeded its timeout. It wraps the error that the function returned then.
type lateError struct {
	limit time.Duration
	err   error
}

func (l *lateError) Error() string                   { return fmt.Sprintf("not done within %s: %s", l.limit, l.err) }
func (l *lateError) Unwrap() error                   { return l.err }
func (l *lateError) FailureCode() string             { return workitem.CodeTimeout }
func (l *lateError) FailureDetails() json.RawMessage { return nil }
