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

// Cases are counted by workflow, from their creation to their end. One that failed and continues has not ended.
func TestRatesOfCases(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w, _ := parcels(t)
	e := enginetest.New(t, w)
	begun := e.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	e.Advance(begun.Sub(e.Now()))
	for i := range 20 {
		id, err := w.Start(ctx, e, parcel{})
		require.NoError(t, err)
		e.Advance(time.Duration(i+1) * time.Second)
		it := packItem(t, e, id)
		require.NoError(t, enginetest.Do(ctx, e, workflow.Act(it, workitem.Start, nil)))
		require.NoError(t, enginetest.Do(ctx, e, workflow.Act(it, workitem.Complete, nil)))
	}
	lost, err := w.Start(ctx, e, parcel{})
	require.NoError(t, err)
	it := packItem(t, e, lost)
	require.NoError(t, enginetest.Do(ctx, e, workflow.Act(it, workitem.Start, nil)))
	require.NoError(t, enginetest.Do(ctx, e, workflow.Fail(it, &workitem.Failure{Code: "lost"})))

	rate := func(f store.RateFilter) store.Rate {
		t.Helper()
		f.Cases = true
		rates, err := store.Rates(ctx, e, f)
		require.NoError(t, err)
		require.Len(t, rates, 1)
		return rates[0]
	}
	got := rate(store.RateFilter{})
	require.InEpsilon(t, 10*time.Second, got.P50, 0.0626)
	require.InEpsilon(t, 19*time.Second, got.P95, 0.0626)
	require.Equal(t, store.Rate{Workflow: "parcel", Done: 20, Failed: 1, P50: got.P50, P95: got.P95}, got)
	require.Equal(t, begun, rate(store.RateFilter{Hourly: true}).Hour)

	require.NoError(t, enginetest.Do(ctx, e, workflow.Resume(lost, nil)))
	require.Zero(t, rate(store.RateFilter{}).Failed, "it goes on")
}

// Durations are of the items that completed, from their start, by task and by the hour of their end. Waits are of those that were started, from when
// they were due.
func TestRatesAreOfWhatEnded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w, _ := parcels(t)
	e := enginetest.New(t, w)
	begun := e.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	e.Advance(begun.Sub(e.Now()))
	end := func(wait, after time.Duration, c func(workitem.ID) workflow.Command) {
		id, err := w.Start(ctx, e, parcel{})
		require.NoError(t, err)
		it := packItem(t, e, id)
		e.Advance(wait) // which is no part of the duration
		require.NoError(t, enginetest.Do(ctx, e, workflow.Act(it, workitem.Start, nil)))
		e.Advance(after)
		require.NoError(t, enginetest.Do(ctx, e, c(it)))
	}
	complete := func(id workitem.ID) workflow.Command { return workflow.Act(id, workitem.Complete, nil) }
	for i := range 20 {
		end(time.Duration(20-i)*time.Second/10, time.Duration(i+1)*time.Second, complete)
	}
	end(6*time.Second, time.Second, func(id workitem.ID) workflow.Command { return workflow.Fail(id, &workitem.Failure{Code: "lost"}) })
	e.Advance(begun.Add(time.Hour).Sub(e.Now()))
	end(time.Second, time.Minute, complete)
	_, err := w.Start(ctx, e, parcel{}) // it continues
	require.NoError(t, err)

	pack := func(f store.RateFilter) []store.Rate {
		t.Helper()
		f.Task = "pack"
		rates, err := store.Rates(ctx, e, f)
		require.NoError(t, err)
		return rates
	}
	near := func(want, got []store.Rate) { // durations are at most 6 % off
		t.Helper()
		require.Len(t, got, len(want))
		for i := range want {
			require.InEpsilon(t, want[i].P50, got[i].P50, 0.0626)
			require.InEpsilon(t, want[i].P95, got[i].P95, 0.0626)
			require.InEpsilon(t, want[i].WaitedP50, got[i].WaitedP50, 0.0626)
			require.InEpsilon(t, want[i].WaitedP95, got[i].WaitedP95, 0.0626)
			want[i].P50, want[i].P95, want[i].WaitedP50, want[i].WaitedP95 = got[i].P50, got[i].P95, got[i].WaitedP50, got[i].WaitedP95
		}
		require.Equal(t, want, got)
	}
	near([]store.Rate{{Workflow: "parcel", Task: "pack", Done: 21, Failed: 1, P50: 11 * time.Second, P95: 20 * time.Second,
		Started: 22, WaitedP50: time.Second, WaitedP95: 2 * time.Second}}, pack(store.RateFilter{}))
	near([]store.Rate{
		{Workflow: "parcel", Task: "pack", Hour: begun.Add(time.Hour), Done: 1, P50: time.Minute, P95: time.Minute,
			Started: 1, WaitedP50: time.Second, WaitedP95: time.Second},
		{Workflow: "parcel", Task: "pack", Hour: begun, Done: 20, Failed: 1, P50: 10 * time.Second, P95: 19 * time.Second,
			Started: 21, WaitedP50: 1100 * time.Millisecond, WaitedP95: 2 * time.Second},
	}, pack(store.RateFilter{Hourly: true, Workflow: "parcel"}))
	rates := pack(store.RateFilter{Since: begun.Add(time.Hour + time.Minute)})
	require.Equal(t, 1, rates[0].Done, "the hour counts whole")
	rates = pack(store.RateFilter{Before: begun.Add(time.Hour)})
	require.Equal(t, 20, rates[0].Done)
	require.Empty(t, pack(store.RateFilter{Workflow: "other"}))
}
