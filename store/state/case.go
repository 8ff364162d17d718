package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workitem"
)

// CaseState is where a case stands.
type CaseState uint8

// The states of a case. A case is started from its creation on. The zero value is no state.
const (
	CaseNone CaseState = iota
	CaseStarted
	CaseCompleted
	CaseFailed
	CaseCanceled
)

var caseStateNames = [...]string{"none", "started", "completed", "failed", "canceled"}

// String returns the word for the state.
func (s CaseState) String() string { return word(caseStateNames[:], int(s)) }

// Final reports whether the case has ended.
func (s CaseState) Final() bool { return s >= CaseCompleted }

// stands is the state of a work item that has ended like the case.
func (s CaseState) stands() workitem.State {
	switch s {
	case CaseCompleted:
		return workitem.Completed
	case CaseFailed:
		return workitem.Failed
	case CaseCanceled:
		return workitem.Canceled
	}
	return workitem.None
}

// ParseCaseState reads the word for a case's state.
func ParseCaseState(w string) (CaseState, error) {
	i, err := parseWord("state of a case", caseStateNames[:], w)
	return CaseState(i), err
}

// TaskState is where the latest activation of a task stands.
type TaskState uint8

// The states of a task. The zero value means that it was never enabled, or that its last enabling was withdrawn.
const (
	TaskDisabled TaskState = iota
	TaskEnabled
	TaskStarted
	TaskCompleted
	TaskFailed
	TaskCanceled
)

var taskStateNames = [...]string{"disabled", "enabled", "started", "completed", "failed", "canceled"}

// String returns the word for the state.
func (s TaskState) String() string { return word(taskStateNames[:], int(s)) }

// Active reports whether the task is enabled or started.
func (s TaskState) Active() bool { return s == TaskEnabled || s == TaskStarted }

func word(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("state(%d)", i)
}

func parseWord(what string, names []string, w string) (int, error) {
	if i := slices.Index(names, w); i > 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%q is not a %s; use one of %s", w, what, strings.Join(names[1:], ", "))
}

// Task is the latest activation of a task within a case. Earlier ones are in the journal, and in the tables; nothing that a
// command decides depends on them.
type Task struct {
	State      TaskState
	Generation int             // how often the task was enabled
	Created    int             // work items or child cases made in this activation
	Output     json.RawMessage // of the item that completed last; nil if the task completed without since
	Lost       bool            // it was started as its case failed, which canceled it
}

// Resumable reports whether the latest activation ended by a failure: its own, or that of the case.
func (t *Task) Resumable() bool { return t.State == TaskFailed || t.Lost }

// Suspension says since when nothing of a case begins, who asked for that, and why.
type Suspension struct {
	At     time.Time
	By     string // "" is unknown
	Reason string // "" if none was given
}

// Case is the state of one case, without its descendants. A Case is copied before it is changed, so a pointer is a
// snapshot.
//
// It holds what the next command may need, and no more: the items of the latest activations, the jobs that are not done,
// the steps that wait, the events not taken. So the memory of a case that has looped a thousand times is that of its
// last round. The invariants that the integrity check holds a case to:
//
//   - a marking has no negative count, and one entry for each condition of the net;
//   - an item, child case or job of an activation is live only while the activation is the latest and active;
//   - a case that has ended has no live item, no started or enabled task, and detached jobs alone, and is not suspended;
//   - what the journal of the tree rebuilds is this value, field by field.
type Case struct {
	ID         workitem.CaseID
	Root       workitem.CaseID // itself for a root case
	Parent     workitem.CaseID // zero for a root case
	ParentTask string          // the composite task that runs it; "" for a root case
	Generation int             // the activation of that task
	Number     int             // which case of that activation, from 1
	Caller     workitem.JobID  // the job, a step of which runs it; zero for any other case

	Workflow    string
	Version     string
	Fingerprint string   // of the definition that the case runs on
	Net         *net.Net // of that definition

	State   CaseState
	Begun   bool // some work of it has started
	Marking net.Marking
	Tasks   []Task // by net.TaskID

	Input   json.RawMessage
	Output  json.RawMessage
	Failure *workitem.Failure

	Suspended *Suspension // nothing of it begins until it is resumed; nil if it goes on, or has ended

	Options     json.RawMessage // what the caller asked of this run beyond its input; nil if nothing
	Priority    int             // of its jobs where their task gives none; higher goes first
	Predecessor workitem.CaseID // the run that this one restarts; zero if none

	Key    string            // business key, such as the number of an order; "" if it has none
	Unique bool              // no other root case of the workflow may hold the same key, see [Case.HoldsKey]
	Labels map[string]string // values by name, by which it is found; nil if it has none

	Created   time.Time
	Ended     time.Time
	KeepUntil time.Time // of an ended root case: it may be removed from then on; zero keeps it
	LastSeq   int64     // journal position of the last change of the tree; kept on roots

	Items    Items // those of each task's latest activation
	Jobs     Jobs  // the live ones
	Children []workitem.CaseID
	Steps    Steps // of its jobs, the waiting ones
	Mail     Mail  // events that no step has taken yet
}

