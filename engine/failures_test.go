package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What failed for good is grouped by its cause; what a later attempt has replaced is left out.
func TestFailuresAreGroupedByTheirCause(t *testing.T) {
	ctx := t.Context()
	w, _ := parcels(t)
	e := enginetest.Open(t, sqlite.File(filepath.Join(t.TempDir(), "db")), engine.Config{}, w)
	var last, retried workitem.ID
	for _, code := range []string{"lost", "broken", "lost", "late"} {
		id, err := w.Start(ctx, e, parcel{})
		require.NoError(t, err)
		last = packItem(t, e, id)
		require.NoError(t, enginetest.Do(ctx, e, workflow.Act(last, workitem.Start, nil)))
		require.NoError(t, enginetest.Do(ctx, e, workflow.Fail(last, &workitem.Failure{Code: code})))
		if code == "late" {
			retried = last
		}
	}
	require.NoError(t, enginetest.Do(ctx, e, workflow.Retry(retried, nil)))
	codes := func(f store.FailureFilter) (got []string, all bool) {
		t.Helper()
		groups, all, err := store.Failures(ctx, e, f)
		require.NoError(t, err)
		for _, g := range groups {
			require.Equal(t, "parcel", g.Workflow)
			require.Equal(t, "pack", g.Task)
			require.False(t, g.Last.Before(g.First))
			for range g.N {
				got = append(got, g.Code)
			}
		}
		return got, all
	}
	got, all := codes(store.FailureFilter{})
	require.Equal(t, []string{"lost", "lost", "broken"}, got)
	require.True(t, all)
	got, all = codes(store.FailureFilter{Code: "lost", Workflow: "parcel", Max: 1})
	require.Equal(t, []string{"lost"}, got, "the newest one alone was looked at")
	require.False(t, all)
	groups, _, err := store.Failures(ctx, e, store.FailureFilter{})
	require.NoError(t, err)
	merged := store.MergeFailures(groups, func(g store.FailureGroup) store.FailureGroup { return store.FailureGroup{Task: g.Task} })
	require.Len(t, merged, 1)
	require.Equal(t, 3, merged[0].N)

	queues, err := store.Backlog(ctx, e)
	require.NoError(t, err)
	require.Len(t, queues, 1, "the item that is tried again")
	require.Equal(t, 1, queues[0].Items)
	require.Zero(t, queues[0].Started)
}
