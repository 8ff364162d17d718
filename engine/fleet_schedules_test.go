package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
)

// A new program has a schedule and the workflow that it starts, an old one neither. The new one starts the ticks, also after a command on the schedule
// that the old one has executed. While only the old one runs, no tick is started, and none is lost from the schedule.
func TestAScheduleGoesToAnEngineWithItsWorkflow(t *testing.T) {
	f := newFleet(t)
	clean := builder.MustFunc("clean", func(context.Context, int) (int, error) { return 0, nil })
	often := builder.Schedule(schedule.Schedule{Name: "often", Every: time.Second, Overlap: schedule.OverlapAllow}, clean, 0)
	open := func() (*engine.Engine, schedules.Report) {
		s := schedules.New(engine.Code, often)
		e := f.open(engine.Config{}, clean, s)
		report, err := s.Serve(t.Context(), e)
		require.NoError(t, err)
		return e, report
	}
	const runs = "SELECT count(*) FROM tasq.cases WHERE workflow = 'clean'"
	next, report := open()
	require.Equal(t, []string{"often"}, report.Added)
	before := schedules.New(engine.Code)
	old := f.open(engine.Config{}, before)
	report, err := before.Serve(t.Context(), old)
	require.NoError(t, err)
	require.Equal(t, []string{"often"}, report.Vanished, "it is kept")

	for range 2 { // whichever engine had it, the old one has it after its command
		require.NoError(t, schedules.Pause(t.Context(), old, "often"))
		require.NoError(t, schedules.Resume(t.Context(), old, "often"))
		n := f.sql(runs)
		f.until(runs, func(now int) bool { return now > n })
	}
	i, err := schedules.Find(t.Context(), old, "often")
	require.NoError(t, err)
	require.Nil(t, i.Latest.Error)

	require.NoError(t, next.Close())
	n := f.sql(runs)
	next, report = open()
	require.Empty(t, report.Added)
	require.Empty(t, report.Updated)
	f.until(runs, func(now int) bool { return now > n })
	require.NoError(t, old.Close())
	require.NoError(t, next.Close())
	require.Zero(t, f.sql("SELECT count(*) - count(DISTINCT options::json -> 'tick' ->> 'at') FROM tasq.cases WHERE workflow = 'clean'"), "no tick is started twice")
}
