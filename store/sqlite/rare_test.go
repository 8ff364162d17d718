package sqlite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// The items of a workflow that has few are found by way of its cases, and those of a common one in their own order.
func TestItemsOfARareWorkflow(t *testing.T) {
	s, err := Memory().Open(t.Context(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c := s.(*Store).w
	insert := "INSERT INTO counts (what, workflow, task, state, n) VALUES ('item', ?, ?, 'completed', ?)"
	require.NoError(t, c.run(insert, "common", "a", int64(rareItems)))
	require.NoError(t, c.run(insert, "common", "b", int64(1)))
	require.NoError(t, c.run(insert, "rare", "a", int64(rareItems)))
	queue := ""
	for _, q := range []struct {
		f    store.ItemFilter
		want bool
	}{
		{store.ItemFilter{Workflow: "common"}, false}, {store.ItemFilter{Workflow: "rare"}, true}, {store.ItemFilter{Workflow: "none"}, true},
		{store.ItemFilter{}, false}, {store.ItemFilter{Workflow: "rare", Case: workitem.CaseID{1}}, false},
		{store.ItemFilter{Workflow: "rare", Queue: &queue}, false},
	} {
		got, err := rareWorkflow(c, q.f)
		require.NoError(t, err)
		require.Equal(t, q.want, got, "%+v", q.f)
	}
	require.NoError(t, c.run("DELETE FROM counts"))
}
