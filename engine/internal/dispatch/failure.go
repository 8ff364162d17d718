package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// function is what a definition says of the function behind a job.
type function struct {
	activities.Function
	retry retry.Policy
}

// functionOf finds the function behind a job; nothing but its name if there is none.
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

// failureOf makes the failure that a job is settled with. The filters of its retry policy are asked here, where the error
// still is what the function returned; the process decides by their answer.
func (d *Dispatcher) failureOf(def *workflow.Definition, w *activities.Work, err error) *workitem.Failure {
	failure := workitem.FailureOf(err)
	f := functionOf(def, w)
	if len(f.retry.Filters) == 0 {
		return failure
	}
	_, refused := errors.AsType[*activities.OutputError](err)
	failure.Filtered = true
	failure.Retryable = failure.Retryable && f.retry.Accepts(retry.Failure{
		Attempt: w.Attempt, Elapsed: max(d.o.Now().Sub(w.Began), 0), Err: err, Name: f.Name, Input: f.Typed(w.Input),
		Refused: refused,
	})
	return failure
}

// refusal is the failure of a job whose output the process has refused. No filter is asked about that.
func refusal(err error) *workitem.Failure {
	failure := workitem.FailureOf(err)
	failure.Code, failure.Filtered = workitem.CodeInvalid, true
	return failure
}

// overtime names the reason of an error that came after the time of a run was over, unless it has a code of its own.
func overtime(ctx context.Context, err error, limit time.Duration) error {
	if limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) && workitem.FailureOf(err).Code == workitem.CodeError {
		return &lateError{limit, err}
	}
	return err
}

// lateError says that a run took longer than it may. It wraps what the function returned then.
type lateError struct {
	limit time.Duration
	err   error
}

func (l *lateError) Error() string                   { return fmt.Sprintf("not done within %s: %s", l.limit, l.err) }
func (l *lateError) Unwrap() error                   { return l.err }
func (l *lateError) FailureCode() string             { return workitem.CodeTimeout }
func (l *lateError) FailureDetails() json.RawMessage { return nil }
