package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// runFailure is an error of a run with the failure that is made of it.
type runFailure struct {
	failure *workitem.Failure
	err     error
}

func (f *runFailure) Error() string { return f.err.Error() }
func (f *runFailure) Unwrap() error { return f.err }

// As has workitem.FailureOf find the failure as it was made, with what is known of the context that the error came from.
func (f *runFailure) As(target any) bool {
	t, ok := target.(**workitem.Failure)
	if ok {
		*t = f.failure
	}
	return ok
}

// failureIn makes the failure that a job is settled with.
func failureIn(err error) *workitem.Failure {
	if err == nil {
		return nil
	}
	failure := workitem.FailureOf(err)
	if delay, ok := retry.Delay(err); ok && failure.After == 0 {
		failure.After = delay
	}
	if retry.IsPermanent(err) { // a mistake in the steps, too: the next attempt knows less of them, and would hide it
		failure.Retryable = false
	}
	return failure
}

// failureOf puts an error of a run into the words of a failure.
func (e *Engine) failureOf(ctx context.Context, err error, limit time.Duration) *workitem.Failure {
	f := workitem.FailureOf(err)
	if limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) && f.Code == workitem.CodeError {
		f.Code, f.Message = workitem.CodeTimeout, fmt.Sprintf("not done within %s: %s", limit, f.Message)
	}
	if errors.Is(err, ErrTooLarge) && f.Code == workitem.CodeError {
		f.Code, f.Retryable = workitem.CodeTooLarge, false // another attempt would give as much
	}
	return f
}
