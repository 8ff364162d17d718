package store

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Message is an event that somebody sent to a case. It is kept until a step takes it, the first sent first; one that
// nobody takes stays with the case, as part of what happened.
type Message struct {
	ID    workitem.MessageID
	Case  workitem.CaseID
	Name  string          // of the event, or of the topic
	Topic bool            // it was sent to everybody who waits for the topic
	Value json.RawMessage // nil is null
	By    string          // who sent it, as the caller named itself
	Sent  time.Time

	Step  workitem.StepID // that took it; zero before
	Taken time.Time
}

// StepFilter selects steps; a zero field selects all.
type StepFilter struct {
	Page
	Case   workitem.CaseID
	Root   workitem.CaseID
	Job    workitem.JobID
	Item   workitem.ID
	Kind   workitem.StepKind
	Target string
	Topic  bool // only waits for a topic
	States []workitem.StepState
}

// MessageFilter selects the events that were sent to cases; a zero field selects all.
type MessageFilter struct {
	Page
	Case   workitem.CaseID
	Root   workitem.CaseID
	Name   string
	Unread bool // only those that nobody has taken
}

// Steps are the waiting steps of a case's jobs.
type Steps = List[*workitem.Step]

// Mail is what was sent to a case and nobody has taken.
type Mail = List[*Message]

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

// Step finds a waiting step; nil if it is not there.
func (c *Case) Step(id workitem.StepID) *workitem.Step {
	return c.Steps.get(sortKey{id})
}
