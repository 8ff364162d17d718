package step

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrLost says that this run has lost its job: its lease expired and another run has taken it over, or it was
// canceled. Nothing more of this run is recorded.
var ErrLost = errors.New("the job no longer belongs to this run")

// Journal records the steps of one job. The engine provides one for each run of a job, and package steptest one for tests.
// Its methods are safe for concurrent use. Neither side modifies steps that were passed or returned: a new state is a new
// value.
//
// A step that is recorded for the first time has no ID; the journal gives it one, and the times Created (if it is
// zero) and Ended (if it is final). A new state of a step has the ID of the waiting one. The name of a step whose
// latest record failed or was canceled in an earlier attempt of the job may be recorded again, with a new ID.
//
// An error of Record, Suspend or Tx, or of the function that Queue returned, ends the run: the journal is not used any more,
// and Run.End reports the error.
type Journal interface {
	// Steps returns the final and waiting steps that earlier runs of the job recorded, oldest first. Failed and canceled
	// steps of earlier attempts of the job are omitted, since they are executed again.
	Steps() []*workitem.Step

	// Record writes steps, new ones or new states of waiting ones, in one transaction, and returns once that is
	// durable. It returns them as stored, in the same order:
	//
	//   - a StepEvent whose event had been sent before comes back done, with the event's value (null if it had none);
	//   - a StepCase has its child, which was started in the same transaction; if there is no such workflow, or it
	//     refuses the input, it comes back failed;
	//   - a StepToken has its text as the result, a JSON string;
	//   - a waiting step that has ended meanwhile is not changed, and is returned as it ended. Canceling a waiting
	//     StepCase cancels its child; canceling a waiting StepEvent has no effect on events that are sent later.
	//
	// The error wraps ErrLost if the job is no longer this run's.
	Record(ctx context.Context, steps ...*workitem.Step) ([]*workitem.Step, error)

	// Queue records final states like Record, but asynchronously: it returns before they are durable, and the journal
	// writes them soon. The returned function waits until they are durable, and returns what Record would have returned;
	// it is called at most once, and before any other method that records.
	//
	// If the run ends without calling the function, the job is settled in the transaction that records the queued
	// states, or in a later one, and never without them.
	Queue(steps ...*workitem.Step) (wait func() ([]*workitem.Step, error))

	// Suspend records the steps like Record and, in the same transaction, suspends the job until one of its waiting
	// steps ends; after true, the journal is not used any more. But if a waiting step, recorded now or before, has ended
	// (or is due) and Watch has not reported it yet, the job is not suspended: Suspend returns false, the steps are
	// recorded nevertheless, and Watch reports the step that has ended, before or after Suspend returns.
	Suspend(ctx context.Context, steps ...*workitem.Step) (stored []*workitem.Step, suspended bool, err error)

	// Tx runs f in a transaction that also records the step: as done with the result of f, or, after f was rolled
	// back, as failed with workitem.FailureOf of its error. If ctx has ended before f failed, nothing is recorded,
	// and the error is that of ctx. A panic of f rolls back, and is propagated.
	Tx(
		ctx context.Context, s *workitem.Step, f func(ctx context.Context, db domain.DB) (json.RawMessage, error),
	) (*workitem.Step, error)

	// Watch registers f, which is called from then on, never concurrently, with every waiting step that ends during
	// the run because an event arrived, a child ended or a time has passed, unless Record or Suspend has already
	// returned the step as ended. f does not block.
	//
	// Times are measured by the engine's clock. When the time of a waiting step has passed, it depends on its kind:
	//
	//   - a StepSleep is done;
	//   - a StepEvent failed with workitem.CodeTimeout;
	//   - a StepCase failed with workitem.CodeTimeout, and its child is canceled;
	//   - a StepDo stays waiting, and is reported, since its next attempt is due.
	//
	// A child that completed makes its step done, with its output; one that failed makes it failed, with the failure;
	// one that was canceled makes it canceled.
	Watch(f func(*workitem.Step))

	// Now is the engine's time.
	Now() time.Time
}
