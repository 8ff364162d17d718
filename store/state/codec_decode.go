package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workitem"
)

// Nets finds the nets of stored names. Both functions return nil if there is none.
type Nets struct {
	Definition func(fingerprint string) *net.Net
	Case       func(workitem.CaseID) *net.Net // of a case that an earlier entry opened
}

// wire is the JSON form of every kind of change.
// One struct serves all kinds, since most keys are used by several of them. For example, both of these have the keys
// to and at:
//
//	{"e":"item","item":"...","action":"start","to":"started","at":...}
//	{"e":"job","job":"...","to":"running","at":...}
type wire struct {
	E           string             `json:"e"`
	Case        workitem.CaseID    `json:"case"`
	Root        workitem.CaseID    `json:"root"`
	Parent      workitem.CaseID    `json:"parent"`
	Item        workitem.ID        `json:"item"`
	Job         workitem.JobID     `json:"job"`
	Predecessor workitem.ID        `json:"predecessor"`
	Successor   workitem.ID        `json:"successor"`
	Task        string             `json:"task"`
	Gen         int                `json:"gen"`
	N           int64              `json:"n"`
	Workflow    string             `json:"workflow"`
	Version     string             `json:"version"`
	Fingerprint string             `json:"fingerprint"`
	Options     json.RawMessage    `json:"options"`
	Restarts    workitem.CaseID    `json:"restarts"`
	Key         string             `json:"key"`
	Unique      bool               `json:"unique"`
	Frees       bool               `json:"frees"`
	Labels      map[string]string  `json:"labels"`
	To          string             `json:"to"`
	Action      string             `json:"action"`
	From        []string           `json:"from"`
	Into        []string           `json:"into"`
	Left        []string           `json:"left"`
	Condition   string             `json:"condition"`
	Retry       json.RawMessage    `json:"retry"`
	Input       json.RawMessage    `json:"input"`
	Output      json.RawMessage    `json:"output"`
	Failure     *workitem.Failure  `json:"failure"`
	Queue       string             `json:"queue"`
	Priority    int                `json:"priority"`
	By          string             `json:"by"`
	Kind        string             `json:"kind"`
	Name        string             `json:"name"`
	Detached    bool               `json:"detached"`
	Lost        bool               `json:"lost"`
	Attempt     int                `json:"attempt"`
	Crashes     int                `json:"crashes"`
	Fence       int64              `json:"fence"`
	Owner       string             `json:"owner"`
	Code        string             `json:"code"`
	Text        string             `json:"text"`
	At          micros             `json:"at"`
	Due         micros             `json:"due"`
	Lease       micros             `json:"lease"`
	Step        workitem.StepID    `json:"step"`
	Event       workitem.MessageID `json:"event"`
	Child       workitem.CaseID    `json:"child"`
	Caller      workitem.JobID     `json:"caller"`
	Target      string             `json:"target"`
	Topic       bool               `json:"topic"`
	Copied      bool               `json:"copied"`
	Run         int                `json:"run"`
	Started     micros             `json:"started"`
	Ended       micros             `json:"ended"`
	Keep        micros             `json:"keep"`
}

// micros is a time as it is stored; the zero time is left out, so an absent key is the zero time again.
type micros time.Time

// UnmarshalJSON decodes a number of microseconds.
func (m *micros) UnmarshalJSON(data []byte) error {
	us, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return err
	}
	*m = micros(FromMicros(us))
	return nil
}

// DecodeChanges decodes what [AppendChanges] has encoded for a command on the tree of the root case. The error wraps
// [ErrCorrupt], and shows the invalid change.
func DecodeChanges(data []byte, root workitem.CaseID, nets Nets) ([]Change, error) {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.begin(data)
	d := decoder{root: root, nets: nets, changes: make([]Change, 0, bytes.Count(data, []byte(`{"e":`)))}
	for w := new(wire); s.next(len(d.changes) == 0, w); {
		if err := d.add(w); err != nil {
			return nil, corrupt(fmt.Sprintf("change (number %d)", len(d.changes)), data, err)
		}
	}
	if s.odd {
		return decodeAny(data, root, nets)
	}
	return d.changes, nil
}

// decodeAny decodes any JSON, by encoding/json.
// It is needed for a text in another form, such as one with spaces, and to say what is wrong with a damaged one.
func decodeAny(data []byte, root workitem.CaseID, nets Nets) ([]Change, error) {
	var rows []wire
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, corrupt("list of changes", data, err)
	}
	d := decoder{root: root, nets: nets, changes: make([]Change, 0, len(rows))}
	for i := range rows {
		if err := d.add(&rows[i]); err != nil {
			return nil, corrupt(fmt.Sprintf("change (number %d)", i), data, err)
		}
	}
	return d.changes, nil
}

// corrupt says which stored data is damaged, and shows its begin: with that, the row can be found in the database.
func corrupt(what string, data []byte, err error) error {
	return fmt.Errorf("%w: a stored %s cannot be read: %.120q: %w", ErrCorrupt, what, data, err)
}

