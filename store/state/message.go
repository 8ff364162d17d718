package state

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Message is an event that was sent to a case. It is kept until a step takes it; steps take the oldest first. A message
// that is never taken stays with the case.
type Message struct {
	ID    workitem.MessageID
	Case  workitem.CaseID
	Name  string          // of the event, or of the topic
	Topic bool            // it was sent to every step that waits for the topic
	Value json.RawMessage // nil is null
	By    string          // who sent it, as the caller named itself
	Sent  time.Time

	Step  workitem.StepID // the step that took it; zero before
	Taken time.Time
}
