package workitem

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

type stepKey struct{}

// StepID names a step.
type StepID = Key[stepKey]

// NewStepID makes the id of a step recorded now.
func (g *Generator) NewStepID(now time.Time) StepID { return g.next(now) }

type messageKey struct{}

// MessageID names an event that was sent to a case.
type MessageID = Key[messageKey]

// NewMessageID makes the id of an event sent now.
func (g *Generator) NewMessageID(now time.Time) MessageID { return g.next(now) }

// StepKind is the kind of a step. The set is closed.
type StepKind string

// The kinds of steps. The values are stored.
const (
	StepDo     StepKind = "do"     // a function was called, outside the transaction
	StepTx     StepKind = "tx"     // a function was called in the transaction that recorded the step
	StepSleep  StepKind = "sleep"  // a time was waited for
	StepEvent  StepKind = "event"  // an event was waited for
	StepCase   StepKind = "case"   // a child case was run
	StepToken  StepKind = "token"  // a token was made, with which one event can be sent from outside
	StepChoice StepKind = "choice" // one of several branches was chosen
	StepValue  StepKind = "value"  // a value that a replay must repeat was recorded: a time, a version
)

// StepState is the state of a step.
type StepState uint8

// The states of a step. A final step never changes again.
const (
	StepNone     StepState = iota
	StepWaiting            // for its event, its child case, its time, or its next attempt
	StepDone               // it has a result
	StepFailed             // it has a failure: an error, a timeout, a child case that failed
	StepCanceled           // its job ended first, or its child case was canceled
)

var stepStateNames = [...]string{"none", "waiting", "done", "failed", "canceled"}

// String returns the word for the state.
func (s StepState) String() string {
	if int(s) < len(stepStateNames) {
		return stepStateNames[s]
	}
	return fmt.Sprintf("state(%d)", int(s))
}

// Final reports whether the step has ended.
func (s StepState) Final() bool { return s >= StepDone }

// ParseStepState reads the word for a step's state.
func ParseStepState(w string) (StepState, error) {
	if i := slices.Index(stepStateNames[:], w); i > 0 {
		return StepState(i), nil
	}
	return StepNone, fmt.Errorf("%q is not a state of a step; use one of %s", w, strings.Join(stepStateNames[1:], ", "))
}

// Step is the record of one named part of a job, from which a job that runs again resumes instead of repeating the
// work. Its name is unique within the job.
type Step struct {
	ID     StepID
	Job    JobID
	Item   ID // the item whose run the job is; zero for any other job
	Case   CaseID
	Name   string
	Kind   StepKind
	Target string          // the event, topic, or workflow; "" for the other kinds
	Topic  bool            // the event is a broadcast of a topic, not one that is sent to the case
	Input  json.RawMessage // the value of Input, to detect changes, or the input of a child case; nil if none
	State  StepState

	Attempt int             // how often the function was called; 0 for the kinds that call none
	Run     int             // the attempt of the job that recorded it
	Due     time.Time       // the end of a sleep, the deadline of a wait, the next attempt; zero if there is none
	Child   CaseID          // of a StepCase, once it was recorded
	Result  json.RawMessage // once done; a token's text; what a StepDo takes of limits while it waits for that, see Takes
	Failure *Failure        // once failed; of the latest attempt while the next is waited for

	Copied  bool // taken over from the job of the item's predecessor, or of the run that this one restarts
	Created time.Time
	Ended   time.Time
}

// Owner returns the key by which the steps of a job are stored: the item whose run the job is, or otherwise
// the job itself.
func (s *Step) Owner() [16]byte {
	if s.Item.IsZero() {
		return s.Job
	}
	return s.Item
}
