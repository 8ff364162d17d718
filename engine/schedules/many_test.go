package schedules_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
)

// Schedules that are not due write nothing and start nothing: each is an entry of the engine's timers. The nightly form has 10,000.
func TestManySchedulesCostNothingWhileNoneIsDue(t *testing.T) {
	n := testsize.Pick(300, 1_000, 10_000)
	if os.Getenv(enginetest.EnvStore) != "" {
		n = 300
	}
	var list []schedule.Schedule
	for i := range n {
		list = append(list, schedule.Schedule{Name: fmt.Sprint("s", i), Cron: fmt.Sprintf("%d 12 * * *", i%60)})
	}
	b := newBench(t, list...)
	b.Drain()
	entries := func() (seq int64) {
		for e, err := range store.AllEntries(t.Context(), b, store.JournalFilter{}) {
			require.NoError(t, err)
			seq = e.Seq
		}
		return seq
	}
	before := entries()
	var memory, after runtime.MemStats
	runtime.ReadMemStats(&memory)
	due, ok := b.NextDue()
	require.True(t, ok)
	require.False(t, due.Before(at(1, 0)), "only the first cases are removed, after an hour")
	b.Advance(59 * time.Minute)
	runtime.ReadMemStats(&after)
	require.Equal(t, before, entries())
	t.Logf("%d schedules, an hour without a tick: %d bytes allocated, %d KiB live", n, after.TotalAlloc-memory.TotalAlloc, after.HeapInuse>>10)
	require.Less(t, after.TotalAlloc-memory.TotalAlloc, uint64(1<<20), "nothing is done for each of them")
}
