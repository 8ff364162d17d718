package schedules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store/postgres"
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

// history is what happens to a schedule.
type history struct {
	Schedule schedule.Schedule
	Begin    time.Time
	Steps    []historyStep
}

type historyStep struct {
	What string
	By   time.Duration // of "advance", "jump" and "back"
}

func drawHistory(rt *rapid.T) (h history) {
	specs := []schedule.Schedule{
		{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, {Cron: "*/20 * * * *", Zone: "Australia/Lord_Howe"},
		{Cron: "0,30 1-3 * * *", Zone: "America/New_York"}, {Every: 7 * time.Minute},
	}
	// A week around each change of the clocks of Berlin and New York, and any other one.
	begins := []time.Time{virtual.Epoch, time.Date(2030, 3, 29, 0, 0, 0, 0, time.UTC), time.Date(2030, 10, 25, 0, 0, 0, 0, time.UTC),
		time.Date(2030, 11, 1, 0, 0, 0, 0, time.UTC)}
	h.Schedule = rapid.SampledFrom(specs).Draw(rt, "schedule")
	h.Schedule.Name, h.Schedule.CatchUp, h.Schedule.Overlap = "digest", schedule.CatchUpAll, schedule.OverlapAllow
	h.Begin = rapid.SampledFrom(begins).Draw(rt, "begin")
	for range rapid.IntRange(1, 12).Draw(rt, "steps") {
		s := historyStep{What: rapid.SampledFrom([]string{"advance", "advance", "jump", "back", "crash", "pause", "resume"}).Draw(rt, "what")}
		switch s.What {
		case "advance":
			s.By = time.Duration(rapid.IntRange(1, 600).Draw(rt, "minutes")) * time.Minute
		case "jump":
			s.By = time.Duration(rapid.IntRange(1, 72).Draw(rt, "hours")) * time.Hour
		case "back":
			s.By = -time.Duration(rapid.IntRange(1, 48).Draw(rt, "hours")) * time.Hour
		}
		h.Steps = append(h.Steps, s)
	}
	return h
}

// play lets a history happen, and compares the ticks that began with those of the reference.
func (h history) play(t *testing.T, rt require.TestingT, b *bench) {
	b.Clock().Set(h.Begin)
	b.reopen(h.Schedule)
	table, err := h.Schedule.Compile()
	require.NoError(rt, err)
	want := &reference{table: table, last: b.Now()}
	for _, step := range h.Steps {
		switch step.What {
		case "advance":
			b.Advance(step.By)
		case "jump", "back":
			b.Clock().Set(b.Now().Add(step.By))
		case "crash":
			b.reopen(h.Schedule)
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
}

// Whatever happens to the clock, the process and the schedule, each tick begins once.
func TestRandomHistoriesBeginEachTickOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { drawHistory(rt).play(t, rt, newBench(t)) })
}

// The same on PostgreSQL.
func TestRandomHistoriesBeginEachTickOnceOnPostgres(t *testing.T) {
	t.Parallel()
	for seed := range testsize.Pick(8, 14, 100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := rapid.Custom(drawHistory).Example(seed)
			t.Logf("%+v", h)
			h.play(t, t, newBenchOn(t, postgres.Open(pgtest.Database(t))))
		})
	}
}
