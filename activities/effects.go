package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Effects is what callbacks may do, as the kernel offers it. Callbacks use it through the methods of [Case],
// [Activation], [Change] and [Item].
type Effects interface {
	// Actor is who asks for the command, as workflow.By names it; "" if unknown.
	Actor() string
	// Cause is what the command comes from.
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
	// Ask notes an action on a live work item, to be done when the callback has returned.
	Ask(item *workitem.Item, a workitem.Action, payload json.RawMessage) error
	// End notes that a live work item, whose time is over, is to be failed or canceled when the callback has returned. To
	// fail an item that was never started, it is started first, without the Start callback of its task: no work begins.
	End(item *workitem.Item, a workitem.Action, reason *workitem.Failure) error
}

// Cause is what a command comes from, for callbacks that need to know whether a caller asks.
type Cause string

const (
	// CauseCaller is a program or person that asks; the name is the actor, if it was given.
	CauseCaller Cause = "caller"
	// CauseTimer is a time that has come: that of a timer, or of a case that was to start later. There is no actor.
	CauseTimer Cause = "timer"
	// CauseJob is a worker that claims a job, records its steps or hands in its result. There is no actor.
	CauseJob Cause = "job"
)

// Place is where in a case a callback stands.
type Place struct {
	Case       workitem.CaseID
	Task       string      // "" for the case itself
	Generation int         // of the activation
	Item       workitem.ID // zero for the activation itself
}

// NewItem describes a work item to create.
type NewItem struct {
	Input       json.RawMessage
	After       time.Duration  // not to be worked on before; 0 is at once
	Predecessor *workitem.Item // the failed item that it replaces
	KeepSteps   bool           // its run takes over the steps that the predecessor's had finished
	Queue       string         // "" is the task's
	Priority    int            // 0 is the task's
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
	After    time.Duration // not to be run before; 0 is at once
	Detached bool          // not canceled with its case: for work that a teardown leaves behind
}
