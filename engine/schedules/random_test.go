package schedules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/schedule"
)

// reference is what a schedule that catches up on all is to have begun: a list of ticks that only grows.
type reference struct {
	table  *schedule.Timetable
	ticks  []time.Time
	last   time.Time // looked at up to here
	paused bool
}

func (r *reference) look(now time.Time) {
	if r.paused {
		return
	}
	for tick := range r.table.Between(r.last.Add(1), now.Add(1)) {
		r.ticks = append(r.ticks, tick.UTC())
		r.last = tick
	}
}

func (r *reference) resume(now time.Time) {
	if r.paused && now.After(r.last) {
		r.last = now
	}
	r.paused = false
}

// Whatever happens to the clock, the process and the schedule, each tick begins once.
func TestRandomHistoriesBeginEachTickOnce(t *testing.T) {
	specs := []schedule.Schedule{
		{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, {Cron: "*/20 * * * *", Zone: "Australia/Lord_Howe"},
		{Cron: "0,30 1-3 * * *", Zone: "America/New_York"}, {Every: 7 * time.Minute},
	}
	// A week around each change of the clocks of Berlin and New York, and any other one.
	begins := []time.Time{virtual.Epoch, time.Date(2030, 3, 29, 0, 0, 0, 0, time.UTC), time.Date(2030, 10, 25, 0, 0, 0, 0, time.UTC),
		time.Date(2030, 11, 1, 0, 0, 0, 0, time.UTC)}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(specs).Draw(rt, "schedule")
		s.Name, s.CatchUp, s.Overlap = "digest", schedule.CatchUpAll, schedule.OverlapAllow
		b := newBench(t)
		b.Clock().Set(rapid.SampledFrom(begins).Draw(rt, "begin"))
		b.reopen(s)
		table, err := s.Compile()
		require.NoError(rt, err)
		want := &reference{table: table, last: b.Now()}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"advance", "advance", "jump", "back", "crash", "pause", "resume"}).Draw(rt, "what") {
			case "advance":
				b.Advance(time.Duration(rapid.IntRange(1, 600).Draw(rt, "minutes")) * time.Minute)
			case "jump":
				b.Clock().Set(b.Now().Add(time.Duration(rapid.IntRange(1, 72).Draw(rt, "hours")) * time.Hour))
			case "back":
				b.Clock().Set(b.Now().Add(-time.Duration(rapid.IntRange(1, 48).Draw(rt, "hours")) * time.Hour))
			case "crash":
				b.reopen(s)
			case "pause":
				require.NoError(rt, schedules.Pause(t.Context(), b, "digest"))
				want.paused = true
			case "resume":
				require.NoError(rt, schedules.Resume(t.Context(), b, "digest"))
				want.resume(b.Now())
			}
			b.Drain()
			want.look(b.Now())
		}
		got := b.calls.take()
		slices.SortFunc(got, time.Time.Compare)
		require.Equal(rt, want.ticks, got)
	})
}
