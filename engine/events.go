package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Send sends an event to a case: to the step that has waited longest for one of that name (see step.Await), or, if none
// waits, to the first that will. Events of one name are taken in the order in which they were sent, each by one step.
// The value may be anything that has a JSON form, nil is null.
//
// The error wraps [ErrNotFound] if there is no such case, [ErrInactive] if it has ended.
func (e *Engine) Send(ctx context.Context, id workitem.CaseID, event string, value any, opts ...builder.CallOption) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error {
		return tx.Send(tx.ctx, id, event, value, opts...)
	}})
}

// Send is like [Engine.Send], as part of the transaction.
func (tx *Tx) Send(_ context.Context, id workitem.CaseID, event string, value any, opts ...builder.CallOption) error {
	return tx.command(func() error {
		mail, err := tx.message(event, value, opts)
		if err != nil {
			return fmt.Errorf("send event %q to case %s: %w", event, id, err)
		}
		return tx.once(id, fmt.Sprintf("event %s to %s", event, id), builder.CallWith(opts...),
			func(m *kernel.Machine) error { return m.Send(id, mail) })
	})
}

// message makes what is sent.
func (tx *Tx) message(event string, value any, opts []builder.CallOption) (*store.Message, error) {
	if event == "" || len(event) > maxEventName {
		return nil, fmt.Errorf("%w: an event has a name of 1 to %d bytes, and this one has %d", errEventName, maxEventName, len(event))
	}
	if err := isText("name", event); err != nil {
		return nil, err
	}
	raw, given := value.(json.RawMessage)
	var err error
	if !given {
		if raw, err = domain.Encode(value); errors.Is(err, domain.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
	}
	if err == nil {
		err = tx.e.fits("value", raw)
	}
	if err != nil {
		return nil, err
	}
	return &store.Message{Name: event, Value: raw, By: builder.CallWith(opts...).By}, nil
}

// maxEventName bounds the name of an event, in bytes, as step names are.
const maxEventName = 200

var errEventName = errors.New("bad name")

// Broadcast tells everybody of something: each step that waits for the topic at this moment goes on with the value (see
// step.Topic), and each workflow that subscribes to it (see builder.On) starts a case with the value as its input. All
// of it happens together, once each. It returns how many there were. Nothing is kept for those who come later; that is
// what [Engine.Send] is for.
func (e *Engine) Broadcast(ctx context.Context, topic string, value any, opts ...builder.CallOption) (int, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (int, error) { return tx.Broadcast(tx.ctx, topic, value, opts...) })
}

// Broadcast is like [Engine.Broadcast], as part of the transaction.
func (tx *Tx) Broadcast(_ context.Context, topic string, value any, opts ...builder.CallOption) (reached int, err error) {
	err = tx.command(func() error {
		mail, err := tx.message(topic, value, opts)
		if err != nil {
			return fmt.Errorf("broadcast %q: %w", topic, err)
		}
		call := builder.CallWith(opts...)
		command := "broadcast " + topic
		if answer, done, err := tx.answered(call.Key, command); done || err != nil {
			if err == nil {
				err = json.Unmarshal(answer, &reached)
			}
			return err
		}
		first := (*unit)(nil)
		if reached, first, err = tx.publish(topic, mail, command, call); err != nil {
			return err
		}
		return tx.remember(first, command, call, reached)
	})
	return reached, err
}

// publish wakes those who wait, and starts those who subscribe. It returns how many there were, and the tree of the
// first.
func (tx *Tx) publish(
	topic string, mail *store.Message, command string, call builder.Call,
) (reached int, first *unit, err error) {
	by := builder.Call{By: call.By}
	for _, root := range tx.e.topics.roots(topic) {
		u, err := tx.open(root)
		if err != nil {
			return 0, nil, err
		}
		tx.mark(u, command, by)
		n := 0
		err = tx.do(u, by, func(m *kernel.Machine) (err error) {
			n, err = m.Publish(topic, mail)
			return err
		})
		if err != nil {
			return 0, nil, err
		}
		if first == nil && n > 0 {
			first = u
		}
		reached += n
	}
	for _, name := range slices.Sorted(maps.Keys(tx.e.byName)) {
		d := tx.e.byName[name]
		if !slices.Contains(d.Topics, topic) {
			continue
		}
		id, err := tx.startCase(d, mail.Value, by)
		if err != nil {
			return 0, nil, fmt.Errorf("broadcast %q: %w", topic, err)
		}
		for _, u := range tx.units {
			if first == nil && u.tree.Root == id {
				first = u
			}
		}
		reached++
	}
	return reached, first, nil
}

// remember keeps the idempotency key of a broadcast, with its answer, by the first case that it reached, in an entry of
// its own. One that reached nobody did nothing, so there is nothing to remember.
func (tx *Tx) remember(first *unit, command string, call builder.Call, reached int) (err error) {
	if call.Key == "" || first == nil {
		return nil
	}
	tx.mark(first, command, call)
	first.entry.Answer, err = json.Marshal(reached)
	return err
}

// SendToken sends the event that a token stands for (see step.Token) to the case that made it, and uses the token up.
// The error wraps [ErrNotFound] if there is no such token, it was used before, or what made it has ended.
func (e *Engine) SendToken(ctx context.Context, token string, value any, opts ...builder.CallOption) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error {
		return tx.SendToken(tx.ctx, token, value, opts...)
	}})
}

// SendToken is like [Engine.SendToken], as part of the transaction.
func (tx *Tx) SendToken(_ context.Context, token string, value any, opts ...builder.CallOption) error {
	return tx.command(func() error {
		root, err := TokenCase(token)
		if err != nil {
			return err
		}
		mail, err := tx.message("token", value, opts)
		if err != nil {
			return fmt.Errorf("send by a token: %w", err)
		}
		// The journal must not give the token away; its hash tells it from another one of the same case.
		command := fmt.Sprintf("event by token %.8x to %s", sha256.Sum256([]byte(token)), root)
		return tx.once(root, command, builder.CallWith(opts...),
			func(m *kernel.Machine) error { return m.Redeem(token, mail) })
	})
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
