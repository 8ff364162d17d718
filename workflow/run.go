package workflow

import (
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/workitem"
)

// RunState is the state of a run, or of any root case.
type RunState string

// The states of a run. The last three are final.
const (
	RunScheduled RunState = "scheduled" // it begins later
	RunPending   RunState = "pending"   // it is due, and no worker has it yet
	RunRunning   RunState = "running"   // a worker has it
	RunWaiting   RunState = "waiting"   // for the next attempt, for a person, or in a step: for a time, an event, a child case
	RunSuspended RunState = "suspended" // nothing of it begins until it is resumed
	RunStuck     RunState = "stuck"     // by an incident, which a person has to decide
	RunCompleted RunState = "completed"
	RunFailed    RunState = "failed"
	RunCanceled  RunState = "canceled"
)

// Final reports whether the run has ended.
func (s RunState) Final() bool { return s == RunCompleted || s == RunFailed || s == RunCanceled }

// RunInfo describes a run.
type RunInfo struct {
	Stuck   workitem.ID // the work item that is the incident; zero if the run is not stuck, or by an incident without an item
	Case    activities.CaseInfo
	State   RunState
	Attempt int               // of a single task: the present attempt, at the end the latest; 0 before the first
	Next    time.Time         // when it begins, is tried again, or wakes; zero if that is now or not known
	Failure *workitem.Failure // why it failed, was canceled, or is stuck; while it continues, why the latest attempt failed
	Created time.Time
	Ended   time.Time // zero before the end
}
