package command

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// send sends an event to one case, also to one in which no step waits for it yet: it is kept until a step takes it, so
// the sender need not know how far the function is.
func (x *Executor) send(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := tx.OpenCase(c.Case)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.On(u, o, workflow.Result{Case: c.Case}, func(m *kernel.Machine) error {
		return errors.Join(m.NoteReason(c.Case, c.Reason), m.Messages().Send(c.Case, message(c)))
	})
}

// message returns the message that a command sends.
func message(c *workflow.Command) *state.Message {
	return &state.Message{Name: c.Event, Value: c.Payload, By: c.Actor}
}

// sendToken sends the event of a token, which works once. The token names the root case, and only the tree knows which
// of its steps made it.
func (x *Executor) sendToken(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	root, err := TokenCase(c.Token)
	if err != nil {
		return workflow.Result{}, err
	}
	u, err := tx.OpenCase(root)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.On(u, o, workflow.Result{Case: root}, func(m *kernel.Machine) error {
		return errors.Join(m.NoteReason(root, c.Reason), m.Messages().Redeem(c.Token, message(c)))
	})
}

// broadcast wakes the steps that wait for a topic, and starts a case of each workflow that subscribes to it:
//
//	case 1   a step waits for "paid"     takes the event       ┐
//	case 2   a step waits for "paid"     takes the event       ├ one transaction, an entry in the journal of each
//	         workflow audit, On("paid")  case 3 starts         ┘
//
// It reaches those that wait now: unlike an event that is sent to a case, it is not kept for later. All of them get it, or
// none. The key of the command is recorded once, in the journal of the first that got the event; if nothing did, a
// repetition is a new broadcast.
func (x *Executor) broadcast(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	first, result := (*commit.TreeWrite)(nil), workflow.Result{}
	waiting, err := x.waiting(tx, c.Event)
	if err != nil {
		return result, err
	}
	for _, root := range waiting {
		u, err := tx.Open(root)
		if err != nil {
			return result, err
		}
		n := 0
		_, err = tx.On(u, o.Unkeyed(), workflow.Result{}, func(m *kernel.Machine) (err error) {
			if n, err = m.Messages().Publish(c.Event, message(c)); err != nil || n == 0 {
				return err
			}
			return m.NoteReason(root, c.Reason)
		})
		if err != nil {
			return result, err
		}
		if first == nil && n > 0 {
			first = u
		}
		result.Count += n
	}
	for _, name := range x.o.Definitions.Names() {
		if !slices.Contains(x.o.Definitions.Named(name).Topics, c.Event) {
			continue
		}
		start := workflow.Start(name, c.Payload, workflow.Trace(c.Trace))
		start.Reason = c.Reason
		started, err := x.start(tx, &start, commit.Operation{Command: start.String(), Actor: o.Actor})
		if err != nil {
			return result, fmt.Errorf("broadcast %q: %w", c.Event, err)
		}
		if first == nil {
			if first, err = tx.Open(started.Case); err != nil {
				return result, err
			}
		}
		result.Count++
	}
	return result, tx.Remember(first, o, result)
}

// waiting returns the root cases that wait for a topic. The index in memory lacks the steps of other engines, so a
// shared store is queried.
func (x *Executor) waiting(tx *commit.Tx, topic string) ([]workitem.CaseID, error) {
	if shared := tx.Shared(); shared != nil {
		roots, err := shared.Waiting(tx.Context(), topic)
		return roots, fault.As(err)
	}
	return x.o.Topics.Waiting(topic), nil
}

// tokenSecret is the number of random bytes in a token, after the id of its root case.
const tokenSecret = 24

// NewToken returns a token that cannot be guessed. It begins with the id of the root case, so that the case is found
// without an index.
func NewToken(random io.Reader, root workitem.CaseID) (string, error) {
	buf := make([]byte, len(root)+tokenSecret)
	copy(buf, root[:])
	if _, err := io.ReadFull(random, buf[len(root):]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(buf), nil
}

// TokenCase returns the root case in a token. It does not check that the step exists or waits. The error wraps
// [store.ErrNotFound] if the text has not the form of a token.
func TokenCase(token string) (workitem.CaseID, error) {
	buf, err := base64.RawURLEncoding.DecodeString(token)
	var root workitem.CaseID
	if err != nil || len(buf) != len(root)+tokenSecret {
		return root, fmt.Errorf("token: %w: it is not one that a step made", store.ErrNotFound)
	}
	copy(root[:], buf)
	return root, nil
}
