package workflow

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workitem"
)

// Definition is a workflow without its payload types: the result of package builder, and what an engine
// executes. It is immutable once built.
type Definition struct {
	Name        string
	Version     string          // "" unless its author gave one
	Fingerprint string          // hash of Document
	Document    json.RawMessage // all of the definition except code, in canonical form
	Code        bool            // it contains code, so only the program that defines it can run it
	Net         *net.Net
	Tasks       []Task // by net.TaskID

	Verification Verification // the result of verification; Allowed and Silenced are part of Document

	Accept func(input json.RawMessage) (json.RawMessage, error) // decodes and validates a case's input; nil accepts any
	// AcceptIsPlain says that Accept calls no user code, so it needs no protection against panics and hanging.
	AcceptIsPlain bool
	InputType     reflect.Type                                         // of the argument of Accept; nil if unknown
	Output        func(c *activities.Case) (json.RawMessage, error)    // computes the output of a completed case; nil for none
	PlainOutput   func(c activities.CaseInfo) (json.RawMessage, error) // instead of Output, if it calls no user code
	Hooks         activities.CaseHooks
	// Identity computes the business key and the labels of a case from its input, after Accept; nil is none.
	Identity  func(input json.RawMessage) (Identity, error)
	UniqueKey bool // active and completed root cases have different business keys

	Topics []string         // a broadcast to one of them starts a case, with its value as the input
	Calls  map[string]*Call // functions that jobs run, by name
	Holds  []Hold           // limits that a case holds over several tasks, sorted by the name of the limit

	DeadLetter *Definition // a root case that fails starts a case of it, see [Letter]; nil for none

	Handlers map[string]*Handler // completion handlers by name
	Sweep    bool                // root cases are removed after their end
	Keep     time.Duration       // how long after their end; 0 is as soon as the handlers were called
}

// Untyped returns the definition itself. Typed workflows embed a Definition, so they can be passed where the types
// do not matter.
func (d *Definition) Untyped() *Definition { return d }

// Task is the part of a definition that describes the work of a task. The zero value is a task for a person: one work
// item without input.
type Task struct {
	Queue    string          // of its items; "" is the default queue
	Priority int             // of its items; higher goes first
	Policy   workitem.Policy // what an item's end means for the task
	Auto     bool            // every item starts and completes by itself

	Inputs     func(context.Context, *activities.Activation) ([]json.RawMessage, error)    // one item each; nil makes one without input
	PlainInput func(activities.CaseInfo) (json.RawMessage, error)                          // instead of Inputs, for one item whose input no code of the user's makes
	Route      func(context.Context, *activities.Activation) ([]string, error)             // where an xor- or or-split goes; nil: see net
	Cases      func(context.Context, *activities.Activation) ([]activities.NewCase, error) // child cases of a composite task
	Of         map[string]*Definition                                                      // the workflows that a composite task may run

	// Accept decodes and validates the payload of an action, and returns it in its canonical form; nil takes any.
	Accept func(workitem.Action, json.RawMessage) (json.RawMessage, error)
	// AcceptIsPlain says that Accept calls no user code, so it needs no protection against panics and hanging.
	AcceptIsPlain bool
	InputType     reflect.Type // of what Accept takes for an item's input; nil if it is not known

	Actions map[workitem.Action]func(context.Context, *activities.Item, json.RawMessage) error

	Hooks activities.TaskHooks
	// OnlyFailures says that OnWorkItemStateChanged does nothing unless the item has failed.
	OnlyFailures bool
	ItemHooks    activities.ItemHooks
	Timers       []activities.Timer

	// Run does the work of an item in a worker, outside any transaction. Its output is also passed to Accept there: an output
	// that Accept rejects fails the attempt. If Run is nil, Batch, a person or another process does the work.
	Run func(ctx context.Context, w *activities.Work) (json.RawMessage, error)
	// RunAccepts says that the output of Run needs no call of Accept.
	RunAccepts bool
	// Batch does the work of several items in one call in a worker, instead of Run; nil for none.
	Batch *Batch
	// RunTimeout is the time limit of one run; 0 is no limit.
	RunTimeout time.Duration

	// Retry is the retry policy of failed items, if it is known without calling an activity: the worker calls its
	// filters while it has the Go error. The zero value has no filters.
	Retry retry.Policy
	// Limits are what each attempt acquires before it starts.
	Limits []Use
	// Hours are when an attempt may start; the zero value is always.
	Hours schedule.Window
	// FairBy is the key for fair scheduling, computed from an item's input; nil is the same key for all.
	FairBy func(input json.RawMessage) (string, error)
	// DeadLetter is the workflow of which an item that failed for good starts a case, see [Letter]; nil for none.
	DeadLetter *Definition
	// Function describes Run or Batch to filters and logs; its default name is that of the task.
	Function activities.Function
}

// HasWorker reports whether workers of the engine execute the items of the task, one by one or in batches.
func (t *Task) HasWorker() bool { return t.Run != nil || t.Batch != nil }

// Call is a function that a job runs in a worker, outside any transaction.
type Call struct {
	Queue string       // "" is the default queue
	Retry retry.Policy // after a failure; the zero value does not retry
	Run   func(ctx context.Context, w *activities.Work) error

	Limits []Use           // what each attempt acquires before it starts
	Hours  schedule.Window // when Run may start; the zero value is always
	// FairBy is the key for fair scheduling, computed from a job's input; nil is the same key for all.
	FairBy func(input json.RawMessage) (string, error)

	// Decode makes a value of the Go type of the job's input, for filters to look at; nil leaves it as JSON.
	Decode func(input json.RawMessage) (any, error)
}