// decoder collects the changes of a command, and the nets of the cases that it opened.
type decoder struct {
	root    workitem.CaseID
	nets    Nets
	opened  map[workitem.CaseID]*net.Net
	changes []Change
}

// add adds a change. It keeps only the strings and payloads of w.
// The root case is left out of the stored form, see ofTree.
func (d *decoder) add(w *wire) error {
	if w.Case.IsZero() {
		w.Case = d.root
	}
	if w.Root.IsZero() {
		w.Root = d.root
	}
	e, err := d.change(w)
	if err == nil {
		d.changes = append(d.changes, e)
	}
	return err
}

// change decodes one change by its kind. An unknown kind is an error, not a change that is skipped: a state that is
// rebuilt without it would be wrong, and nothing would show that. It is what an older program finds in the journal of a
// newer one.
func (d *decoder) change(w *wire) (Change, error) {
	switch w.E {
	case wordCaseOpened:
		return d.caseOpened(w)
	case wordCaseBegun:
		return &CaseBegun{Case: w.Case}, nil
	case wordCaseResumed:
		return &CaseResumed{Case: w.Case, At: time.Time(w.At)}, nil
	case wordCaseSuspended:
		return &CaseSuspended{Case: w.Case, Suspension: Suspension{At: time.Time(w.At), By: w.By, Reason: w.Text}}, nil
	case wordCaseContinued:
		return &CaseContinued{Case: w.Case, At: time.Time(w.At)}, nil
	case wordCaseRemoved:
		return &CaseRemoved{Case: w.Case}, nil
	case wordCaseEnded, wordTask, wordTaskResumed, wordProduced, wordRemoved, wordMoved, wordNote:
		return d.named(w)
	case wordItemOpened:
		return itemOpened(w)
	case wordItem:
		return itemMoved(w)
	case wordRetry:
		return &RetryChanged{Case: w.Case, Item: w.Item, Retry: w.Retry}, nil
	case wordJobOpened:
		return jobOpened(w)
	case wordJob:
		return jobMoved(w)
	case wordStepOpened:
		return stepOpened(w)
	case wordStep:
		return stepMoved(w)
	case wordSent:
		return &MessageSent{Message: &Message{ID: w.Event, Case: w.Case, Name: w.Name, Topic: w.Topic, Value: w.Input,
			By: w.By, Sent: time.Time(w.At)}}, nil
	case wordTaken:
		return &MessageTaken{Case: w.Case, Message: w.Event, Step: w.Step, At: time.Time(w.At)}, nil
	}
	return nil, fmt.Errorf("%q is not a kind of change that this version knows", w.E)
}

func (d *decoder) caseOpened(w *wire) (Change, error) {
	n := d.nets.Definition(w.Fingerprint)
	if n == nil {
		return nil, fmt.Errorf("there is no definition with fingerprint %q (workflow %s)", w.Fingerprint, w.Workflow)
	}
	// Later changes of the same command may name tasks of this case, which no earlier entry has opened.
	if d.opened == nil {
		d.opened = make(map[workitem.CaseID]*net.Net, 1)
	}
	d.opened[w.Case] = n
	return &CaseOpened{Case: &Case{
		ID: w.Case, Root: w.Root, Parent: w.Parent, ParentTask: w.Task, Generation: w.Gen, Number: int(w.N),
		Caller: w.Caller, Workflow: w.Workflow, Version: w.Version, Fingerprint: w.Fingerprint, Net: n,
		State: CaseStarted, Input: w.Input, Options: w.Options, Priority: w.Priority, Predecessor: w.Restarts,
		Key: w.Key, Unique: w.Unique, Labels: w.Labels, Created: time.Time(w.At),
	}}, nil
}

// named decodes the changes with names of tasks or conditions. The names are those of the net of the case: of one that
// the same command has opened, or else of one that an earlier entry has.
func (d *decoder) named(w *wire) (Change, error) {
	n := d.opened[w.Case]
	if n == nil {
		n = d.nets.Case(w.Case)
	}
	if n == nil {
		return nil, fmt.Errorf("case %s is not there", w.Case)
	}
	t := net.TaskID(-1)
	if needs := w.E != wordCaseEnded && w.E != wordNote && w.E != wordMoved; needs || w.Task != "" {
		var ok bool
		if t, ok = n.TaskByName(w.Task); !ok {
			return nil, fmt.Errorf("workflow %s has no task %q", n.Name(), w.Task)
		}
	}
	switch w.E {
	case wordTask:
		consumed, err := conditionIDs(n, w.From)
		if err != nil {
			return nil, err
		}
		to, err := parseTaskState(w.To)
		return &TaskMoved{Case: w.Case, Task: t, To: to, Generation: w.Gen, Consumed: consumed, Lost: w.Lost}, err
	case wordTaskResumed:
		return &TaskResumed{Case: w.Case, Task: t, Generation: w.Gen}, nil
	case wordProduced:
		into, err := conditionIDs(n, w.Into)
		return &Produced{Case: w.Case, Task: t, Into: into}, err
	case wordMoved:
		from, err := conditionIDs(n, w.From)
		if err != nil {
			return nil, err
		}
		into, err := conditionIDs(n, w.Into)
		return &TokensMoved{Case: w.Case, From: from, Into: into}, err
	case wordRemoved:
		from, err := conditionIDs(n, []string{w.Condition})
		if err != nil {
			return nil, err
		}
		if w.N < 0 || w.N > math.MaxInt32 {
			return nil, fmt.Errorf("%d is not a number of tokens", w.N)
		}
		return &Removed{Case: w.Case, Task: t, From: from[0], Tokens: int32(w.N)}, nil
	case wordNote:
		return &Noted{Case: w.Case, Task: t, Code: w.Code, Text: w.Text}, nil
	}
	left, err := conditionIDs(n, w.Left)
	if err != nil {
		return nil, err
	}
	to, err := ParseCaseState(w.To)
	return &CaseEnded{Case: w.Case, State: to, Output: w.Output, Failure: w.Failure, Leftover: left,
		At: time.Time(w.At), KeepUntil: time.Time(w.Keep), FreesKey: w.Frees}, err
}

