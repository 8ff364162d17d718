package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// The middle of its class is at most 6 % from any duration, and longer durations have no lower class.
func TestClassesOfDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 50).Draw(t, "bits")).Draw(t, "us")) * time.Microsecond
		require.InDelta(t, float64(d), float64(store.TookOf(store.TookClass(d))), 0.0626*float64(d)+float64(time.Microsecond), d)
		require.GreaterOrEqual(t, store.TookClass(d+time.Microsecond), store.TookClass(d))
	})
	require.Zero(t, store.TookClass(-time.Second))
	require.Zero(t, store.TookOf(0))
}

// An item is counted once it has ended, and its wait beside it, from when it was due. What was never started has no wait, and what was canceled is
// not counted.
func TestCountsOfAnItem(t *testing.T) {
	nine := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return nine.Add(time.Duration(minutes) * time.Minute) }
	minutes := func(n int) int { return store.TookClass(time.Duration(n) * time.Minute) }
	none := time.Time{}
	for _, c := range []struct {
		state        workitem.State
		due, started time.Time
		ended        int
		want         store.EndedCounts
	}{
		{workitem.Completed, none, at(20), 65, store.EndedCounts{
			{Workflow: "w", Task: "t", State: workitem.Completed, Hour: at(60), Took: minutes(45)}: 1,
			{Workflow: "w", Task: "t", State: workitem.Started, Hour: at(60), Took: minutes(20)}:   1}},
		{workitem.Failed, at(15), at(20), 30, store.EndedCounts{
			{Workflow: "w", Task: "t", State: workitem.Failed, Hour: nine}:                    1,
			{Workflow: "w", Task: "t", State: workitem.Started, Hour: nine, Took: minutes(5)}: 1}},
		{workitem.Failed, at(25), at(20), 30, store.EndedCounts{ // it was started before it was due
			{Workflow: "w", Task: "t", State: workitem.Failed, Hour: nine}:  1,
			{Workflow: "w", Task: "t", State: workitem.Started, Hour: nine}: 1}},
		{workitem.Completed, none, none, 30, store.EndedCounts{{Workflow: "w", Task: "t", State: workitem.Completed, Hour: nine}: 1}},
		{workitem.Canceled, none, at(20), 30, store.EndedCounts{}},
		{workitem.Started, none, at(20), 30, store.EndedCounts{}},
	} {
		got := make(store.EndedCounts)
		got.AddItem("w", &workitem.Item{Task: "t", State: c.state, Created: nine, Due: c.due, Started: c.started, Ended: at(c.ended)}, 1)
		require.Equal(t, c.want, got)
	}
}
