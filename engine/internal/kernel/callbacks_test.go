package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/workflow"
)

// caller is a host that only calls.
type caller struct {
	Host
	control Control
	abandon bool
}

func (h *caller) Control() *Control { return &h.control }
func (h *caller) Call(ctx context.Context, f func(context.Context) error) error {
	if h.abandon {
		return ErrAbandoned
	}
	return f(ctx)
}

type within struct{}

// newCallbacks returns the callbacks of a command on a tree with one case.
func newCallbacks(t *testing.T) (*callbacks, *caller) {
	t.Helper()
	r, _ := openRecord(t)
	h := new(caller)
	b := &callbacks{record: r}
	b.prepare(context.Background(), h)
	return b, h
}

// The user's code has control while it runs, and what it calls runs within its context.
func TestCallbacksHaveControl(t *testing.T) {
	b, h := newCallbacks(t)
	c := b.tree.Case([16]byte{1})
	require.False(t, b.lent)
	b.ctx = context.WithValue(b.ctx, within{}, "command")
	err := b.call(c, 0, "onEnabled", func(ctx context.Context) error {
		require.Equal(t, ctx, b.ctx)
		require.NoError(t, h.control.Take(), "the user's code had control")
		h.control.Give()
		return errors.New("broken")
	})
	require.EqualError(t, err, "onEnabled of w/a: broken")
	require.ErrorIs(t, h.control.Take(), ErrAbandoned, "the engine has it again")
	require.Equal(t, "command", b.ctx.Value(within{}))
	require.True(t, b.lent)
	require.EqualError(t, located(c, -1, "output", errors.New("broken")), "output of case of w: broken")
}

// A callback that is left behind can do nothing from then on.
func TestCallbacksAreRevoked(t *testing.T) {
	b, h := newCallbacks(t)
	h.abandon = true
	require.ErrorIs(t, b.call(b.tree.Case([16]byte{1}), 0, "onEnabled", nil), ErrAbandoned)
	require.True(t, h.control.Ended())
	_, err := b.identity(b.tree.Case([16]byte{1}), &workflow.Definition{Identity: func(json.RawMessage) (workflow.Identity, error) {
		return workflow.Identity{}, nil
	}})
	require.ErrorIs(t, err, ErrAbandoned)
}

// A hook that is not set is no step.
func TestCallbacksThatAreNotSet(t *testing.T) {
	b, _ := newCallbacks(t)
	require.Nil(t, b.taskHook([16]byte{1}, 0, 1, "onEnabled", nil))
	require.Nil(t, b.caseHook([16]byte{1}, "onStarted", nil))
	require.Nil(t, b.changeHook([16]byte{1}, 0, 1, new(workflow.Task), false, nil))
	require.NotNil(t, b.changeHook([16]byte{1}, 0, 1, new(workflow.Task), true, nil), "a repair gave the item a policy")
	called := false
	hook := b.caseHook([16]byte{1}, "onStarted", func(_ context.Context, c *activities.Case) error {
		called = true
		return nil
	})
	require.False(t, called, "it is called by its step")
	require.NoError(t, hook())
	require.True(t, called)
}
