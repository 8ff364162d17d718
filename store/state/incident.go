package state

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/workitem"
)

// Subject is what an incident is about beside its owner: the input of its job. The zero value is an incident that its owner says all of.
type Subject struct {
	Case workitem.CaseID `json:"case,omitzero"` // the child case that failed
	Job  *GivenUp        `json:"job,omitempty"` // the job that was given up
}

// GivenUp is a job that was given up, with what another one needs to do the same.
type GivenUp struct {
	ID      workitem.JobID  `json:"id"`
	Kind    string          `json:"kind"`
	Name    string          `json:"name,omitempty"`
	Queue   string          `json:"queue,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Attempt int             `json:"attempt,omitempty"` // how often it was tried
}

// Again reports whether the job can be opened once more by itself. The run of a work item cannot: the item is tried again, as a fresh one.
func (g *GivenUp) Again() bool { return g != nil && g.Kind != JobRun }

// SubjectOf is what an incident is about. The error wraps [ErrCorrupt].
func SubjectOf(j *Job) (s Subject, err error) {
	if len(j.Input) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(j.Input, &s); err != nil {
		return Subject{}, fmt.Errorf("%w: the input of incident %s: %w", ErrCorrupt, j.ID, err)
	}
	return s, nil
}

// Encode is the input of an incident about the subject.
func (s Subject) Encode() (json.RawMessage, error) { return json.Marshal(s) }
