package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Durations are of the items that completed, from their start, by task and by the hour of their end. What is looked at is bounded.
func TestRatesAreOfWhatEnded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w, _ := parcels(t)
	e := enginetest.New(t, w)
	begun := e.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	e.Advance(begun.Sub(e.Now()))
	end := func(after time.Duration, c func(workitem.ID) workflow.Command) {
		id, err := w.Start(ctx, e, parcel{})
		require.NoError(t, err)
		it := packItem(t, e, id)
		e.Advance(time.Second) // it waits, which is no part of the duration
		require.NoError(t, enginetest.Do(ctx, e, workflow.Act(it, workitem.Start, nil)))
		e.Advance(after)
		require.NoError(t, enginetest.Do(ctx, e, c(it)))
	}
	complete := func(id workitem.ID) workflow.Command { return workflow.Act(id, workitem.Complete, nil) }
	for i := range 20 {
		end(time.Duration(i+1)*time.Second, complete)
	}
	end(time.Second, func(id workitem.ID) workflow.Command { return workflow.Fail(id, &workitem.Failure{Code: "lost"}) })
	e.Advance(begun.Add(time.Hour).Sub(e.Now()))
	end(time.Minute, complete)
	_, err := w.Start(ctx, e, parcel{}) // it goes on
	require.NoError(t, err)

	pack := func(f store.RateFilter) (rates []store.Rate, all bool) {
		t.Helper()
		f.Task = "pack"
		rates, all, err := store.Rates(ctx, e, f)
		require.NoError(t, err)
		return rates, all
	}
	rates, all := pack(store.RateFilter{})
	require.True(t, all)
	require.Equal(t, []store.Rate{{Workflow: "parcel", Task: "pack", Done: 21, Failed: 1, P50: 11 * time.Second, P95: 20 * time.Second}}, rates)
	rates, _ = pack(store.RateFilter{Hourly: true, Workflow: "parcel"})
	require.Equal(t, []store.Rate{
		{Workflow: "parcel", Task: "pack", Hour: begun.Add(time.Hour), Done: 1, P50: time.Minute, P95: time.Minute},
		{Workflow: "parcel", Task: "pack", Hour: begun, Done: 20, Failed: 1, P50: 10 * time.Second, P95: 19 * time.Second},
	}, rates)
	rates, _ = pack(store.RateFilter{Since: begun.Add(time.Hour)})
	require.Equal(t, 1, rates[0].Done)
	rates, all = pack(store.RateFilter{Max: 2})
	require.False(t, all)
	require.Equal(t, 1, rates[0].Done, "of the two newest items one goes on")
	rates, all = pack(store.RateFilter{Workflow: "other"})
	require.Empty(t, rates)
	require.True(t, all)
}
