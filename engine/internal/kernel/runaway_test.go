package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
)

// What makes more and more without enabling a task again, as a callback that answers each item with another one, is
// stopped by the number of its steps, to which child cases add room.
func TestStepsAreBounded(t *testing.T) {
	const room = 700
	m := &Machine{extraSteps: room}
	var more step
	more = func() error {
		m.push(more)
		return nil
	}
	m.push(more)
	err := m.run(0)
	require.ErrorIs(t, err, ErrRunaway)
	require.ErrorContains(t, err, "more than 2000700 steps")
	require.Equal(t, MaxSteps+room+1, m.steps)
}

// One command enables a task so many times, whatever number the first of those activations has.
func TestActivationsAreBounded(t *testing.T) {
	compiled, err := net.Compile(&net.Definition{Name: "w", Tasks: []net.Task{{Name: "a"}},
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "e", Role: net.End}},
		Flows:      []net.Flow{{From: "i", To: "a"}, {From: "a", To: "e"}}})
	require.NoError(t, err)
	c := &state.Case{Workflow: "w", Net: compiled}
	m := new(Machine)
	require.NoError(t, m.mayEnable(c, 0, MaxActivations))
	require.Empty(t, m.enabled, "a case that has gone round less often needs no count")
	for i := range MaxActivations {
		require.NoError(t, m.mayEnable(c, 0, MaxActivations+1+i))
	}
	err = m.mayEnable(c, 0, 2*MaxActivations+1)
	require.ErrorIs(t, err, ErrRunaway)
	require.ErrorContains(t, err, "enabled task a of workflow w more than 10000 times")
	require.NoError(t, new(Machine).mayEnable(c, 0, 2*MaxActivations+1), "another command counts anew")
}
