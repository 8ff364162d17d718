package view

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// The small chart has a bar for each hour in which something ended, failures above what completed, and leaves out what was before.
func TestTheSmallChartHasABarForEachHour(t *testing.T) {
	now := time.Date(2030, 1, 2, 10, 30, 0, 0, time.UTC)
	since := now.Add(-23 * time.Hour)
	hour := func(ago time.Duration) time.Time { return now.Add(-ago).Truncate(time.Hour) }
	chart, done, failed := spark([]store.Rate{
		{Task: "a", Hour: hour(0), Done: 3, Failed: 4, Started: 7}, {Task: "b", Hour: hour(0), Done: 1}, {Hour: hour(23 * time.Hour), Done: 2},
		{Hour: hour(24 * time.Hour), Done: 100},
	}, since, now)
	require.EqualValues(t, []int64{6, 4}, []int64{done, failed})
	text := string(chart)
	require.Equal(t, 2, strings.Count(text, `class="d"`))
	require.Equal(t, 1, strings.Count(text, `class="f"`))
	require.Contains(t, text, `<rect class="d" x="231" y="25.0" width="8" height="22.0"><title>10:00: 4 completed, 4 failed`)
	require.Contains(t, text, `<rect class="f" x="231" y="3.0" width="8" height="22.0">`, "above the other bar")
	require.Contains(t, text, `<rect class="d" x="1" y="36.0" width="8" height="11.0"><title>11:00: 2 completed, 0 failed`)

	empty, done, failed := spark(nil, since, now)
	require.Empty(t, empty)
	require.Zero(t, done+failed)
}
