package record

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Step is the JSON form of a step.
type Step struct {
	ID      workitem.StepID `json:"id"`
	Name    string          `json:"name"`
	Kind    string          `json:"kind"`
	State   string          `json:"state"`
	Case    workitem.CaseID `json:"case"`
	Job     workitem.JobID  `json:"job"`
	Item    workitem.ID     `json:"item,omitzero"`
	Target  string          `json:"target,omitempty"`
	Topic   bool            `json:"topic,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Child   workitem.CaseID `json:"child,omitzero"`
	Copied  bool            `json:"copied,omitempty"`
	Due     time.Time       `json:"due,omitzero"`
	Created time.Time       `json:"created"`
	Ended   time.Time       `json:"ended,omitzero"`
	Input   json.RawMessage `json:"input,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Limits  []workitem.Take `json:"limits,omitempty"` // what it waits for

	Failure *workitem.Failure `json:"failure,omitempty"`
}

// OfStep returns the JSON form of a step, without the text of a token.
func OfStep(s *workitem.Step) Step {
	s = WithoutSecret(s)
	limits, due, result := s.Takes(), s.Due, s.Result
	if s.Limited() {
		due, result = time.Time{}, nil
	}
	return Step{
		ID: s.ID, Name: s.Name, Kind: string(s.Kind), State: s.State.String(), Case: s.Case, Job: s.Job, Item: s.Item,
		Target: s.Target, Topic: s.Topic, Attempt: s.Attempt, Child: s.Child, Copied: s.Copied, Due: due,
		Created: s.Created, Ended: s.Ended, Input: s.Input, Result: result, Limits: limits, Failure: s.Failure,
	}
}

// WithoutSecret returns a step without the text of its token, which would be sufficient to send the event.
func WithoutSecret(s *workitem.Step) *workitem.Step {
	if s.Kind != workitem.StepToken {
		return s
	}
	shown := *s
	shown.Result = nil
	return &shown
}

// Event is the JSON form of an event that was sent.
type Event struct {
	ID    workitem.MessageID `json:"id"`
	Name  string             `json:"name"`
	Topic bool               `json:"topic,omitempty"`
	Case  workitem.CaseID    `json:"case"`
	By    string             `json:"by,omitempty"`
	Sent  time.Time          `json:"sent"`
	Step  workitem.StepID    `json:"step,omitzero"` // the step that took it
	Taken time.Time          `json:"taken,omitzero"`
	Value json.RawMessage    `json:"value,omitempty"`
}

// OfEvent returns the JSON form of an event.
func OfEvent(m *state.Message) Event {
	return Event{ID: m.ID, Name: m.Name, Topic: m.Topic, Case: m.Case, By: m.By, Sent: m.Sent, Step: m.Step,
		Taken: m.Taken, Value: m.Value}
}

// Incident is the JSON form of an incident.
type Incident struct {
	ID      workitem.JobID    `json:"id"`
	Kind    string            `json:"kind"`
	Case    workitem.CaseID   `json:"case,omitzero"` // zero of the kind "definition"
	Root    workitem.CaseID   `json:"root,omitzero"`
	Task    string            `json:"task,omitempty"`
	Item    workitem.ID       `json:"item,omitzero"`
	Child   workitem.CaseID   `json:"child,omitzero"`
	Work    string            `json:"work,omitempty"` // the kind of the job that has failed
	Name    string            `json:"name,omitempty"` // of that timer, function or handler
	Failure *workitem.Failure `json:"failure,omitempty"`
	Since   time.Time         `json:"since"`

	// The definition that no open engine has, of the kind "definition".
	Workflow    string `json:"workflow,omitempty"`
	Version     string `json:"version,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Cases       int64  `json:"cases,omitempty"` // that need it
}

// OfIncident returns the JSON form of an incident.
func OfIncident(i *store.Incident) Incident {
	o := Incident{ID: i.ID, Kind: i.Kind, Case: i.Case, Root: i.Root, Task: i.Task, Item: i.Item, Child: i.Child,
		Failure: i.Failure, Since: i.Since}
	if i.Job != nil {
		o.Work, o.Name = i.Job.Kind, i.Job.Name
	}
	if d := i.Definition; d != nil {
		o.Workflow, o.Version, o.Fingerprint, o.Cases = d.Workflow, d.Version, d.Fingerprint, d.Cases
	}
	return o
}
