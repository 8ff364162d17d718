package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/workitem"
)

// Letter is a dead letter: work that failed for good, with its history. It is the input of a case of the dead-letter workflow, see
// builder.DeadLetter, which is created in the transaction of the failure. Redrive restarts the original.
type Letter struct {
	Workflow string            `json:"workflow"`          // of the original
	Case     workitem.CaseID   `json:"case"`              // the original, or the case of the original work item
	Item     workitem.ID       `json:"item,omitzero"`     // the original; zero if that is the whole case
	Task     string            `json:"task,omitempty"`    // whose work failed; "" if it is not known
	Input    json.RawMessage   `json:"input,omitempty"`   // of the original
	Failure  *workitem.Failure `json:"failure,omitempty"` // the last one; nil if it has no words
	At       time.Time         `json:"at"`                // when it was given up

	// Attempts are those of the work that failed, the oldest first, the last [MaxLetterAttempts] of them.
	Attempts []LetterAttempt `json:"attempts,omitempty"`

	// What the original case was started with beside its input.
	BusinessKey string            `json:"businessKey,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	Options     json.RawMessage   `json:"options,omitempty"`
}

// LetterAttempt is one attempt of the failed work.
type LetterAttempt struct {
	Item    workitem.ID       `json:"item"`
	Attempt int               `json:"attempt"` // from 1
	Failure *workitem.Failure `json:"failure,omitempty"`
	Started time.Time         `json:"started,omitzero"`
	Ended   time.Time         `json:"ended,omitzero"`
}

// MaxLetterAttempts bounds the attempts that a letter lists.
const MaxLetterAttempts = 20

// The labels of the case of a dead letter.
const (
	LabelLetter     = "dead-letter"      // always "yes"
	LabelLetterOf   = "dead-letter-of"   // the workflow of the original
	LabelLetterCode = "dead-letter-code" // the code of the failure; not there if that is no label
)

// LetterLabels returns the labels that select the dead letters of a workflow with a failure code. An empty argument selects
// all.
func LetterLabels(workflow, code string) map[string]string {
	all := map[string]string{LabelLetter: "yes", LabelLetterOf: workflow, LabelLetterCode: code}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" || len(value) > MaxKey })
	return all
}

// LetterOf returns the letter of a case. The error wraps ErrNotFound if the case is not a dead letter.
func LetterOf(c activities.CaseInfo) (Letter, error) {
	var l Letter
	if c.Labels[LabelLetter] == "" {
		return l, fmt.Errorf("dead letter %w: case %s of %s is none; tasq cases --label %s=yes lists them", ErrNotFound, c.ID,
			c.Workflow, LabelLetter)
	}
	if err := json.Unmarshal(c.Input, &l); err != nil {
		return l, fmt.Errorf("the dead letter of case %s (%s) cannot be read: %w", c.ID, c.Workflow, err)
	}
	return l, nil
}

// CodeRedriven is the code with which the case of a dead letter is canceled when the letter is redriven.
const CodeRedriven = "redriven"

// Redrive restarts the original of a dead letter: a work item is retried (see Retry), a run of one task is restarted (see Restart),
// and a case of several tasks is resumed where it failed (see Resume). If the original was removed, a new case is started with the
// data of the letter. The case of the letter is canceled if it has not ended, with the code [CodeRedriven]. The result has the case and
// the work item that continue. A second redrive of the letter is refused with an error that wraps [ErrInactive]. If the original fails
// again, it has a letter of its own.
func Redrive(letter workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindRedrive, Case: letter}, opts...)
}
