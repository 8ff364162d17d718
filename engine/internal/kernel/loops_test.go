package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// plainCase is a case of a net of one task, i -> a -> e.
func plainCase(t *testing.T) *state.Case {
	t.Helper()
	compiled, err := net.Compile(&net.Definition{Name: "w", Tasks: []net.Task{{Name: "a"}},
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "e", Role: net.End}},
		Flows:      []net.Flow{{From: "i", To: "a"}, {From: "a", To: "e"}}})
	require.NoError(t, err)
	return &state.Case{Workflow: "w", Net: compiled}
}

// One command enables a task so many times, whatever number the first of those activations has.
func TestActivationsAreBounded(t *testing.T) {
	c := plainCase(t)
	l := new(loops)
	require.NoError(t, l.count(c, 0, MaxActivations))
	require.Empty(t, l.enabled, "a case that has gone round less often needs no count")
	for i := range MaxActivations {
		require.NoError(t, l.count(c, 0, MaxActivations+1+i))
	}
	err := l.count(c, 0, 2*MaxActivations+1)
	require.ErrorIs(t, err, ErrRunaway)
	require.ErrorContains(t, err, "enabled task a of workflow w more than 10000 times")
	require.NoError(t, new(loops).count(c, 0, 2*MaxActivations+1), "another command counts anew")

	other := *c
	other.ID = workitem.CaseID{1}
	require.NoError(t, l.count(&other, 0, 2*MaxActivations+1), "another case counts for itself")
}
