package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

type workKey struct{}

// WorkFrom tells a Run, or the function of a job, which job it does: its case, its item, the attempt and the fence. It
// reports false elsewhere.
func WorkFrom(ctx context.Context) (*activities.Work, bool) {
	w, ok := ctx.Value(workKey{}).(*activities.Work)
	return w, ok
}

// runnerOf wraps a typed Run for a worker. A panic is left to the worker, which knows what else has to be done then.
func runnerOf[In, Out any](
	run func(context.Context, In) (Out, error), limit time.Duration,
) func(context.Context, *activities.Work) (json.RawMessage, error) {
	accept := acceptor[Out]()
	return func(ctx context.Context, w *activities.Work) (json.RawMessage, error) {
		in, err := restore[In](w.Input)
		if err != nil {
			return nil, failed(workitem.Fatal(fmt.Errorf("input of %s: %w", w.Item.Label(), err)))
		}
		out, err := run(context.WithValue(ctx, workKey{}, w), in)
		if err != nil {
			return nil, timedOut(ctx, failed(err), limit)
		}
		raw, err := domain.Encode(out)
		if err == nil {
			raw, err = accept(raw)
		}
		if err != nil {
			return nil, failed(fmt.Errorf("output: %w", err))
		}
		return raw, nil
	}
}

// runError is the error of some work with the failure that is made of it.
type runError struct {
	failure *workitem.Failure
	err     error
}

func (e *runError) Error() string   { return e.err.Error() }
func (e *runError) Unwrap() []error { return []error{e.failure, e.err} }

// failed makes a failure of an error, and keeps the error. Beside what [workitem.FailureOf] knows, it understands
// package retry (a delay that was asked for, an error that is permanent) and data that breaks its rules, whose fields
// become the details: failed(retry.After(time.Minute, err)) waits for a minute before the next attempt.
func failed(err error) *runError {
	f := workitem.FailureOf(err)
	if delay, ok := retry.Delay(err); ok && f.After == 0 {
		f.After = delay
	}
	if retry.IsPermanent(err) {
		f.Retryable = false
	}
	var invalid *domain.InvalidError
	if asError(err, &invalid) && f.Code == workitem.CodeError {
		f.Code = workitem.CodeInvalid
		if len(invalid.Fields) > 0 && f.Details == nil {
			f.Details, _ = json.Marshal(invalid.Fields) // strings only, which cannot fail
		}
	}
	if errors.Is(err, domain.ErrTooLarge) && f.Code == workitem.CodeError {
		f.Code, f.Retryable = workitem.CodeTooLarge, false // another attempt would give as much
	}
	return &runError{f, err}
}

// timedOut names the reason of a failure that came after the time was over.
func timedOut(ctx context.Context, e *runError, limit time.Duration) *runError {
	if limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) && e.failure.Code == workitem.CodeError {
		e.failure.Code = workitem.CodeTimeout
		e.failure.Message = fmt.Sprintf("not done within %s: %s", limit, e.failure.Message)
	}
	return e
}

func asError[E error](err error, target *E) bool { return errors.As(err, target) }