// Steps are the waiting steps of a case's jobs.
type Steps = List[*workitem.Step]

// Mail is what was sent to a case and no step has taken.
type Mail = List[*Message]

// Label names a child case within its parent: "task.generation.number", or "workflow.number" for one that a step runs.
func (c *Case) Label() string {
	if !c.Caller.IsZero() {
		return fmt.Sprintf("%s.%d", c.Workflow, c.Number)
	}
	return workitem.Label(c.ParentTask, c.Generation, c.Number)
}

// HoldsKey reports whether the case keeps others from its business key: a root case with a unique key does, unless it failed or was
// canceled.
func (c *Case) HoldsKey() bool {
	return c.Unique && c.Key != "" && c.Parent.IsZero() && (c.State == CaseStarted || c.State == CaseCompleted)
}

// Turn is the job by which a root case waits until those with its business key that were started before it have ended; nil if it does not
// wait for that.
func (c *Case) Turn() *Job {
	for j := range c.Jobs.All() {
		if j.Kind == JobStart && j.State == JobWaiting {
			return j
		}
	}
	return nil
}

// Busy returns the set of started tasks.
func (c *Case) Busy() net.Bits {
	b := net.NewBits(len(c.Tasks))
	for i := range c.Tasks {
		if c.Tasks[i].State == TaskStarted {
			b.Add(i)
		}
	}
	return b
}

// Stands says where the case stands in the words of a work item, which a child case is to its composite task.
func (c *Case) Stands() workitem.State {
	if c.State.Final() {
		return c.State.stands()
	}
	if c.Begun {
		return workitem.Started
	}
	return workitem.Initialized
}

// Item finds a work item in memory; nil if it is not there.
func (c *Case) Item(id workitem.ID) *workitem.Item { return c.Items.Get(id) }

// Job finds a live job; nil if it is not there.
func (c *Case) Job(id workitem.JobID) *Job { return c.Jobs.Get(id) }

// Step finds a waiting step; nil if it is not there.
func (c *Case) Step(id workitem.StepID) *workitem.Step {
	return c.Steps.get(sortKey{id})
}

// Load gives a case that was read from a database the items and jobs that it holds in memory. Do this before the case
// is part of a [Tree], which alone changes it from then on.
func (c *Case) Load(items []*workitem.Item, jobs []*Job) {
	c.Items, c.Jobs = Items{}, Jobs{}
	for _, it := range items {
		c.Items.put(it)
	}
	for _, j := range jobs {
		c.Jobs.put(j)
	}
}

// LoadWaits fills the waiting steps and the mail of a case that a store has read.
func (c *Case) LoadWaits(steps []*workitem.Step, mail []*Message) {
	c.Steps, c.Mail = Steps{}, Mail{}
	for _, s := range steps {
		c.Steps.put(s)
	}
	for _, m := range mail {
		c.Mail.put(m)
	}
}
