package schedule_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/schedule"
)

func compile(t require.TestingT, s schedule.Schedule) *schedule.Timetable {
	timetable, err := s.Compile()
	require.NoError(t, err)
	return timetable
}

func TestAScheduleIsData(t *testing.T) {
	s := schedule.Schedule{Name: "digest", Cron: "0 8 * * mon-fri", Zone: "Europe/Berlin", Start: utc("2030-01-01 00:00:00"),
		Jitter: time.Minute, Overlap: schedule.OverlapQueue, CatchUp: schedule.CatchUpAll, CatchUpMost: 5}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"name": "digest", "cron": "0 8 * * mon-fri", "zone": "Europe/Berlin", "start": "2030-01-01T00:00:00Z",
		"jitter": 60000000000, "overlap": "queue", "catch_up": "all", "catch_up_most": 5}`, string(text))
	var back schedule.Schedule
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, s, back)
	require.Equal(t, s, compile(t, s).Schedule())
	require.Equal(t, "cron 0 8 * * mon-fri in Europe/Berlin", s.String())
	require.Equal(t, "every 1h30m0s", schedule.Schedule{Every: 90 * time.Minute}.String())
	require.ErrorIs(t, new(schedule.Overlap).UnmarshalText([]byte("skp")), schedule.ErrInvalid)
	require.ErrorContains(t, new(schedule.CatchUp).UnmarshalText([]byte("some")), `CatchUp is "some": use one of ["none" "last" "all"]`)
	require.Equal(t, "overlap(9)", schedule.Overlap(9).String())
	_, err = schedule.CatchUp(9).MarshalText()
	require.ErrorIs(t, err, schedule.ErrInvalid)
}

func TestInvalidSchedules(t *testing.T) {
	start := utc("2030-01-01 00:00:00")
	_, err := schedule.Schedule{Cron: "@daily", Every: time.Millisecond, Zone: "x", Start: start, End: start, Jitter: -1, Grace: -1,
		CatchUpMost: -1, Overlap: 9, CatchUp: 9}.Compile()
	require.ErrorIs(t, err, schedule.ErrInvalid)
	for _, want := range []string{`invalid schedule "": it has no name`, "set either Cron or Every", "Every is 1ms: use at least a second",
		"End is not after Start", "Jitter is -1ns", "Grace is -1ns", "CatchUpMost is -1", "Overlap is overlap(9)",
		"CatchUp is catch-up(9)", `zone "x" is not in the tz database`} {
		require.ErrorContains(t, err, want)
	}
}

func TestIntervals(t *testing.T) {
	every, err := schedule.Every(90 * time.Minute)
	require.NoError(t, err)
	require.Equal(t, utc("2030-01-01 01:30:00"), every.Next(utc("2030-01-01 00:00:00")).UTC())
	anchored := compile(t, schedule.Schedule{Name: "x", Every: time.Hour, Start: utc("2030-01-01 00:10:00")})
	require.Equal(t, utc("2030-01-01 00:10:00"), anchored.Next(utc("2029-01-01 00:00:00")).UTC())
	require.Equal(t, utc("2030-01-01 01:10:00"), anchored.Next(utc("2030-01-01 00:10:00")).UTC())
	before := slices.Collect(anchored.Between(utc("2029-12-31 22:00:00"), utc("2030-01-01 00:10:00")))
	require.Len(t, before, 2, "a backfill does not end at Start")
	require.Equal(t, utc("2029-12-31 22:10:00"), before[0].UTC())
}

func TestTheZeroTimetableHasNoTicks(t *testing.T) {
	var none schedule.Timetable
	require.Zero(t, none.Next(utc("2030-01-01 00:00:00")))
	require.Empty(t, slices.Collect(none.After(utc("2030-01-01 00:00:00"))))
	require.Empty(t, none.Due(utc("2030-01-01 00:00:00"), utc("2031-01-01 00:00:00")).Ticks)
}

func TestStartAndEnd(t *testing.T) {
	s := compile(t, schedule.Schedule{Name: "x", Cron: "@daily", Start: utc("2030-01-01 00:00:00"), End: utc("2030-01-03 00:00:00")})
	var got []string
	for tick := range s.After(time.Time{}) {
		got = append(got, tick.Format(time.DateOnly))
	}
	require.Equal(t, []string{"2030-01-01", "2030-01-02"}, got, "Start belongs to it, End does not")
	due := s.Due(utc("2030-01-02 00:00:00"), utc("2030-01-05 00:00:00"))
	require.True(t, due.Next.IsZero())
	require.Empty(t, due.Ticks)
}

// The delay of a tick is the same everywhere, within the jitter, spread over it, and before the next tick.
func TestJitter(t *testing.T) {
	s := schedule.Schedule{Name: "x", Cron: "* * * * *", Jitter: 30 * time.Second}
	timetable, other := compile(t, s), compile(t, s)
	crowded := s
	crowded.Jitter, crowded.Name = time.Hour, "y"
	var sum time.Duration
	late, n := compile(t, crowded), 0
	for tick := range timetable.Between(utc("2030-01-01 00:00:00"), utc("2030-01-02 00:00:00")) {
		begin := timetable.Begin(tick)
		require.Equal(t, begin, other.Begin(tick.UTC()).In(begin.Location()))
		require.False(t, begin.Before(tick) || !begin.Before(tick.Add(30*time.Second)))
		require.True(t, late.Begin(tick).Before(tick.Add(time.Minute)))
		sum += begin.Sub(tick)
		n++
	}
	require.InDelta(t, 15, (sum / time.Duration(n)).Seconds(), 1.5)
}

func TestDue(t *testing.T) {
	hourly := func(catchUp schedule.CatchUp, most int) *schedule.Timetable {
		return compile(t, schedule.Schedule{Name: "x", Cron: "@hourly", CatchUp: catchUp, CatchUpMost: most})
	}
	clock := func(ticks []time.Time) (all []string) {
		for _, tick := range ticks {
			all = append(all, tick.Format("15:04"))
		}
		return all
	}
	last := utc("2030-01-01 00:00:00")
	for _, c := range []struct {
		timetable *schedule.Timetable
		now       string
		ticks     []string
		leftOut   bool
		last      string
		next      string
	}{
		{hourly(schedule.CatchUpNone, 0), "00:59:59", nil, false, "00:00", "01:00"},
		{hourly(schedule.CatchUpNone, 0), "01:00:00", []string{"01:00"}, false, "01:00", "02:00"},
		{hourly(schedule.CatchUpNone, 0), "01:00:59", []string{"01:00"}, false, "01:00", "02:00"},
		{hourly(schedule.CatchUpNone, 0), "01:01:00", []string{"01:00"}, false, "01:00", "02:00"},
		{hourly(schedule.CatchUpNone, 0), "01:01:01", nil, true, "01:00", "02:00"},
		{hourly(schedule.CatchUpNone, 0), "05:00:01", []string{"05:00"}, true, "05:00", "06:00"},
		{hourly(schedule.CatchUpLast, 0), "05:30:00", []string{"05:00"}, true, "05:00", "06:00"},
		{hourly(schedule.CatchUpLast, 0), "01:30:00", []string{"01:00"}, false, "01:00", "02:00"},
		{hourly(schedule.CatchUpAll, 0), "03:30:00", []string{"01:00", "02:00", "03:00"}, false, "03:00", "04:00"},
		{hourly(schedule.CatchUpAll, 2), "03:30:00", []string{"02:00", "03:00"}, true, "03:00", "04:00"},
	} {
		due := c.timetable.Due(last, utc("2030-01-01 "+c.now))
		require.Equal(t, c.ticks, clock(due.Ticks), c.now)
		require.Equal(t, c.leftOut, due.LeftOut, c.now)
		require.Equal(t, c.last, due.Last.Format("15:04"), c.now)
		require.Equal(t, c.next, due.Next.Format("15:04"), c.now)
		again := c.timetable.Due(due.Last, utc("2030-01-01 "+c.now))
		require.Empty(t, again.Ticks, "each tick once")
	}
	fresh := hourly(schedule.CatchUpAll, 0).Due(time.Time{}, last)
	require.Empty(t, fresh.Ticks, "nothing was missed before it was made")
	require.Equal(t, last, fresh.Last)
	paused := compile(t, schedule.Schedule{Name: "x", Cron: "@hourly", Paused: true}).Due(last, last.Add(time.Hour))
	require.Equal(t, schedule.Due{Last: last}, paused)
}

// A schedule of every second that was down for thirty years is asked in no time.
func TestCatchingUpLooksOnlyAtTheLatest(t *testing.T) {
	s := compile(t, schedule.Schedule{Name: "x", Cron: "* * * * * *", CatchUp: schedule.CatchUpAll, CatchUpMost: 100})
	now := utc("2030-01-01 00:00:00")
	due := s.Due(utc("2000-01-01 00:00:00"), now)
	require.Len(t, due.Ticks, 100)
	require.Equal(t, now, due.Last.UTC())
	require.True(t, due.LeftOut)
}

// A schedule that is asked at any times, by processes that crash before they store the answer: each tick begins at most
// once, in order, not before its time, and with CatchUpAll each begins.
func TestEachTickBeginsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedule.Schedule{
			Name: "x", Zone: "Europe/Berlin",
			Cron:    rapid.SampledFrom([]string{"*/7 * * * *", "30 2 * * *", "@hourly", "10,40 1-5 * * *"}).Draw(t, "cron"),
			Jitter:  time.Duration(rapid.IntRange(0, 1200).Draw(t, "jitter")) * time.Second,
			CatchUp: rapid.SampledFrom([]schedule.CatchUp{0, 1, 2}).Draw(t, "catch-up"),
		}
		timetable := compile(t, s)
		start := utc("2030-03-29 00:00:00").Add(time.Duration(rapid.IntRange(0, 4320).Draw(t, "start")) * time.Minute)
		last, now := start, start
		var begun []time.Time
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			due := timetable.Due(last, now)
			for _, tick := range due.Ticks {
				require.False(t, timetable.Begin(tick).After(now), "too early")
			}
			require.True(t, due.Next.After(now), "there is nothing to do before Next")
			if rapid.IntRange(0, 4).Draw(t, "crash") > 0 {
				begun = append(begun, due.Ticks...)
				last = due.Last
			}
			if rapid.Bool().Draw(t, "on time") {
				now = due.Next
			} else {
				now = now.Add(time.Duration(rapid.IntRange(-100, 3000).Draw(t, "minutes")) * time.Minute / 10)
			}
		}
		for i := range len(begun) - 1 {
			require.True(t, begun[i].Before(begun[i+1]), "once, and in order")
		}
		if s.CatchUp == schedule.CatchUpAll {
			want := slices.Collect(timetable.Between(start.Add(1), last.Add(1)))
			require.Equal(t, len(want), len(begun))
			for i := range want {
				require.True(t, want[i].Equal(begun[i]))
			}
		}
	})
}

func TestOverlap(t *testing.T) {
	for overlap, want := range map[schedule.Overlap]schedule.Action{
		schedule.OverlapSkip: schedule.ActionLeave, schedule.OverlapQueue: schedule.ActionWait,
		schedule.OverlapCancel: schedule.ActionReplace, schedule.OverlapAllow: schedule.ActionStart,
	} {
		require.Equal(t, schedule.ActionStart, overlap.At(false))
		require.Equal(t, want, overlap.At(true), "%v", overlap)
	}
}

func TestWindows(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(text string) time.Time {
		r, err := time.ParseInLocation("2006-01-02 15:04", text, berlin)
		require.NoError(t, err)
		return r
	}
	for _, c := range []struct{ window, at, open, closed string }{
		{"08:00-18:00", "2030-01-01 07:59", "2030-01-01 08:00", "2030-01-01 07:59"},
		{"08:00-18:00", "2030-01-01 08:00", "2030-01-01 08:00", "2030-01-01 18:00"},
		{"08:00-18:00", "2030-01-01 18:00", "2030-01-02 08:00", "2030-01-01 18:00"},
		{"22:00-06:00", "2030-01-01 23:00", "2030-01-01 23:00", "2030-01-02 06:00"},
		{"22:00-06:00", "2030-01-01 05:59", "2030-01-01 05:59", "2030-01-01 06:00"},
		{"22:00-06:00", "2030-01-01 06:00", "2030-01-01 22:00", "2030-01-01 06:00"},
		{"fri 22:00-06:00", "2030-01-05 03:00", "2030-01-05 03:00", "2030-01-05 06:00"},
		{"fri 22:00-06:00", "2030-01-04 03:00", "2030-01-04 22:00", "2030-01-04 03:00"},
		{"mon-fri 08:00-18:00", "2030-01-04 18:00", "2030-01-07 08:00", "2030-01-04 18:00"},
		{"sat,7", "2030-01-04 18:00", "2030-01-05 00:00", "2030-01-04 18:00"},
		{"sat,sun", "2030-01-05 18:00", "2030-01-05 18:00", "2030-01-07 00:00"},
		{"09:00-24:00", "2030-01-05 18:00", "2030-01-05 18:00", "2030-01-06 00:00"},
		{"02:30-04:00", "2030-03-31 01:00", "2030-03-31 03:00", "2030-03-31 01:00"},
	} {
		w, err := schedule.ParseWindow(c.window, "Europe/Berlin")
		require.NoError(t, err)
		require.Equal(t, c.open, w.Open(at(c.at)).In(berlin).Format("2006-01-02 15:04"), "%v", c)
		require.Equal(t, c.closed, w.Close(at(c.at)).In(berlin).Format("2006-01-02 15:04"), "%v", c)
		require.Equal(t, c.window+" Europe/Berlin", w.String())
	}
	always, err := schedule.ParseWindow("00:00-24:00", "")
	require.NoError(t, err)
	require.Equal(t, "00:00-24:00 UTC", always.String())
	for _, w := range []schedule.Window{always, {}} {
		require.True(t, w.Contains(at("2030-01-01 00:00")))
		require.Equal(t, at("2030-01-01 00:00"), w.Open(at("2030-01-01 00:00")))
		require.True(t, w.Close(at("2030-01-01 00:00")).IsZero())
	}
	require.Equal(t, "always", schedule.Window{}.String())
}

func TestInvalidWindows(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "use days, times or both: mon-fri 08:00-18:00",
		"mon tue 08:00-18:00": "use days, times or both",
		"08:00":               `the times "08:00" are no two`,
		"8-18":                `the day of week is "8"`,
		"mon-fri 8:0-18:00":   `"8:0" is no time of day: use 00:00 to 23:59`,
		"24:00-18:00":         `"24:00" is no time of day: use 00:00 to 23:59`,
		"08:00-24:01":         `"24:01" is no time of day: use 00:00 to 24:00`,
		"08:00-08:00":         "it ends as it begins",
		"xyz 08:00-18:00":     `the day of week is "xyz"`,
	} {
		_, err := schedule.ParseWindow(text, "Europe/Berlin")
		require.ErrorIs(t, err, schedule.ErrInvalid, text)
		require.ErrorContains(t, err, want)
	}
	_, err := schedule.ParseWindow("08:00-18:00", "Berlin")
	require.ErrorContains(t, err, `zone "Berlin" is not in the tz database`)
}

// A window is written and read again, as a definition keeps it.
func TestAWindowAsText(t *testing.T) {
	for _, c := range []struct{ window, zone, text string }{
		{"mon-fri 08:00-18:00", "Europe/Berlin", "mon-fri 08:00-18:00 Europe/Berlin"},
		{"sat,sun", "America/New_York", "sat,sun America/New_York"},
		{"22:00-06:00", "UTC", "22:00-06:00 UTC"},
	} {
		w := schedule.MustParseWindow(c.window, c.zone)
		text, err := w.MarshalText()
		require.NoError(t, err)
		require.Equal(t, c.text, string(text))
		var again schedule.Window
		require.NoError(t, again.UnmarshalText(text))
		require.True(t, again == w, "%v", again)
		require.False(t, w.IsZero())
	}
	var w schedule.Window
	require.True(t, w.IsZero())
	text, err := w.MarshalText()
	require.NoError(t, err)
	again := schedule.MustParseWindow("sat,sun", "")
	require.NoError(t, again.UnmarshalText(text))
	require.True(t, again.IsZero())
	require.ErrorIs(t, w.UnmarshalText([]byte("mon-fri 08:00-18:00")), schedule.ErrInvalid, "without a zone")
	require.Panics(t, func() { schedule.MustParseWindow("8-18", "") })
}

// A zone is read from the tz database once.
func TestAZoneIsReadOnce(t *testing.T) {
	first, err := schedule.Location("Europe/Berlin")
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		again, err := schedule.Location("Europe/Berlin")
		if err != nil || again != first {
			t.Fatal(again, err)
		}
	}))
	for _, name := range []string{"Local", "Berlin"} {
		_, err := schedule.Location(name)
		require.Error(t, err)
	}
}

// An interval and its distance from the start may be longer than a duration holds, which is 292 years.
func TestLongIntervals(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, every := range []time.Duration{time.Second, 36 * time.Hour, 100 * 365 * 24 * time.Hour, longest - 1, longest} {
		table, err := schedule.Every(every)
		require.NoError(t, err)
		for _, year := range []int{1, 1600, 1969, 1970, 2026, 2262, 2263, 2600, 9000} {
			after := time.Date(year, 5, 17, 3, 4, 5, 6, time.UTC)
			next := table.Next(after)
			require.True(t, next.After(after), "%v after %v is %v", every, after, next)
			require.False(t, next.Add(-every).After(after), "%v after %v is %v, and one is before", every, after, next)
			require.True(t, next.Add(every).Equal(table.Next(next)))
		}
	}
}
