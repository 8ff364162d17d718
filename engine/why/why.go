// Package why explains what a case waits for: who or what must act next, since when, until when, and why that has not
// happened yet. [Explain] is a pure function of the state of a tree; [Read] reads that state from any store, also from
// a read-only one. The engine and the command tasq both use this package, so they give the same answer.
//
// A wait has a kind, which says who must act, and, if it is overdue, a block, which says what prevents that:
//
//	work item for a person          Person
//	job    due later                Retry, Delay, Timer
//	       due now                  Worker: NotLoaded, NoWorkers, Paused, Limited, Busy, ...; Running once a worker has it
//	       suspended by its steps   Event, Topic, Child: one wait for each step
//	task with only some tokens      Join
//	none of these                   Stuck
package why

import (
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Kind says who or what must act next. The values are stable.
type Kind string

// The kinds of waits.
const (
	Person   Kind = "person"   // a work item waits for a user to start or to complete it
	Worker   Kind = "worker"   // a job is due, and waits for a worker
	Running  Kind = "running"  // a worker does the job now
	Retry    Kind = "retry"    // a failed attempt is followed by another one, at a time
	Delay    Kind = "delay"    // a time that was asked for: the begin of a case, the end of a sleep
	Timer    Kind = "timer"    // a timer of a task, or the next attempt of one that failed
	Event    Kind = "event"    // a step waits for an event that is sent to the case
	Topic    Kind = "topic"    // a step waits for a broadcast
	Child    Kind = "case"     // a step waits for a child case, whose own waits are listed too
	Turn     Kind = "turn"     // the case begins when those with its key that were started before it have ended
	Join     Kind = "join"     // a task has some of the tokens that it needs, and waits for the others
	Incident Kind = "incident" // a job was given up: a person has to decide
	Stuck    Kind = "stuck"    // nothing can act: a person moves a token to where the case can continue, or cancels the case
)

// Block says why something that is due does not happen. The values are stable; "" means that no obstacle is known.
type Block string

// The blocks, in the order of their precedence.
const (
	NotLoaded Block = "not-loaded" // no open engine has the case's version of its workflow
	NoWorkers Block = "no-workers" // the engine runs no jobs at all
	Stopped   Block = "stopped"    // the engine runs no jobs of this queue
	Suspended Block = "suspended"  // the case is suspended, or one above it; see Wait.Suspended
	Failing   Block = "failing"    // the store fails, since Wait.Down; the job is retried until it works
	Behind    Block = "behind"     // earlier jobs of the queue wait too; see Wait.Ahead
	Paused    Block = "paused"     // the queue is paused
	Hours     Block = "hours"      // outside the time window of its function; see Wait.Hours and Wait.Until
	Limited   Block = "limited"    // it needs more of limits than is free; see Wait.Limits
	Gathering Block = "batch"      // it waits for the other jobs of its batch; see Wait.Batch and Wait.Until
	Busy      Block = "busy"       // all workers of the queue have jobs
	Lapsed    Block = "lapsed"     // the lease of its worker has expired, so the worker may be gone
)

// Answer is what a case waits for. It has only names and values, so it can be stored and shown without the case.
type Answer struct {
	Case     workitem.CaseID   `json:"case"`
	Workflow string            `json:"workflow"`
	Version  string            `json:"version,omitempty"`
	State    state.CaseState   `json:"-"`
	Word     string            `json:"state"` // of State
	Failure  *workitem.Failure `json:"failure,omitempty"`
	Since    time.Time         `json:"since"` // when the case was created, or ended
	At       time.Time         `json:"at"`    // the time of the answer

	Tick *workflow.Tick `json:"tick,omitempty"` // the tick of the schedule that started the case; nil if none did

	// Waits are what the case and its descendants wait for: those of the case first, then those of its child cases,
	// each group in the order of creation. It is empty for a case that has ended and left no work behind.
	Waits []Wait `json:"waits"`
	More  int    `json:"more,omitempty"` // the number of waits that were left out, see MaxWaits

	// Holds are the slots of limits that the case and its descendants hold over several tasks, at most MaxWaits.
	Holds []Held `json:"holds,omitempty"`

	Tasks []Task `json:"tasks"` // of the case itself, as the definition lists them

	// Suspended is the suspension of the case, or of a case above it; nil if there is none.
	Suspended *Suspension `json:"suspended,omitempty"`

	// Lost are the tasks of a failed case that were started, and continue if it is resumed.
	Lost []string `json:"lost,omitempty"`

	// DeadLetter says which case is the dead letter of a failed root case; "" if there is none, or if the case has
	// changed since (see its history).
	DeadLetter string `json:"deadLetter,omitempty"`

	// RestartedAs is the newest restart or fork of a root case that has ended; zero if there is none.
	RestartedAs workitem.CaseID `json:"restartedAs,omitzero"`
}

// MaxWaits bounds the waits of an answer: a case may have a hundred thousand items. Beyond it, an answer has the first [MaxAlike] of
// each kind and task.
const MaxWaits = 1000

// Suspension is a suspension: no work starts until the case that has it is resumed.
type Suspension struct {
	Case   workitem.CaseID `json:"case"` // the suspended case
	Since  time.Time       `json:"since"`
	By     string          `json:"by,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// Task returns a task of the case; false if the workflow has none of that name.
func (a *Answer) Task(name string) (Task, bool) {
	for _, t := range a.Tasks {
		if t.Task == name {
			return t, true
		}
	}
	return Task{}, false
}

// Of returns the waits of a task of the case itself, without those of child cases.
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
	Path     string          `json:"path,omitempty"` // the path of a descendant, from the case down: "print.1.2/collect.1.1"
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
	Child    workitem.CaseID `json:"child,omitzero"`    // the case that the step waits for, that comes before this one, or that an incident is about
	Incident workitem.JobID  `json:"incident,omitzero"` // of a wait for a person's decision
	Queue    string          `json:"queue,omitempty"`   // "" is the default queue
	By       string          `json:"by,omitempty"`      // who started the item, or the worker of the job

	Attempt  int               `json:"attempt,omitempty"`  // the current or next attempt, from 1
	Attempts int               `json:"attempts,omitempty"` // the maximum number of attempts; 0 if it is not known
	Failure  *workitem.Failure `json:"failure,omitempty"`  // of the last attempt

	Retry *activities.ItemRetry `json:"retry,omitempty"` // what a repair changed of the retry policy; nil for nothing

	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // when it happens by itself, or the deadline
	Overdue bool      `json:"overdue,omitempty"`

	Blocked Block `json:"blocked,omitempty"`
	Ahead   int   `json:"ahead,omitempty"` // the number of earlier jobs or items; MaxAhead means that many or more

	Limits []Limit `json:"limits,omitempty"` // the limits without room
	Needs  []Limit `json:"needs,omitempty"`  // the limits that it needs, if it is not known here whether they have room

	Debounced time.Time `json:"debounced,omitzero"` // for a debounced case: the time of the first start of the series

	Hours schedule.Window `json:"hours,omitzero"` // of its function, if it waits for them

	Batch *Batch `json:"batch,omitempty"` // that it waits for

	Fair *Fair `json:"fair,omitempty"` // its position, if its queue is fair

	Paused *store.Decision `json:"paused,omitempty"` // since when the queue, or the key, is paused, and by whom

	PausedKey string `json:"pausedKey,omitempty"` // the key of the queue that is paused; "" if the whole queue is

	// MayBePaused is how many keys of the queue are paused, if its jobs have keys, and it is not known here which one
	// this job has.
	MayBePaused int `json:"mayBePaused,omitempty"`
	// MayBePausedKeys are the first of these keys, sorted.
	MayBePausedKeys []string `json:"mayBePausedKeys,omitempty"`

	Workers *store.WorkersValue `json:"workers,omitempty"` // the number of workers that was set for its queue, if all of them have jobs

	MaxRunning int `json:"maxRunning,omitempty"` // the bound of running jobs of all queues here, if it is reached

	Down time.Time `json:"down,omitzero"` // since when the store fails

	Suspended *Suspension `json:"suspended,omitempty"`

	Missing *Missing `json:"missing,omitempty"` // whose definition is not loaded, if that is not the case of the wait

	Tokens *Tokens `json:"tokens,omitempty"` // of a join
	Text   string  `json:"text"`             // all of it in words, except for Commands

	// Commands are the commands by which a person ends an incident, that which retries it first, or the wait of a case in which nothing is
	// under way. What Text says that can be done is in the same order.
	Commands []string `json:"commands,omitempty"`

	composite bool // Task is a composite task without child cases
}

// Missing is another workflow than that of the case, which the engine was not opened with: that of a case above, which the end of the
// case changes, or the one that the case starts, as a schedule does.
type Missing struct {
	Case     workitem.CaseID `json:"case,omitzero"` // the case above; zero if the workflow is one that the case starts
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"` // of the case above
}

// lacking returns the workflow that is not loaded, with its version.
func (w *Wait) lacking() string {
	if w.Missing != nil {
		return versioned(w.Missing.Workflow, w.Missing.Version)
	}
	return versioned(w.Workflow, w.Version)
}

// Limit is a limit that a job waits for.
type Limit struct {
	Limit string    `json:"limit"`          // its name
	Key   string    `json:"key,omitempty"`  // "" if the limit has no keys; for a pool, the key that is expected to have room first
	Any   []string  `json:"any,omitempty"`  // the keys of the pool, if it is one
	N     int64     `json:"n"`              // how much the job needs; 0 if that depends on its input, which is not read here
	Free  time.Time `json:"free,omitzero"`  // when it has room for the first job in its line; zero if time alone does not give it
	Ahead int       `json:"ahead,omitzero"` // the number of earlier jobs in its line
	Text  string    `json:"text"`           // "3 of rate openai, free in 4s"

	HeldBy []workitem.CaseID `json:"heldBy,omitempty"` // the cases that hold the slots over several tasks, if it waits for those

	HeldOutside  int64 `json:"heldOutside,omitempty"`  // the slots that code outside of jobs holds, see engine.Limits
	AheadOutside int   `json:"aheadOutside,omitempty"` // how many of Ahead are such code

	key string // Key, if that is not what is shown of it
}

// Limited reports whether a wait is for limits, or needs limits of which it is not known here whether they have room.
func (a *Answer) Limited() bool {
	return slices.ContainsFunc(a.Waits, func(w Wait) bool { return len(w.Limits)+len(w.Needs) > 0 })
}

// Batch is the batch that a job waits for.
type Batch struct {
	Most  int `json:"most"`            // the size of the batch; it starts when it is full, or after a wait
	There int `json:"there,omitempty"` // the number of jobs in it, with this one; 0 if it is not known
}

// Fair is the position of a job in a fair queue.
type Fair struct {
	Ahead int `json:"ahead,omitempty"` // the number of earlier jobs of its key; jobs of other keys start in between
	Keys  int `json:"keys,omitempty"`  // the number of keys with waiting jobs, with its own; 0 if it is not known here
}

// MaxAhead is the number up to which earlier jobs and items of a queue are counted.
const MaxAhead = store.DefaultLimit

// Task is the state of a task of the case.
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
