package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Definition is a workflow without its payload types: what package builder makes, and what the kernel and the engine
// work on. It is immutable once built.
type Definition struct {
	Name        string
	Version     string          // "" unless its author gave one
	Fingerprint string          // hash of Document
	Document    json.RawMessage // all of the definition but the code, in a canonical form
	Code        bool            // some of it is code, so that only the program that defines it can run it
	Net         *net.Net
	Tasks       []Task // by net.TaskID

	Verification Verification // what is known of the net's soundness; Allowed and Silenced are part of Document

	Accept func(input json.RawMessage) (json.RawMessage, error) // decodes and validates a case's input; nil takes any
	Output func(c *Case) (json.RawMessage, error)               // makes the output of a completed case; nil for none
	Hooks  CaseHooks
	Topics []string         // a broadcast of one of them starts a case, with its value as the input
	Calls  map[string]*Call // functions that jobs run, by name

	Handlers map[string]*Handler // who can be told of the end of a case, by name
	Sweep    bool                // a root case that has ended is removed with all that it had, and not kept for ever
	Keep     time.Duration       // how long after its end; 0 is at once, when the handlers have been told
}

// Untyped returns the definition itself, so that typed workflows, which embed it, can be passed where any will do.
func (d *Definition) Untyped() *Definition { return d }

// Task is what a definition says of a task beyond its place in the net. The zero value is a task for a person: one work
// item without input.
type Task struct {
	Queue    string          // of its items; "" is the default queue
	Priority int             // of its items; higher goes first
	Policy   workitem.Policy // what an item's end means for the task
	Auto     bool            // every item starts and completes by itself

	Inputs func(context.Context, *Activation) ([]json.RawMessage, error) // one item each; nil makes one without input
	Route  func(context.Context, *Activation) ([]string, error)          // where an xor- or or-split goes; nil: see net
	Cases  func(context.Context, *Activation) ([]NewCase, error)         // child cases of a composite task
	Of     map[string]*Definition                                        // the workflows that a composite task may run

	// Accept decodes and validates the payload of an action, and returns it in its canonical form; nil takes any.
	Accept  func(workitem.Action, json.RawMessage) (json.RawMessage, error)
	Actions map[workitem.Action]func(context.Context, *Item, json.RawMessage) error

	Hooks     TaskHooks
	ItemHooks ItemHooks
	Timers    []Timer

	// Run does the work of an item in a worker, outside any transaction; nil means that somebody else does it.
	Run func(ctx context.Context, w *Work) (json.RawMessage, error)
	// RunTimeout bounds one run; 0 leaves it unbounded.
	RunTimeout time.Duration

	// Retry is the policy that answers a failed item, as far as it is known before one fails: the worker asks its
	// filters, while it has the error. The zero value has none.
	Retry retry.Policy
	// Function is the name of Run for filters and logs; "" is that of the task.
	Function string
	// Decode makes a value of the Go type of an item's input, for filters to look at; nil leaves it as JSON.
	Decode func(input json.RawMessage) (any, error)
}

// FunctionOf is the name of the task's function, for a task of this name.
func (t *Task) FunctionOf(task string) string {
	if t == nil || t.Function == "" {
		return task
	}
	return t.Function
}

// Typed decodes an input for filters to look at. What cannot be decoded, or has no decoder, stays JSON.
func Typed(decode func(json.RawMessage) (any, error), input json.RawMessage) any {
	if decode != nil {
		if v, err := decode(input); err == nil {
			return v
		}
	}
	return input
}

// OutputError says that an output, which a Run had returned without an error, was refused: by the rules of its type, or
// by the process. The filters of retry policies are not asked about it, see [retry.Failure].
type OutputError struct{ Err error }

// Error returns "output: invalid article.Draft: text: required".
func (e *OutputError) Error() string { return "output: " + e.Err.Error() }

// Unwrap returns why it was refused.
func (e *OutputError) Unwrap() error { return e.Err }

// Call is a function that a job runs in a worker, outside any transaction.
type Call struct {
	Queue string       // of the workers who run it; "" is the default queue
	Retry retry.Policy // after a failure; the zero value gives up at once
	Run   func(ctx context.Context, w *Work) error

	// Decode makes a value of the Go type of the job's input, for filters to look at; nil leaves it as JSON.
	Decode func(input json.RawMessage) (any, error)
}

// Work is what a worker is told of the job that it does.
type Work struct {
	Case    CaseInfo
	Job     workitem.JobID
	Name    string           // of the function; "" for the run of an item
	Item    *workitem.Item   // nil for the job of a case or an activation
	Input   json.RawMessage  // of the item, or of the call
	Attempt int              // 1 for the first
	First   workitem.ID      // the first attempt of the item: itself, unless it replaces one, or its run restarts another
	Began   time.Time        // when the first attempt was created
	Run     int              // how often this very job was tried; 1 for the first
	Steps   []*workitem.Step // what earlier runs of the job recorded, oldest first; see package step
	Fence   int64            // rises with every claim: give it to a service that must refuse a worker that lost its lease
}

// CaseHooks answer changes of a case. A nil hook answers nothing.
type CaseHooks struct {
	OnInitialized func(context.Context, *Case) error // created, before its first task is enabled
	OnStarted     func(context.Context, *Case) error // its first work has started
	OnCompleted   func(context.Context, *Case) error
	OnFailed      func(context.Context, *Case) error
	OnCanceled    func(context.Context, *Case) error
}

// TaskHooks answer changes of a task. A nil hook answers nothing.
type TaskHooks struct {
	OnEnabled   func(context.Context, *Activation) error // before the items of its definition are made
	OnStarted   func(context.Context, *Activation) error // its tokens are consumed, competitors are withdrawn
	OnCompleted func(context.Context, *Activation) error // before its region is canceled and its tokens are produced
	OnFailed    func(context.Context, *Activation) error
	OnCanceled  func(context.Context, *Activation) error
	OnDisabled  func(context.Context, *Activation) error // withdrawn before it started

	// OnWorkItemStateChanged answers every change of an item, and of a child case of a composite task, but its creation.
	OnWorkItemStateChanged func(context.Context, *Change) error
}

// ItemHooks answer changes of a work item. A nil hook answers nothing.
type ItemHooks struct {
	OnInitialized func(context.Context, *Item) error
	OnStarted     func(context.Context, *Item) error
	OnCompleted   func(context.Context, *Item) error
	OnFailed      func(context.Context, *Item) error
	OnCanceled    func(context.Context, *Item) error
	OnReset       func(context.Context, *Item) error
}

// Timer does something when an item or an activation has lasted too long. Exactly one of Item and Task is set.
type Timer struct {
	Name  string        // unique within its task; part of the fingerprint, and what the jobs table shows
	After time.Duration // since the item became due (its creation, unless a retry has it wait), or the task was enabled
	Item  func(context.Context, *Item) error
	Task  func(context.Context, *Activation) error
	// Does is the action that the function asks of the items that are still live, as far as it is known without calling
	// it: Fail of a [Timeout], Cancel of a [CancelAfter]. NoAction leaves it to the function.
	// The engine sees to it that such a timer ends its items: see [Timeout].
	Does workitem.Action
}

// Late is the failure, with the code "timeout", of an item that the timer ends.
func (t *Timer) Late() *workitem.Failure {
	if t.Task != nil {
		return workitem.Failf(workitem.CodeTimeout, "the task was not done within %s", t.After)
	}
	return workitem.Failf(workitem.CodeTimeout, "not done within %s", t.After)
}
