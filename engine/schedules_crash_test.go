package engine_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// scheduleCuts is how many commits of a day of ticks are cut, each once before and once after it is durable.
const scheduleCuts = 40

// TestKillAtEveryCommitOfSchedules has a process kill itself as it declares schedules and runs their ticks. Whatever the moment,
// each tick of each schedule has one run in the end. Eight processes are killed by default; the nightly form cuts each commit.
func TestKillAtEveryCommitOfSchedules(t *testing.T) {
	cut{first: 1, last: scheduleCuts, every: 13, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		killed(t, "TestKilledProcessWithSchedules", "TASQ_SCHEDULE_KILLED_PROCESS", path, n, moment, "")
		f, s := scheduleKilled()
		e := enginetest.Open(t, storeOfKilled(path), engine.Config{}, f, s)
		awaitDeath(t, path)
		_, err := s.Serve(t.Context(), e)
		require.NoError(t, err)
		e.Advance(24 * time.Hour)
		ticks := make(map[string]int)
		for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: "digest"}) {
			require.NoError(t, err)
			o, err := workflow.OptionsOf(activities.CaseInfo{Options: c.Options})
			require.NoError(t, err)
			ticks[o.Tick.Schedule+o.Tick.At.Format(" 15:04")]++
		}
		require.Len(t, ticks, 2*23)
		for tick, n := range ticks {
			require.Equal(t, 1, n, tick)
		}
	})
}

// scheduleKilled are two schedules that catch up on everything; one of them begins at 01:00, one at 01:30.
func scheduleKilled() (*builder.FuncRef[string, string], *schedules.Schedules) {
	f := builder.MustFunc("digest", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Keep(builder.Forever))
	var list []workflow.Scheduled
	for minute := 0; minute <= 30; minute += 30 {
		start := virtual.Epoch.Add(time.Hour)
		list = append(list, builder.Schedule(schedule.Schedule{Name: "at" + strconv.Itoa(minute), Cron: strconv.Itoa(minute) + " * * * *",
			Start: start, End: virtual.Epoch.Add(24 * time.Hour), CatchUp: schedule.CatchUpAll, Overlap: schedule.OverlapAllow}, f, ""))
	}
	return f, schedules.New(engine.Code, list...)
}

// TestKilledProcessWithSchedules is the child process of TestKillAtEveryCommitOfSchedules; on its own it does nothing.
func TestKilledProcessWithSchedules(t *testing.T) {
	_, o := toBeKilled(t, "TASQ_SCHEDULE_KILLED_PROCESS", 0)
	if o == nil {
		return
	}
	f, s := scheduleKilled()
	e := enginetest.Open(t, o, engine.Config{}, f, s)
	_, err := s.Serve(t.Context(), e)
	require.NoError(t, err)
	for {
		e.Advance(time.Hour)
	}
}