func conditionIDs(n *net.Net, names []string) ([]net.ConditionID, error) {
	if len(names) == 0 {
		return nil, nil
	}
	ids := make([]net.ConditionID, len(names))
	for i, name := range names {
		id, ok := n.ConditionByName(name)
		if !ok {
			return nil, fmt.Errorf("workflow %s has no condition %q", n.Name(), name)
		}
		ids[i] = id
	}
	return ids, nil
}

// parseTaskState is unlike [ParseCaseState] in that it accepts the zero value: a change to disabled is the withdrawal of
// an activation, whose tokens another task has taken.
func parseTaskState(w string) (TaskState, error) {
	if i := slices.Index(taskStateNames[:], w); i >= 0 {
		return TaskState(i), nil
	}
	return 0, fmt.Errorf("%q is not a state of a task", w)
}

// The functions below are the inverses of those in codec_items.go and codec_wait.go. A field that was left out is zero
// in wire, and so in the result.

func itemOpened(w *wire) (Change, error) {
	state, err := workitem.ParseState(w.To)
	return &ItemOpened{Item: &workitem.Item{
		ID: w.Item, Case: w.Case, Task: w.Task, Generation: w.Gen, Number: int(w.N), State: state, Attempt: w.Attempt,
		Predecessor: w.Predecessor, Successor: w.Successor, Retry: w.Retry, Input: w.Input, Output: w.Output, Failure: w.Failure,
		Queue: w.Queue, Priority: w.Priority, By: w.By, Created: time.Time(w.At), Due: time.Time(w.Due),
		Started: time.Time(w.Started), Ended: time.Time(w.Ended),
	}}, err
}

func itemMoved(w *wire) (Change, error) {
	to, err := workitem.ParseState(w.To)
	if err != nil {
		return nil, err
	}
	action, err := workitem.ParseAction(w.Action)
	return &ItemMoved{Case: w.Case, Item: w.Item, Action: action, To: to, Output: w.Output, Failure: w.Failure,
		By: w.By, At: time.Time(w.At)}, err
}

func jobOpened(w *wire) (Change, error) {
	state, err := ParseJobState(w.To)
	return &JobOpened{Job: &Job{
		ID: w.Job, Case: w.Case, Root: w.Root, Task: w.Task, Generation: w.Gen, Item: w.Item, Kind: w.Kind,
		Name: w.Name, Queue: w.Queue, Priority: w.Priority, Input: w.Input, Detached: w.Detached, State: state,
		Due: time.Time(w.Due), Attempt: w.Attempt, Crashes: w.Crashes, Fence: w.Fence, Owner: w.Owner, Lease: time.Time(w.Lease),
		Failure: w.Failure, Created: time.Time(w.At), Ended: time.Time(w.Ended),
	}}, err
}

func jobMoved(w *wire) (Change, error) {
	to, err := ParseJobState(w.To)
	return &JobMoved{Case: w.Case, Job: w.Job, To: to, Due: time.Time(w.Due), Attempt: w.Attempt, Crashes: w.Crashes,
		Fence: w.Fence, Owner: w.Owner, Lease: time.Time(w.Lease), Failure: w.Failure, At: time.Time(w.At)}, err
}

func stepOpened(w *wire) (Change, error) {
	state, err := workitem.ParseStepState(w.To)
	return &StepOpened{Step: &workitem.Step{
		ID: w.Step, Job: w.Job, Item: w.Item, Case: w.Case, Name: w.Name, Kind: workitem.StepKind(w.Kind), Target: w.Target,
		Topic: w.Topic, Input: w.Input, State: state, Attempt: w.Attempt, Run: w.Run, Due: time.Time(w.Due),
		Child: w.Child, Result: w.Output, Failure: w.Failure, Copied: w.Copied,
		Created: time.Time(w.At), Ended: time.Time(w.Ended),
	}}, err
}

func stepMoved(w *wire) (Change, error) {
	to, err := workitem.ParseStepState(w.To)
	return &StepMoved{Case: w.Case, Job: w.Job, Step: w.Step, To: to, Attempt: w.Attempt, Due: time.Time(w.Due),
		Result: w.Output, Failure: w.Failure, At: time.Time(w.At)}, err
}
