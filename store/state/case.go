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

// CaseState is the state of a case.
type CaseState uint8

// The states of a case. A case is started when it is created. The zero value is no state.
const (
	CaseNone CaseState = iota
	CaseStarted
	CaseCompleted
	CaseFailed
	CaseCanceled
)

var caseStateNames = [...]string{"none", "started", "completed", "failed", "canceled"}

// String returns the name of the state.
func (s CaseState) String() string { return word(caseStateNames[:], int(s)) }

// Final reports whether the case has ended.
func (s CaseState) Final() bool { return s >= CaseCompleted }

// stands returns the state of a work item that corresponds to the state of the case.
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

// ParseCaseState parses the name of a state.
func ParseCaseState(w string) (CaseState, error) {
	i, err := parseWord("state of a case", caseStateNames[:], w)
	return CaseState(i), err
}

// TaskState is the state of the latest activation of a task.
type TaskState uint8

// The states of a task. The zero value means that it was never enabled, or that its last activation was withdrawn.
const (
	TaskDisabled TaskState = iota
	TaskEnabled
	TaskStarted
	TaskCompleted
	TaskFailed
	TaskCanceled
)

var taskStateNames = [...]string{"disabled", "enabled", "started", "completed", "failed", "canceled"}

// String returns the name of the state.
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

// Task is the latest activation of a task in a case. Earlier activations are in the journal and in the tables; no
// command depends on them.
type Task struct {
	State      TaskState
	Generation int             // how often the task was enabled
	Created    int             // work items or child cases made in this activation
	Output     json.RawMessage // of the item that completed last; nil if the task completed without one
	Lost       bool            // it was started when its case failed, and was canceled because of that
}

// Resumable reports whether the latest activation ended by a failure: its own, or that of its case.
func (t *Task) Resumable() bool { return t.State == TaskFailed || t.Lost }

// Suspension records since when a case is suspended, by whom, and why.
type Suspension struct {
	At     time.Time
	By     string // "" if unknown
	Reason string // "" if none was given
}

// Case is the state of one case, without its descendants. It is copied before it is changed, so a pointer to it is a
// snapshot.
//
// A case has what the next command may need, and nothing else: the items of the latest activations, the live jobs, the
// waiting steps, the events that no step has taken. So a case that has looped a thousand times uses the memory of its
// last round. The integrity check verifies these invariants:
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
	Number     int             // its number in that activation, from 1
	Caller     workitem.JobID  // the job with the step that runs it; zero for any other case

	Workflow    string
	Version     string
	Fingerprint string   // of the definition that the case runs on
	Net         *net.Net // of that definition

	State   CaseState
	Begun   bool // some of its work has started
	Marking net.Marking
	Tasks   []Task // by net.TaskID

	Input   json.RawMessage
	Output  json.RawMessage
	Failure *workitem.Failure

	Suspended *Suspension // nil if it is not suspended, or has ended

	Options     json.RawMessage // the options of its start; nil if there were none
	Priority    int             // the default priority of its jobs; higher comes first
	Predecessor workitem.CaseID // the case that this one restarts; zero if none

	Key    string            // business key, such as an order number; "" if it has none
	Unique bool              // no other root case of the workflow may hold the same key; see [Case.HoldsKey]
	Labels map[string]string // by name, for searches; nil if it has none

	Created   time.Time
	Ended     time.Time
	KeepUntil time.Time // when an ended root case may be removed; zero keeps it
	LastSeq   int64     // journal position of the last change of the tree; only set on roots

	Items    Items // those of each task's latest activation
	Jobs     Jobs  // the live ones
	Children []workitem.CaseID
	Steps    Steps // of its jobs, the waiting ones
	Mail     Mail  // events that no step has taken yet
}

// Steps is the waiting steps of a case's jobs.
type Steps = List[*workitem.Step]

// Mail is the events that were sent to a case and that no step has taken.
type Mail = List[*Message]

// Label names a child case within its parent: "task.generation.number", or "workflow.number" if a step runs it.
func (c *Case) Label() string {
	if !c.Caller.IsZero() {
		return fmt.Sprintf("%s.%d", c.Workflow, c.Number)
	}
	return workitem.Label(c.ParentTask, c.Generation, c.Number)
}

// IsFunction reports whether a case is that of a single function (builder.Func), whose steps a new case can take over.
func (c *Case) IsFunction() bool { return c.Net.NumTasks() == 1 && c.Net.Task(0).Kind == net.Atomic }

// HoldsKey reports whether the case prevents others from having its business key: a root case with a unique key, unless
// it has failed or was canceled.
func (c *Case) HoldsKey() bool {
	return c.Unique && c.Key != "" && c.Parent.IsZero() && (c.State == CaseStarted || c.State == CaseCompleted)
}

// Turn returns the job by which a root case waits for the end of the earlier cases with its business key; nil if it
// does not wait for that.
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

// ItemState returns the state of the case as that of a work item: its composite task treats it as one.
func (c *Case) ItemState() workitem.State {
	if c.State.Final() {
		return c.State.stands()
	}
	if c.Begun {
		return workitem.Started
	}
	return workitem.Initialized
}

// Item returns a work item in memory; nil if there is none with that id.
func (c *Case) Item(id workitem.ID) *workitem.Item { return c.Items.Get(id) }

// Job returns a live job; nil if there is none with that id.
func (c *Case) Job(id workitem.JobID) *Job { return c.Jobs.Get(id) }

// Step returns a waiting step; nil if there is none with that id.
func (c *Case) Step(id workitem.StepID) *workitem.Step {
	return c.Steps.get(sortKey{id})
}

// Load sets the items and live jobs of a case that was read from a database. Call it before the case is part of a
// [Tree], after which only the tree may change it.
func (c *Case) Load(items []*workitem.Item, jobs []*Job) {
	c.Items, c.Jobs = Items{}, Jobs{}
	for _, it := range items {
		c.Items.put(it)
	}
	for _, j := range jobs {
		c.Jobs.put(j)
	}
}

// LoadWaits sets the waiting steps and the mail of a case that was read from a database.
func (c *Case) LoadWaits(steps []*workitem.Step, mail []*Message) {
	c.Steps, c.Mail = Steps{}, Mail{}
	for _, s := range steps {
		c.Steps.put(s)
	}
	for _, m := range mail {
		c.Mail.put(m)
	}
}
