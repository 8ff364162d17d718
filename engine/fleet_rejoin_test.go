package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// An engine with nothing to do is declared dead, and its connection for commits is ended. The heartbeat is the first to notice, so the engine
// takes jobs under its new number before any commit has reported that the old ones are lost: it must not drop the new ones with these.
func TestAnIdleEngineThatRejoinsRunsTheJobsThatItTakes(t *testing.T) {
	f := newFleet(t)
	double, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	f.open(engine.Config{Workers: 4}, double)
	starts := f.open(engine.Config{Workers: -1}, double)
	f.sql("UPDATE tasq.processes SET state = 'dead' WHERE id = (SELECT min(id) FROM tasq.processes)")
	f.sql("SELECT count(pg_terminate_backend(pid)) FROM tasq.processes WHERE id = (SELECT min(id) FROM tasq.processes)")
	var ids []workitem.CaseID
	for range 4 {
		r, err := starts.Do(t.Context(), workflow.Start("double", []byte("21")))
		require.NoError(t, err)
		ids = append(ids, r.Case)
	}
	for _, id := range ids {
		require.Equal(t, "completed: 42", ends(t, starts, id))
	}
}
