// Package record has the JSON forms of stored data: of cases, work items, jobs and so on. The command tasq prints them,
// and the JSON API responds with them. Field names are stable, and empty fields are omitted. Times are ISO 8601 in UTC.
package record

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Case is the JSON form of a case.
type Case struct {
	ID          workitem.CaseID `json:"id"`
	Root        workitem.CaseID `json:"root"`
	Parent      workitem.CaseID `json:"parent,omitzero"`
	ParentTask  string          `json:"parent_task,omitempty"`
	Caller      workitem.JobID  `json:"caller,omitzero"` // the job with the step that runs it
	Generation  int             `json:"generation,omitempty"`
	Number      int             `json:"number,omitempty"`
	Workflow    string          `json:"workflow"`
	Version     string          `json:"version,omitempty"`
	Fingerprint string          `json:"fingerprint"`
	State       string          `json:"state"`
	Created     time.Time       `json:"created"`
	Ended       time.Time       `json:"ended,omitzero"`
	Marking     map[string]int  `json:"marking,omitempty"` // tokens by condition
	Tasks       []Task          `json:"tasks,omitempty"`   // those that were ever enabled
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`

	Failure *workitem.Failure `json:"failure,omitempty"`

	Options     json.RawMessage `json:"options,omitempty"` // the options of its start
	Priority    int             `json:"priority,omitempty"`
	Predecessor workitem.CaseID `json:"predecessor,omitzero"` // the case that it restarts
	KeepUntil   time.Time       `json:"keep_until,omitzero"`  // after its end; omitted if there is no limit

	Key    string            `json:"key,omitempty"` // business key
	Labels map[string]string `json:"labels,omitempty"`

	Suspended *Suspension `json:"suspended,omitempty"`
}

// OneCase is the JSON form of a case that is shown alone. A list does not have its further field, which needs a query for each case.
type OneCase struct {
	Case
	RestartedAs workitem.CaseID `json:"restarted_as,omitzero"` // the newest case that restarts or forks it, if it has ended
}

// Suspension is the JSON form of the suspension of a case.
type Suspension struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Task is the JSON form of a task of a case.
type Task struct {
	Name       string `json:"name"`
	State      string `json:"state"`
	Generation int    `json:"generation"`
}

// OfCase is the JSON form of a case.
func OfCase(c *state.Case) Case {
	row := Case{
		ID: c.ID, Root: c.Root, Parent: c.Parent, ParentTask: c.ParentTask, Caller: c.Caller, Generation: c.Generation,
		Workflow: c.Workflow, Version: c.Version, Fingerprint: c.Fingerprint, State: c.State.String(), Created: c.Created, Ended: c.Ended,
		Input: c.Input, Output: c.Output, Failure: c.Failure, Marking: make(map[string]int),
		Options: c.Options, Priority: c.Priority, Predecessor: c.Predecessor, KeepUntil: c.KeepUntil,
		Key: c.Key, Labels: c.Labels,
	}
	if s := c.Suspended; s != nil {
		row.Suspended = &Suspension{Since: s.At, By: s.By, Reason: s.Reason}
	}
	if !c.Parent.IsZero() {
		row.Number = c.Number
	}
	for p, n := range c.Marking {
		if n > 0 {
			row.Marking[c.Net.ConditionName(net.ConditionID(p))] = int(n)
		}
	}
	for t, task := range c.Tasks {
		if task.Generation > 0 {
			row.Tasks = append(row.Tasks, Task{c.Net.TaskName(net.TaskID(t)), task.State.String(), task.Generation})
		}
	}
	return row
}

// Item is the JSON form of a work item.
type Item struct {
	ID          workitem.ID     `json:"id"`
	Label       string          `json:"label"` // task.generation.number
	Case        workitem.CaseID `json:"case"`
	Root        workitem.CaseID `json:"root"`
	Workflow    string          `json:"workflow"`
	Task        string          `json:"task"`
	Generation  int             `json:"generation"`
	Number      int             `json:"number"`
	State       string          `json:"state"`
	Attempt     int             `json:"attempt"`
	Predecessor workitem.ID     `json:"predecessor,omitzero"`
	Successor   workitem.ID     `json:"successor,omitzero"`
	Queue       string          `json:"queue"`
	Priority    int             `json:"priority,omitempty"`
	By          string          `json:"by,omitempty"`
	Created     time.Time       `json:"created"`
	Due         time.Time       `json:"due,omitzero"`
	Started     time.Time       `json:"started,omitzero"`
	Ended       time.Time       `json:"ended,omitzero"`
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`

	Failure *workitem.Failure `json:"failure,omitempty"`

	Retry *activities.ItemRetry `json:"retry,omitempty"` // the changes of a repair to the retry policy of the task, with the attempts before it
}

