package schedules_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
)

// While ticks of a backfill wait, a tick that becomes due is skipped, waits behind them, replaces the run in progress, or starts beside it.
// Of ticks that are caught up together, cancel leaves the last one.
func TestATickIsDueDuringABackfill(t *testing.T) {
	for overlap, want := range map[schedule.Overlap]struct {
		latest  time.Time
		skipped int
		waiting []time.Time
	}{
		schedule.OverlapSkip:   {at(1, 0), 3, []time.Time{at(2, 0)}},
		schedule.OverlapQueue:  {at(1, 0), 0, []time.Time{at(2, 0), at(4, 0), at(5, 0), at(6, 0)}},
		schedule.OverlapCancel: {at(6, 0), 0, []time.Time{at(2, 0)}},
		schedule.OverlapAllow:  {at(6, 0), 0, nil},
	} {
		t.Run(overlap.String(), func(t *testing.T) {
			f := builder.MustFunc("f", func(ctx context.Context, _ string) (string, error) { return "", step.Sleep(ctx, "nap", 10*time.Hour) })
			s := hourly("digest")
			s.Start, s.Overlap, s.CatchUp = at(4, 0), overlap, schedule.CatchUpAll
			declared := schedules.New(engine.Code, builder.Schedule(s, f, ""))
			e := enginetest.New(t, f, declared)
			_, err := declared.Serve(t.Context(), e.Engine) // what it serves is another one after the crash
			require.NoError(t, err)
			e.Advance(3*time.Hour + time.Minute)
			require.NoError(t, schedules.Backfill(t.Context(), e, "digest", at(1, 0), at(3, 0)))
			e.Advance(time.Hour)
			require.NoError(t, e.Kill())
			e.Clock().Set(at(6, 30)) // two are missed
			e.Crash()
			e.Drain()
			info, err := schedules.Find(t.Context(), e, "digest")
			require.NoError(t, err)
			require.Equal(t, want.latest, info.State.Latest.Tick)
			require.Equal(t, want.skipped, info.State.Skipped)
			require.True(t, slices.EqualFunc(want.waiting, info.State.Waiting, time.Time.Equal), info.State.Waiting)
			if overlap != schedule.OverlapAllow { // which does not count them
				require.Len(t, info.State.Running, 1)
			}
		})
	}
}
