package kernel_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A route that reads an output which was never given fails the case when its task has completed: the tokens are nowhere, so
// nothing could continue.
func TestAFailureBetweenTwoActivationsIsNotResumed(t *testing.T) {
	d := define(t, "w", "i>a a>p a>q p>b q>b b>e", net.Task{Name: "a", Split: net.Xor}, net.Task{Name: "b", Join: net.Xor})
	missing := true
	with(d, "a", workflow.Task{Auto: true, Route: func(context.Context, *activities.Activation) ([]string, error) {
		if missing {
			return nil, activities.ErrNoOutput
		}
		return []string{"p"}, nil
	}})
	w := newWorld(t, d)
	_, err := w.command(func(m *kernel.Machine) error {
		return m.Start(&state.Case{ID: w.host.NewCaseID(w.now)}, d, nil, w.now, nil)
	})
	require.NoError(t, err)
	root := w.tree.Case(w.tree.Root)
	require.Equal(t, state.CaseFailed, root.State)
	missing = false
	_, err = w.command(func(m *kernel.Machine) error {
		_, err := m.Repairs().Resume(root.ID, nil, nil)
		return err
	})
	require.ErrorIs(t, err, workflow.ErrDeadEnd)
	require.Equal(t, state.CaseFailed, w.tree.Case(root.ID).State)
}

// An activation that failed because its input was missing had no items; those of its definition are made when it continues.
func TestAnActivationThatFailedWithoutItemsIsFilled(t *testing.T) {
	d := define(t, "w", "i>a a>e", tasks("a")...)
	missing := true
	with(d, "a", workflow.Task{Inputs: func(context.Context, *activities.Activation) ([]json.RawMessage, error) {
		if missing {
			return nil, activities.ErrNoOutput
		}
		return []json.RawMessage{nil, nil}, nil
	}})
	w := newWorld(t, d)
	_, err := w.command(func(m *kernel.Machine) error {
		return m.Start(&state.Case{ID: w.host.NewCaseID(w.now)}, d, nil, w.now, nil)
	})
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, w.tree.Case(w.tree.Root).State)
	missing = false
	_, err = w.command(func(m *kernel.Machine) error {
		_, err := m.Repairs().Resume(w.tree.Root, nil, nil)
		return err
	})
	require.NoError(t, err)
	root := w.tree.Case(w.tree.Root)
	require.Equal(t, state.TaskStarted, root.Tasks[0].State)
	require.Equal(t, 2, root.Items.Len())
}
