package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Function describes the code that does some work to the filters of a retry policy. The zero value has no name and
// leaves inputs as JSON.
type Function struct {
	Name   string
	Decode func(input json.RawMessage) (any, error) // makes a value of the Go type of an input; nil leaves it as JSON
}

// NameOr returns the name of the function, or the given name of its task if it has none.
func (f Function) NameOr(task string) string {
	if f.Name == "" {
		return task
	}
	return f.Name
}

// Typed decodes an input. It returns the JSON if there is no decoder, or it fails.
func (f Function) Typed(input json.RawMessage) any {
	if f.Decode != nil {
		if v, err := f.Decode(input); err == nil {
			return v
		}
	}
	return input
}

// OutputError says that a Run succeeded but its output was rejected, by the validation of its type or by a callback.
// The filters of retry policies are not called for it, see retry.Failure.
type OutputError struct{ Err error }

// Error returns "output: invalid article.Draft: text: required".
func (e *OutputError) Error() string { return "output: " + e.Err.Error() }

// Unwrap returns why it was rejected.
func (e *OutputError) Unwrap() error { return e.Err }

// Work describes a job to the worker that executes it.
type Work struct {
	Case    CaseInfo
	Job     workitem.JobID
	Name    string           // of the function; "" for the run of an item
	Item    *workitem.Item   // nil for the job of a case or an activation
	Input   json.RawMessage  // of the item, or of the call
	Attempt int              // 1 for the first
	First   workitem.ID      // the first attempt of the item: itself, unless it replaces one, or its run restarts another
	Began   time.Time        // when the first attempt was created
	Run     int              // how often this job was executed, including this time
	Steps   []*workitem.Step // the steps that earlier runs of the job recorded, oldest first; see package step
	Fence   int64            // fencing token: rises with every claim, so a service can reject a worker that lost its lease
	Queue   string           // "" is the default queue
	Due     time.Time        // when it became due
	Trace   string           // of the command that started the root case, see workflow.Trace; "" is none
}

// CaseHooks answer changes of a case. A nil hook answers nothing.
type CaseHooks struct {
	OnInitialized func(context.Context, *Case) error // created, before its first task is enabled
	OnStarted     func(context.Context, *Case) error // its first work has started
	OnCompleted   func(context.Context, *Case) error
	OnFailed      func(context.Context, *Case) error
	OnCanceled    func(context.Context, *Case) error
}

// TaskHooks are called after changes of a task. A nil hook is skipped.
type TaskHooks struct {
	OnEnabled   func(context.Context, *Activation) error // before the items of its definition are made
	OnStarted   func(context.Context, *Activation) error // its tokens are consumed, competing tasks are withdrawn
	OnCompleted func(context.Context, *Activation) error // before its region is canceled and its tokens are produced
	OnFailed    func(context.Context, *Activation) error
	OnCanceled  func(context.Context, *Activation) error
	OnDisabled  func(context.Context, *Activation) error // withdrawn before it started

	// OnWorkItemStateChanged is called after every change of an item, or of a child case of a composite task, except its
	// creation.
	OnWorkItemStateChanged func(context.Context, *Change) error
}

// ItemHooks are called after changes of a work item. A nil hook is skipped.
type ItemHooks struct {
	OnInitialized func(context.Context, *Item) error
	OnStarted     func(context.Context, *Item) error
	OnCompleted   func(context.Context, *Item) error
	OnFailed      func(context.Context, *Item) error
	OnCanceled    func(context.Context, *Item) error
	OnReset       func(context.Context, *Item) error
}

// Timer calls a function when an item or an activation has lasted too long. Exactly one of Item and Task is set.
type Timer struct {
	Name  string        // unique within its task; part of the fingerprint, and what the jobs table shows
	After time.Duration // since the item became due (its creation, or the end of its backoff), or since the task was enabled
	Item  func(context.Context, *Item) error
	Task  func(context.Context, *Activation) error
	// Does is the action that the function requests on live items, if it is known without calling it: Fail for a
	// [Timeout], Cancel for a [CancelAfter]. The engine ensures that such a timer ends its items, see [Timeout]. With
	// NoAction it only calls the function.
	Does workitem.Action
}

// Late returns the failure, with the code "timeout", of an item that the timer ends.
func (t *Timer) Late() *workitem.Failure {
	if t.Task != nil {
		return workitem.Failf(workitem.CodeTimeout, "the task was not done within %s", t.After)
	}
	return workitem.Failf(workitem.CodeTimeout, "not done within %s", t.After)
}
