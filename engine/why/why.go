// Package why explains what a case waits for: who or what must act next, since when, until when, and why it has not
// happened yet. [Explain] is a pure function of the state of a case's tree; [Read] reads that state from any store, including
// a read-only one. The engine and the command tasq use this package, so they give the same answer.
package why

import (
	"slices"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Kind says who or what must act next. The words are stable.
type Kind string

// The kinds of waits.
const (
	Person   Kind = "person"   // a work item waits for a user to start or to complete it
	Worker   Kind = "worker"   // a job is due, and waits for a worker
	Running  Kind = "running"  // a worker does the job now
	Retry    Kind = "retry"    // a failed attempt is followed by another one, at a time
	Delay    Kind = "delay"    // a time that was asked for: the begin of a case, the end of a sleep
	Timer    Kind = "timer"    // a timer of a task, or one that failed and is tried again
	Event    Kind = "event"    // a step waits for an event that is sent to the case
	Topic    Kind = "topic"    // a step waits for a broadcast
	Child    Kind = "case"     // a step waits for a child case, whose own waits are listed too
	Turn     Kind = "turn"     // the case begins when those with its key that were started before it have ended
	Join     Kind = "join"     // a task has some of the tokens that it needs, and waits for the others
	Incident Kind = "incident" // a job was given up: a person has to decide
	Stuck    Kind = "stuck"    // nothing can act: the case can only be canceled
)

// Block says why something that is due does not happen. The words are stable; "" means that nothing is known to be in the
// way.
type Block string

// The reasons. The first that applies is given.
const (
	NotLoaded Block = "not-loaded" // the engine was not opened with the case's version of its workflow
	NoWorkers Block = "no-workers" // the engine runs no jobs at all
	Stopped   Block = "stopped"    // the engine runs no jobs of this queue
	Suspended Block = "suspended"  // the case is suspended, or one above it; see Wait.Suspended
	Failing   Block = "failing"    // the store fails, since Wait.Down; the job is tried again until it works
	Behind    Block = "behind"     // others of the queue go first; see Wait.Ahead
	Paused    Block = "paused"     // the queue is paused
	Hours     Block = "hours"      // the window in which its function may begin is closed; see Wait.Hours and Wait.Until
	Limited   Block = "limited"    // it needs more of limits than is free; see Wait.Limits
	Gathering Block = "batch"      // it is done together with others, which are not there yet; see Wait.Batch and Wait.Until
	Busy      Block = "busy"       // all workers of the queue have jobs
	Lapsed    Block = "lapsed"     // the lease of the worker ran out, so it may be gone
)

// Answer is what a case waits for. It holds names and values only, so it can be stored and shown without the case.
type Answer struct {
	Case     workitem.CaseID   `json:"case"`
	Workflow string            `json:"workflow"`
	Version  string            `json:"version,omitempty"`
	State    state.CaseState   `json:"-"`
	Word     string            `json:"state"` // of State
	Failure  *workitem.Failure `json:"failure,omitempty"`
	Since    time.Time         `json:"since"` // when the case was created, or ended
	At       time.Time         `json:"at"`    // the time of the answer

	Tick *workflow.Tick `json:"tick,omitempty"` // of the schedule that started the case; nil if none did

	// Waits are what the case and its descendants wait for: those of the case first, then those of its child cases, each
	// group in the order of creation. Empty for a case that has ended and left no work behind.
	Waits []Wait `json:"waits"`
	More  int    `json:"more,omitempty"` // how many waits were left out, see MaxWaits

	// Holds are the slots of limits that the case and its descendants hold over several tasks, at most MaxWaits.
	Holds []Held `json:"holds,omitempty"`

	Tasks []Task `json:"tasks"` // of the case itself, as the definition lists them

	// Suspended is what keeps the case from going on: its own suspension, or that of a case above it; nil if there is none.
	Suspended *Suspension `json:"suspended,omitempty"`

	// Lost are the tasks of a failed case that were under way, and go on if it is resumed.
	Lost []string `json:"lost,omitempty"`

	// DeadLetter says of a root case that was given up which case its dead letter is; "" if there is none, or something has happened
	// to the case since, see its history.
	DeadLetter string `json:"deadLetter,omitempty"`
}

// MaxWaits bounds the waits of an answer: a case may have a hundred thousand items.
const MaxWaits = 1000

// Suspension is what keeps work from beginning until the case that has it is resumed.
type Suspension struct {
	Case   workitem.CaseID `json:"case"` // that is suspended
	Since  time.Time       `json:"since"`
	By     string          `json:"by,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// Task finds a task of the case; false if the workflow has none of that name.
func (a *Answer) Task(name string) (Task, bool) {
	for _, t := range a.Tasks {
		if t.Task == name {
			return t, true
		}
	}
	return Task{}, false
}

// Of lists the waits of a task of the case itself, without those of child cases.
func (a *Answer) Of(task string) []Wait {
	var own []Wait
	for _, w := range a.Waits {
		if w.Case == a.Case && w.Task == task {
			own = append(own, w)
		}
	}
	return own
}

// Wait is one thing that must happen next. Fields that do not apply to its kind are zero.
type Wait struct {
	Kind     Kind            `json:"kind"`
	Case     workitem.CaseID `json:"case"`           // the case itself, or a descendant
	Path     string          `json:"path,omitempty"` // of a descendant, from the case down: "print.1.2/collect.1.1"
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"`

	Task     string          `json:"task,omitempty"`
	Item     workitem.ID     `json:"item,omitzero"`
	Label    string          `json:"label,omitempty"` // of the item
	Job      workitem.JobID  `json:"job,omitzero"`
	Work     string          `json:"work,omitempty"`    // the kind of the job, one of store's Job constants
	State    string          `json:"state,omitempty"`   // of the item, or else of the job
	Name     string          `json:"name,omitempty"`    // of the timer, function, event or topic
	Step     string          `json:"step,omitempty"`    // the step of the job that waits
	Child    workitem.CaseID `json:"child,omitzero"`    // that the step waits for, that has its turn before, or that an incident is about
	Incident workitem.JobID  `json:"incident,omitzero"` // of a wait for a person's decision
	Queue    string          `json:"queue,omitempty"`   // "" is the default queue
	By       string          `json:"by,omitempty"`      // who started the item, or the worker that has the job

	Attempt  int               `json:"attempt,omitempty"`  // that is waited for or under way, from 1
	Attempts int               `json:"attempts,omitempty"` // how many there are at most; 0 if that is not known
	Failure  *workitem.Failure `json:"failure,omitempty"`  // of the last attempt

	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // when it happens by itself, or the deadline
	Overdue bool      `json:"overdue,omitempty"`

	Blocked Block `json:"blocked,omitempty"`
	Ahead   int   `json:"ahead,omitempty"` // how many go first; MaxAhead means that many or more

	Limits []Limit `json:"limits,omitempty"` // that have no room
	Needs  []Limit `json:"needs,omitempty"`  // that it takes of, if it is not known here whether they have room

	Debounced time.Time `json:"debounced,omitzero"` // of a case that further starts with its key put off: when the first came

	Hours schedule.Window `json:"hours,omitzero"` // of its function, if it waits until they begin

	Batch *Batch `json:"batch,omitempty"` // that it waits for

	Fair *Fair `json:"fair,omitempty"` // its place, if its queue takes turns between keys

	Paused *store.Decision `json:"paused,omitempty"` // since when the queue is paused, and by whom

	Workers *store.WorkersValue `json:"workers,omitempty"` // how many workers its queue was set to have, if it waits for one of them

	MaxRunning int `json:"maxRunning,omitempty"` // how many jobs of all queues run here at a time, if it waits for one of them to end

	Down time.Time `json:"down,omitzero"` // since when the store fails

	Suspended *Suspension `json:"suspended,omitempty"`

	Tokens *Tokens `json:"tokens,omitempty"` // of a join
	Text   string  `json:"text"`             // all of it, in words
}

// Limit is a limit that a job waits for.
type Limit struct {
	Limit string    `json:"limit"`          // its name
	Key   string    `json:"key,omitempty"`  // whose it is; "" is the one that all share. Of several, the one that is expected to admit first
	Any   []string  `json:"any,omitempty"`  // the keys of which any will do, if it is taken so
	N     int64     `json:"n"`              // how much the job needs; 0 if its input decides, and is not read here
	Free  time.Time `json:"free,omitzero"`  // when it has room for the first who waits, as far as time alone gives it; zero if something has to be given back
	Ahead int       `json:"ahead,omitzero"` // how many who wait for it go first
	Text  string    `json:"text"`           // "3 of rate openai, free in 4s"

	HeldBy []workitem.CaseID `json:"heldBy,omitempty"` // the cases that hold the slots over several tasks, if it waits for those

	key string // Key, if that is not what is shown of it
}

// Limited reports whether something waits for limits, or takes of limits of which it is not known here whether they have room.
func (a *Answer) Limited() bool {
	return slices.ContainsFunc(a.Waits, func(w Wait) bool { return len(w.Limits)+len(w.Needs) > 0 })
}

// Batch is what a job waits for that is done together with others.
type Batch struct {
	Most  int `json:"most"`            // how many are done together: it begins when there are as many, or its time is over
	There int `json:"there,omitempty"` // how many wait for it here, the job included; 0 if that is not known
}

// Fair is the place of a job in a queue that takes turns between keys of the input.
type Fair struct {
	Ahead int `json:"ahead,omitempty"` // how many jobs of its key go first, interleaved with those of the others
	Keys  int `json:"keys,omitempty"`  // how many keys have jobs that wait, its own too; 0 if it is not known here
}

// MaxAhead is how far others of a queue are counted.
const MaxAhead = store.DefaultLimit

// Task says where a task of the case stands.
type Task struct {
	Task       string `json:"task"`
	State      string `json:"state"`
	Generation int    `json:"generation"`
	Tokens
	Text string `json:"text"` // why the task can start, or cannot
}

// Tokens say which inputs of a task hold tokens, and for an or-join, how others can still come.
type Tokens struct {
	Join      string   `json:"join"`             // and, xor, or
	Marked    []string `json:"marked,omitempty"` // inputs with a token
	Empty     []string `json:"empty,omitempty"`  // inputs without one
	Runs      []Run    `json:"waits,omitempty"`  // of an or-join
	Undecided bool     `json:"undecided,omitempty"`
}

// Run is how an empty input of an or-join can still get a token.
type Run struct {
	Input string   `json:"input"`
	From  []string `json:"from"` // where the run begins: conditions with a token, and tasks that are under way
	Path  []string `json:"path"` // the tasks that complete in it, in this order
}
