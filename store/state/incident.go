package state

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/workitem"
)

// Subject is the subject of an incident besides its owner. It is the input of its job. The zero value means that the
// owner is the whole subject.
type Subject struct {
	Case workitem.CaseID `json:"case,omitzero"` // the child case that failed
	Job  *GivenUp        `json:"job,omitempty"` // the job that was given up
}

// GivenUp describes a job that was given up, with what is needed to repeat it.
type GivenUp struct {
	ID      workitem.JobID  `json:"id"`
	Kind    string          `json:"kind"`
	Name    string          `json:"name,omitempty"`
	Queue   string          `json:"queue,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Attempt int             `json:"attempt,omitempty"` // how often it was tried
}

// Again reports whether the job can be repeated by itself. The run of a work item cannot: the item is retried instead,
// as a new one.
func (g *GivenUp) Again() bool { return g != nil && g.Kind != JobRun }

// SubjectOf returns the subject of an incident. The error wraps [ErrCorrupt].
func SubjectOf(j *Job) (s Subject, err error) {
	if len(j.Input) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(j.Input, &s); err != nil {
		return Subject{}, fmt.Errorf("%w: the input of incident %s: %w", ErrCorrupt, j.ID, err)
	}
	return s, nil
}

// Encode returns the input of an incident about the subject.
func (s Subject) Encode() (json.RawMessage, error) { return json.Marshal(s) }
