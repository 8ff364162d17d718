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

// Definition is a workflow without its payload types: what package builder makes, and what the engine
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
	// AcceptIsPlain says that Accept calls no method of the user's types, so that it need not be called as a callback is.
	AcceptIsPlain bool
	InputType     reflect.Type                                         // of what Accept takes; nil if it is not known
	Output        func(c *activities.Case) (json.RawMessage, error)    // makes the output of a completed case; nil for none
	PlainOutput   func(c activities.CaseInfo) (json.RawMessage, error) // in place of Output where that calls no code of the user's
	Hooks         activities.CaseHooks
	// Identity makes a root or child case's business key and labels from its input, which Accept has decoded; nil makes none.
	Identity  func(input json.RawMessage) (Identity, error)
	UniqueKey bool // no two root cases that go on or have completed have the same business key

	Topics []string         // a broadcast of one of them starts a case, with its value as the input
	Calls  map[string]*Call // functions that jobs run, by name
	Holds  []Hold           // what a case holds over several tasks, by the name of the limit

	DeadLetter *Definition // of which a root case that fails starts a case, see [Letter]; nil for none

	Handlers map[string]*Handler // what can be called at the end of a case, by name
	Sweep    bool                // a root case that has ended is removed with all that it had, and not kept
	Keep     time.Duration       // how long after its end; 0 is at once, when the handlers were called
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

	Inputs     func(context.Context, *activities.Activation) ([]json.RawMessage, error)    // one item each; nil makes one without input
	PlainInput func(activities.CaseInfo) (json.RawMessage, error)                          // in place of Inputs, for one item whose input no code of the user's makes
	Route      func(context.Context, *activities.Activation) ([]string, error)             // where an xor- or or-split goes; nil: see net
	Cases      func(context.Context, *activities.Activation) ([]activities.NewCase, error) // child cases of a composite task
	Of         map[string]*Definition                                                      // the workflows that a composite task may run

	// Accept decodes and validates the payload of an action, and returns it in its canonical form; nil takes any.
	Accept func(workitem.Action, json.RawMessage) (json.RawMessage, error)
	// AcceptIsPlain says that Accept calls no method of the user's types, so that it need not be called as a callback is.
	AcceptIsPlain bool
	InputType     reflect.Type // of what Accept takes for an item's input; nil if it is not known

	Actions map[workitem.Action]func(context.Context, *activities.Item, json.RawMessage) error

	Hooks activities.TaskHooks
	// OnlyFailures says that OnWorkItemStateChanged answers an item that has failed, and does nothing after any other change.
	OnlyFailures bool
	ItemHooks    activities.ItemHooks
	Timers       []activities.Timer

	// Run does the work of an item in a worker, outside any transaction. What it returns is accepted there too: an output that
	// Accept refuses fails the attempt. Nil means that Batch, a person or another process does it.
	Run func(ctx context.Context, w *activities.Work) (json.RawMessage, error)
	// RunAccepts says that what Run returns is as Accept returns it, and need not be accepted once more.
	RunAccepts bool
	// Batch has the work of several items done by one call in a worker, in place of Run; nil for none.
	Batch *Batch
	// RunTimeout bounds one run; 0 leaves it unbounded.
	RunTimeout time.Duration

	// Retry is the policy that answers a failed item, as far as it is known before one fails: the worker asks its
	// filters, while it has the error. The zero value has none.
	Retry retry.Policy
	// Limits are what each attempt of a worker takes before it begins.
	Limits []Use
	// Hours are when a worker may begin; the zero value is always.
	Hours schedule.Window
	// FairBy is the key of an item's input between which its queue takes turns; nil is the same key for all.
	FairBy func(input json.RawMessage) (string, error)
	// DeadLetter is the workflow of which an item that is given up starts a case, see [Letter]; nil for none.
	DeadLetter *Definition
	// Function describes Run or Batch to filters and logs; without a name it has that of the task.
	Function activities.Function
}

// HasWorker reports whether the engine's workers do the items of the task, one by one or in batches.
func (t *Task) HasWorker() bool { return t.Run != nil || t.Batch != nil }

// Call is a function that a job runs in a worker, outside any transaction.
type Call struct {
	Queue string       // of the workers who run it; "" is the default queue
	Retry retry.Policy // after a failure; the zero value gives up at once
	Run   func(ctx context.Context, w *activities.Work) error

	Limits []Use           // what each attempt takes before it begins
	Hours  schedule.Window // when Run may begin; the zero value is always
	// FairBy is the key of a job's input between which its queue takes turns; nil is the same key for all.
	FairBy func(input json.RawMessage) (string, error)

	// Decode makes a value of the Go type of the job's input, for filters to look at; nil leaves it as JSON.
	Decode func(input json.RawMessage) (any, error)
}
