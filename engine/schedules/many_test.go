package schedules_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// Schedules that are not due write nothing and start nothing: each is an entry of the engine's timers. The nightly form has 10,000.
func TestManySchedulesCostNothingWhileNoneIsDue(t *testing.T) {
	n := testsize.Pick(300, 600, 10_000)
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
	require.False(t, due.Before(at(12, 0)), "the first tick")
	b.Advance(59 * time.Minute)
	runtime.ReadMemStats(&after)
	require.Equal(t, before, entries())
	t.Logf("%d schedules, an hour without a tick: %d bytes allocated, %d KiB live", n, after.TotalAlloc-memory.TotalAlloc, after.HeapInuse>>10)
	require.Less(t, after.TotalAlloc-memory.TotalAlloc, uint64(1<<20), "nothing is done for each of them")
}

// overtaken is an engine on which something else happens after the schedules were read, and before the first command. It
// counts the commands.
type overtaken struct {
	*enginetest.Engine
	by   func()
	once sync.Once

	mu       sync.Mutex
	commands int
}

func (e *overtaken) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	e.once.Do(e.by)
	e.mu.Lock()
	e.commands++
	e.mu.Unlock()
	return e.Engine.Do(ctx, c)
}

// Two programs declare the same schedules at the same time, each at a time of its own: one of them adds each schedule, and the other one changes
// nothing.
func TestSchedulesThatTwoProgramsDeclareAreAddedOnce(t *testing.T) {
	const n = 20
	var list []schedule.Schedule
	for i := range n {
		list = append(list, hourly(fmt.Sprint("s", i)))
	}
	b := newBench(t)
	e := &overtaken{Engine: b.Engine, by: func() {
		_, err := b.declare(list...).Serve(t.Context(), b)
		require.NoError(t, err)
		b.Advance(time.Second)
	}}
	report, err := b.declare(list...).Serve(t.Context(), e)
	require.NoError(t, err)
	require.Len(t, report.Added, n)
	require.Equal(t, n, e.commands, "none is repeated")
	all, err := schedules.List(t.Context(), b)
	require.NoError(t, err)
	require.Len(t, all, n)
	for _, i := range all {
		require.Len(t, i.Changes, 1, "the schedule was added, and nothing else")
		require.Equal(t, 1, i.Generation)
	}
	b.Advance(time.Hour)
	require.Len(t, b.calls.take(), n)
}
