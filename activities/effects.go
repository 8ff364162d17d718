package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Effects is the interface of the kernel that callbacks use through the methods of Case, Activation, Change and Item.
type Effects interface {
	// Actor returns who issued the command, as set by workflow.By; "" if unknown.
	Actor() string
	// Cause returns the origin of the command.
	Cause() Cause
	// DB runs SQL in the transaction of the command.
	DB() domain.DB
	// Items lists the work items of the latest activation of a task of the case, oldest first.
	Items(c workitem.CaseID, task string) []*workitem.Item
	// OpenItem creates a work item at once.
	OpenItem(ctx context.Context, at Place, n NewItem) (*workitem.Item, error)
	// OpenCase creates a child case at once.
	OpenCase(ctx context.Context, at Place, n NewCase) (workitem.CaseID, error)
	// OpenJob schedules a named function of the workflow.
	OpenJob(at Place, n NewJob) (workitem.JobID, error)
	// Ask requests an action on a live work item, which is executed after the callback has returned.
	Ask(item *workitem.Item, a workitem.Action, payload json.RawMessage) error
	// End requests that a live work item that timed out is failed or canceled after the callback has returned. An item
	// that is to fail and was never started is started first, without the Start callback of its task, since no work
	// starts.
	End(item *workitem.Item, a workitem.Action, reason *workitem.Failure) error
}

// Cause is the origin of a command, for callbacks that treat callers differently.
type Cause string

const (
	// CauseCaller is a program or person that issued the command; Actor is its name, if one was given.
	CauseCaller Cause = "caller"
	// CauseTimer is a timer that fired, or the time of a delayed start. There is no actor.
	CauseTimer Cause = "timer"
	// CauseJob is a worker that claims a job, records its steps or reports its result. There is no actor.
	CauseJob Cause = "job"
)

// Place identifies the part of a case that a callback is called for.
type Place struct {
	Case       workitem.CaseID
	Task       string      // "" for the case itself
	Generation int         // of the activation
	Item       workitem.ID // zero for the activation itself
}

// NewItem describes a work item to create.
type NewItem struct {
	Input       json.RawMessage
	After       time.Duration  // delay before it is due; 0 is at once
	Predecessor *workitem.Item // the failed item that it replaces
	KeepSteps   bool           // takes over the completed steps of the predecessor
	Queue       string         // "" is the task's
	Priority    int            // 0 is the task's
	Retry       *ItemRetry     // the policy that a repair gives it; nil takes over that of the predecessor
}

// NewCase describes a child case to create.
type NewCase struct {
	Workflow string // one of the composite task's; "" if there is only one
	Input    json.RawMessage
}

// NewJob describes a job to schedule.
type NewJob struct {
	Name     string // of a function of the workflow
	Input    json.RawMessage
	After    time.Duration // delay before it is due; 0 is at once
	Detached bool          // not canceled with its case, for work such as a cleanup after its end
}