// OfItem is the JSON form of a work item.
func OfItem(it *store.ItemRow) Item {
	return Item{
		ID: it.ID, Label: it.Label(), Case: it.Case, Root: it.Root, Workflow: it.Workflow, Task: it.Task,
		Generation: it.Generation, Number: it.Number, State: it.State.String(), Attempt: it.Attempt,
		Predecessor: it.Predecessor, Successor: it.Successor, Queue: it.Queue, Priority: it.Priority, By: it.By,
		Created: it.Created, Due: it.Due, Started: it.Started, Ended: it.Ended, Input: it.Input, Output: it.Output,
		Failure: it.Failure, Retry: retryOf(it.Item),
	}
}

// retryOf returns the retry policy that a repair gave an item; nil if it has none, or one that cannot be read, which the
// integrity check reports.
func retryOf(it *workitem.Item) *activities.ItemRetry {
	r, err := activities.RetryOfItem(it)
	if err != nil {
		return nil
	}
	return r
}

// Job is the JSON form of a job.
type Job struct {
	ID         workitem.JobID  `json:"id"`
	Case       workitem.CaseID `json:"case"`
	Root       workitem.CaseID `json:"root"`
	Task       string          `json:"task,omitempty"`
	Generation int             `json:"generation,omitempty"`
	Item       workitem.ID     `json:"item,omitzero"`
	Kind       string          `json:"kind"`
	Name       string          `json:"name,omitempty"`
	Queue      string          `json:"queue"`
	Priority   int             `json:"priority,omitempty"`
	State      string          `json:"state"`
	Due        time.Time       `json:"due,omitzero"`
	Attempt    int             `json:"attempt"`
	Crashes    int             `json:"crashes,omitempty"`
	Owner      string          `json:"owner,omitempty"`
	Lease      time.Time       `json:"lease,omitzero"`
	Detached   bool            `json:"detached,omitempty"`
	Created    time.Time       `json:"created"`
	Ended      time.Time       `json:"ended,omitzero"`
	Input      json.RawMessage `json:"input,omitempty"`

	Failure *workitem.Failure `json:"failure,omitempty"`
}

// OfJob is the JSON form of a job.
func OfJob(j *state.Job) Job {
	return Job{
		ID: j.ID, Case: j.Case, Root: j.Root, Task: j.Task, Generation: j.Generation, Item: j.Item, Kind: j.Kind,
		Name: j.Name, Queue: j.Queue, Priority: j.Priority, State: j.State.String(), Due: j.Due, Attempt: j.Attempt,
		Crashes: j.Crashes, Owner: j.Owner, Lease: j.Lease, Detached: j.Detached, Created: j.Created, Ended: j.Ended,
		Input: j.Input, Failure: j.Failure,
	}
}

// Count is the JSON form of a number of rows in one state.
type Count struct {
	What     string `json:"what"` // case, item or job
	Workflow string `json:"workflow"`
	Task     string `json:"task,omitempty"`
	State    string `json:"state"`
	N        int64  `json:"n"`
}
