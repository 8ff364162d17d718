package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Tx implements [step.Journal]. The function runs in a savepoint of the transaction that records its step:
//
//	it returns a value          its changes and the step are committed together
//	it returns an error         its changes are rolled back, and the step is recorded as failed
//	it panics                   likewise, but the job fails, as it does for a panic anywhere else in its function
//	the job is stopped          nothing is recorded: the next run calls it again
//	the store fails             the request is repeated, and the function is called again
//	its SQL fails the commit    the failure is recorded in a transaction of its own, in which the function is not called
//
// The last is needed for SQL that breaks every transaction in which it runs, such as a deferred constraint, or a statement
// that ends the connection: the step could otherwise neither succeed nor fail.
func (j *Journal) Tx(
	ctx context.Context, s *workitem.Step, f func(context.Context, domain.DB) (json.RawMessage, error),
) (*workitem.Step, error) {
	outer := ctx
	stored, err := journaled(ctx, j, "step "+s.Name, func(tx *commit.Tx, m *kernel.Machine) ([]*workitem.Step, error) {
		done := *s
		var bug *workitem.Failure
		var own error // the error of the function, without the wrapping by the transaction
		failed := tx.Store().Savepoint(tx.Context(), func() (err error) {
			return m.Steps().Call(j.w.Job, j.fence.Load(), func(ctx context.Context) (err error) {
				defer func() {
					if p := recover(); p != nil {
						bug = workitem.FailureOf(retry.NewPanicError(p))
						err = bug
					}
				}()
				if done.Result, err = f(ctx, tx.Store().DB()); err == nil {
					err = j.o.CheckPayload("result", done.Result)
				}
				own = err
				return err
			})
		})
		done.State = workitem.StepDone
		if failed != nil && outer.Err() != nil {
			return nil, context.Cause(outer) // the job is being stopped, so the step did not fail
		}
		if bug != nil {
			return nil, bug // fails the job and not the step, like a panic anywhere else in the function
		}
		if failed != nil {
			if errors.Is(failed, store.ErrDisconnected) {
				_ = j.note("step "+s.Name, failed) // the writer runs this again
			}
			if errors.Is(failed, kernel.ErrAbandoned) || errors.Is(failed, kernel.ErrLeaseLost) || errors.Is(failed, store.ErrUndone) {
				return nil, failed
			}
			if own == nil {
				own = failed
			}
			done.State, done.Result, done.Failure = workitem.StepFailed, nil, workitem.FailureOf(own)
		}
		return m.Steps().Record(j.w.Job, j.fence.Load(), []*workitem.Step{&done})
	})
	if errors.Is(err, fault.ErrOwnSQL) { // the failure is recorded in a transaction of its own
		done := *s
		done.State, done.Failure = workitem.StepFailed, workitem.FailureOf(err)
		stored, err = j.Record(ctx, &done)
	}
	if err != nil {
		return nil, err
	}
	return stored[0], nil
}
