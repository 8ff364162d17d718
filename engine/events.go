package engine

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func (tx *Tx) send(c *workflow.Command, o operation) (workflow.Result, error) {
	u, err := tx.openAny(c.Case)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.on(u, o, workflow.Result{Case: c.Case}, func(m *kernel.Machine) error { return m.Send(c.Case, message(c)) })
}

// message is what a command sends.
func message(c *workflow.Command) *state.Message {
	return &state.Message{Name: c.Event, Value: c.Payload, By: c.Actor}
}

func (tx *Tx) sendToken(c *workflow.Command, o operation) (workflow.Result, error) {
	root, err := TokenCase(c.Token)
	if err != nil {
		return workflow.Result{}, err
	}
	u, err := tx.openAny(root)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.on(u, o, workflow.Result{Case: root}, func(m *kernel.Machine) error { return m.Redeem(c.Token, message(c)) })
}

// broadcast wakes the steps that wait for a topic, and starts a case of each workflow that subscribes to it.
func (tx *Tx) broadcast(c *workflow.Command, o operation) (workflow.Result, error) {
	first, result := (*treeWrite)(nil), workflow.Result{}
	unkeyed := operation{command: o.command, actor: o.actor}
	for _, root := range tx.e.topics.Waiting(c.Event) {
		u, err := tx.open(root)
		if err != nil {
			return result, err
		}
		n := 0
		_, err = tx.on(u, unkeyed, workflow.Result{}, func(m *kernel.Machine) (err error) {
			n, err = m.Publish(c.Event, message(c))
			return err
		})
		if err != nil {
			return result, err
		}
		if first == nil && n > 0 {
			first = u
		}
		result.Count += n
	}
	for _, name := range slices.Sorted(maps.Keys(tx.e.byName)) {
		if !slices.Contains(tx.e.byName[name].Topics, c.Event) {
			continue
		}
		start := workflow.Start(name, c.Payload)
		started, err := tx.start(&start, operation{command: start.String(), actor: o.actor})
		if err != nil {
			return result, fmt.Errorf("broadcast %q: %w", c.Event, err)
		}
		if first == nil {
			if first, err = tx.open(started.Case); err != nil {
				return result, err
			}
		}
		result.Count++
	}
	return result, tx.remember(first, o, result)
}

// tokenSecret is how many random bytes a token holds beside the id of its root case.
const tokenSecret = 24

// newToken makes a text that nobody can guess, and by which the case is found without an index.
func newToken(random io.Reader, root workitem.CaseID) (string, error) {
	buf := make([]byte, len(root)+tokenSecret)
	copy(buf, root[:])
	if _, err := io.ReadFull(random, buf[len(root):]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(buf), nil
}

// TokenCase tells which root case a token is for, whether or not the token is good. The error wraps [ErrNotFound] if it
// cannot be one.
func TokenCase(token string) (workitem.CaseID, error) {
	buf, err := base64.RawURLEncoding.DecodeString(token)
	var root workitem.CaseID
	if err != nil || len(buf) != len(root)+tokenSecret {
		return root, fmt.Errorf("token: %w: it is not one that a step made", ErrNotFound)
	}
	copy(root[:], buf)
	return root, nil
}
