package step

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrLost says that a job is no longer this run's: its lease ran out and another run has it, or it was canceled.
// Nothing of this run is recorded any more.
var ErrLost = errors.New("the job no longer belongs to this run")

// Journal remembers the steps of one job. The engine gives one to each run of a job; the one of package steptest is for
// tests. Its methods are safe for concurrent use. The steps that are passed to it and that it returns are never changed
// by either side: a new state is a new value.
//
// A step that is recorded for the first time has no ID; the journal gives it one, and the times Created (if it is
// zero) and Ended (if it is final). A new state of a step has the ID of the waiting one. The name of a step whose
// latest record failed or was canceled in an earlier attempt of the job may be recorded anew, with a new ID.
//
// An error of Record, Suspend or Tx, or of the wait for what was queued, ends the run: nothing more is asked of the journal,
// and [Run.End] reports it.
type Journal interface {
	// Steps lists what earlier runs of the job recorded, oldest first; final ones and waiting ones. Failed and canceled
	// steps of earlier attempts of the job are left out: they are done again.
	Steps() []*workitem.Step

	// Record writes steps, new ones or new states of waiting ones, in one transaction, and returns once that is
	// durable. It returns them as stored, in the same order:
	//
	//   - a StepEvent whose event had been sent before comes back done, with the event's value (null if it had none);
	//   - a StepCase has its child, which was started in the same transaction; if there is no such workflow, or it
	//     refuses the input, it comes back failed;
	//   - a StepToken has its text as the result, a JSON string;
	//   - a waiting step that had ended meanwhile stays as it ended, and comes back so. Canceling a waiting StepCase
	//     cancels its child; canceling a waiting StepEvent takes nothing from what is sent later.
	//
	// The error wraps ErrLost if the job is no longer this run's.
	Record(ctx context.Context, steps ...*workitem.Step) ([]*workitem.Step, error)

	// Queue takes final states to be recorded as by Record, and returns before they are durable. The journal records them
	// soon without being asked again. The function that is returned waits until they are durable, and returns what Record
	// would have; it is called at most once, and nothing else that is recorded is asked of the journal before.
	//
	// If the run ends without a wait, what is queued is part of the settlement: the job is settled in the
	// transaction that records it, or in a later one, and is not settled without it.
	Queue(steps ...*workitem.Step) (wait func() ([]*workitem.Step, error))

	// Suspend records the steps as Record does, and gives the job up until one of its waiting steps ends, in one
	// transaction; after true, nothing more is asked of the journal. But if a waiting step, recorded now or before, has
	// ended (or is due) and Watch has not reported it yet, it does not give the job up: it returns false, with the steps
	// recorded nevertheless, and Watch reports what has ended, before Suspend returns or after.
	Suspend(ctx context.Context, steps ...*workitem.Step) (stored []*workitem.Step, suspended bool, err error)

	// Tx runs f in a transaction that also records the step, done with what f returns, or (after f was undone) failed
	// with the failure that workitem.FailureOf finds in its error. If ctx has ended before f has failed, nothing is
	// recorded, and the error is that of ctx. A panic of f undoes it, and goes through.
	Tx(
		ctx context.Context, s *workitem.Step, f func(ctx context.Context, db domain.DB) (json.RawMessage, error),
	) (*workitem.Step, error)

	// Watch has f called, from then on and one call at a time, with every waiting step that ends while the run goes
	// on and that neither Record nor Suspend has returned so: an event came, a child ended, a time is over. f does
	// not block.
	//
	// Times are watched by the engine's clock. What a time that is over makes of a waiting step depends on its kind:
	//
	//   - a StepSleep is done;
	//   - a StepEvent failed with workitem.CodeTimeout;
	//   - a StepCase failed with workitem.CodeTimeout, and its child is canceled;
	//   - a StepDo stays waiting, and is reported: its next attempt is due.
	//
	// A child that completed makes its step done, with its output; one that failed makes it failed, with the failure;
	// one that was canceled makes it canceled.
	Watch(f func(*workitem.Step))

	// Now is the engine's time.
	Now() time.Time
}
