package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Three ways to reach a function that waits:
//
//	            addressed to        kept if none waits        reaches
//	event       a case              yes, in its mailbox       the step that has waited longest
//	topic       a name              no                        every step that waits now, in all cases
//	token       its text            as its event is           the case whose job made it, once
//
// The mailbox of a case is in the order of sending, and its waits are in the order of their beginning, so the n-th
// event of a name goes to the n-th wait, whichever comes first.

// Messages sends events and values of topics to the functions that wait for them, and makes and redeems tokens.
type Messages struct {
	*record
	jobs   *jobs
	tokens Tokens
}

// openToken creates a token. As a step it waits until the token is used, but for the job that made it, it is done. So
// it is the only kind of waiting step that does not keep a job suspended, see wakes.
func (ms *Messages) openToken(s *workitem.Step) (*workitem.Step, error) {
	text, err := ms.tokens.NewToken(ms.tree.Root)
	if err != nil {
		return nil, err
	}
	s.State = workitem.StepWaiting
	s.Result, _ = json.Marshal(text) // a string always has a JSON form
	return s, ms.emit(&state.StepOpened{Step: s})
}

// openWait makes a step wait for an event, or take the oldest one that was sent before. An event is kept until a step
// takes it, so it does not matter which comes first. The value of a topic is not kept: only steps that already wait get
// it.
func (ms *Messages) openWait(id workitem.CaseID, s *workitem.Step) (*workitem.Step, error) {
	c := ms.tree.Case(id)
	var mail *state.Message
	for sent := range c.Mail.All() {
		if sent.Name == s.Target && !s.Topic {
			mail = sent
			break
		}
	}
	if mail == nil {
		return s, ms.emit(&state.StepOpened{Step: s})
	}
	s.State, s.Result, s.Ended, s.Due = workitem.StepDone, orNull(mail.Value), ms.now, time.Time{}
	if err := ms.emit(&state.StepOpened{Step: s}); err != nil {
		return nil, err
	}
	return s, ms.emit(&state.MessageTaken{Case: id, Message: mail.ID, Step: s.ID, At: ms.now})
}

// Send sends an event to a case: to the step that has waited for it longest or, if none waits, to the first that will.
func (ms *Messages) Send(id workitem.CaseID, message *state.Message) error {
	c := ms.tree.Case(id)
	if c == nil {
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	if c.State.Final() {
		return fmt.Errorf("event %q cannot be sent: case %s %w: it is %s", message.Name, id, activities.ErrInactive, c.State)
	}
	mail := *message
	mail.ID, mail.Case, mail.Sent = ms.ids.NewMessageID(ms.now), id, ms.now
	if err := ms.emit(&state.MessageSent{Message: &mail}); err != nil {
		return err
	}
	for s := range ms.tree.Case(id).Steps.All() {
		if s.Kind == workitem.StepEvent && s.Target == mail.Name && s.Topic == mail.Topic {
			return ms.deliver(s, &mail)
		}
	}
	return nil
}

// deliver ends the wait of a step. Sending and taking are separate changes even if they happen at once, so that an
// audit always lists the event with its sender.
func (ms *Messages) deliver(s *workitem.Step, mail *state.Message) error {
	err := ms.emit(&state.MessageTaken{Case: s.Case, Message: mail.ID, Step: s.ID, At: ms.now})
	if err != nil {
		return err
	}
	err = ms.jobs.moveStep(s, func(e *state.StepMoved) {
		e.To, e.Result = workitem.StepDone, orNull(mail.Value)
	})
	if err != nil {
		return err
	}
	return ms.jobs.wake(s.Case, s.Job)
}

// orNull returns the result of a step that succeeded without a value. A step without a result has not ended.
func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// Publish gives the value of a topic to each step in the tree that waits for it, and returns their number. It does not
// keep the value. It collects the waits before it ends the first one: a child case that continues, and waits for the
// topic again, gets the next value and not this one.
func (ms *Messages) Publish(topic string, message *state.Message) (int, error) {
	var waits []*workitem.Step
	ms.tree.Each(func(c *state.Case) {
		for s := range c.Steps.All() {
			if s.Kind == workitem.StepEvent && s.Topic && s.Target == topic {
				waits = append(waits, s)
			}
		}
	})
	for _, s := range waits {
		mail := *message
		// Each wait gets a message of its own: the history of its case shows the value and who sent it.
		mail.ID, mail.Case, mail.Name, mail.Topic, mail.Sent = ms.ids.NewMessageID(ms.now), s.Case, topic, true, ms.now
		if err := ms.emit(&state.MessageSent{Message: &mail}); err != nil {
			return 0, err
		}
		if err := ms.deliver(s, &mail); err != nil {
			return 0, err
		}
	}
	return len(waits), nil
}

// Redeem sends the event of a token, once. The error wraps [ErrNotFound] if the token does not exist, was used, or its
// job has ended.
func (ms *Messages) Redeem(token string, message *state.Message) error {
	// The steps are compared by their results, which have the text as JSON.
	text, err := json.Marshal(token)
	if err != nil {
		return err
	}
	var found *workitem.Step
	ms.tree.Each(func(c *state.Case) {
		for s := range c.Steps.All() {
			if s.Kind == workitem.StepToken && string(s.Result) == string(text) {
				found = s
			}
		}
	})
	if found == nil {
		return fmt.Errorf("token: %w: it was never made, was used before, or the job that made it has ended", ErrNotFound)
	}
	// The token is used up with this change, and is not found again, not even by a second event in the same
	// transaction.
	if err := ms.jobs.moveStep(found, func(e *state.StepMoved) { e.To = workitem.StepDone }); err != nil {
		return err
	}
	mail := *message
	mail.Name = found.Target
	return ms.Send(found.Case, &mail)
}
