package schedule_test

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/schedule"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// zoneNames are all names of the tz database.
//
//go:embed testdata/zones.txt
var zoneNames string

// changes returns when the clocks of a zone are put forward or back between two years.
func changes(zone *time.Location, from, to int) (all []time.Time) {
	for t := time.Date(from, 1, 1, 0, 0, 0, 0, zone); ; {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Year() >= to {
			return all
		}
		if !end.After(t) {
			end = t.Add(time.Hour) // ZoneBounds, in leap years from 2038 on
		}
		if _, before := end.Add(-1).Zone(); before != offset(end) {
			all = append(all, end)
		}
		t = end
	}
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

// shows is what clocks show: a time in UTC.
func shows(t time.Time) time.Time { return t.UTC().Add(time.Duration(offset(t)) * time.Second) }

// rule is an expression, and what it says in Go.
type rule struct {
	expression string
	everyHour  bool // the hours are not restricted
	matches    func(time.Time) bool
}

func onMinutes(every int) func(time.Time) bool {
	return func(r time.Time) bool { return r.Minute()%every == 0 }
}

var rules = []rule{
	{"*/5 * * * *", true, onMinutes(5)},
	{"30 0-23 * * *", true, func(r time.Time) bool { return r.Minute() == 30 }},
	{"*/10 1-3,23 * * *", false, func(r time.Time) bool {
		return r.Minute()%10 == 0 && (1 <= r.Hour() && r.Hour() <= 3 || r.Hour() == 23)
	}},
	{"30 2 * * *", false, func(r time.Time) bool { return r.Minute() == 30 && r.Hour() == 2 }},
	{"0 0 * * *", false, func(r time.Time) bool { return r.Minute() == 0 && r.Hour() == 0 }},
	{"15 */2 * * *", false, func(r time.Time) bool { return r.Minute() == 15 && r.Hour()%2 == 0 }},
	{"5,50 9 * * mon-fri", false, func(r time.Time) bool {
		return (r.Minute() == 5 || r.Minute() == 50) && r.Hour() == 9 && r.Weekday()%6 != 0
	}},
	{"@hourly", true, func(r time.Time) bool { return r.Minute() == 0 }},
}

// expected lists the ticks around a change, by looking at every minute of four days: every time that clocks show a match,
// or the first of them for each reading, and the change itself for readings that it skips.
func (r rule) expected(change time.Time) (ticks []time.Time) {
	seen := make(map[time.Time]bool)
	from, to := change.Add(-48*time.Hour), change.Add(48*time.Hour)
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		before, now := shows(t.Add(-time.Minute)).Add(time.Minute), shows(t)
		skipped := false
		for s := before; s.Before(now); s = s.Add(time.Minute) {
			skipped = skipped || r.matches(s) && !seen[s]
			seen[s] = true
		}
		if r.everyHour && r.matches(now) || !r.everyHour && (skipped || r.matches(now) && !seen[now]) {
			ticks = append(ticks, t)
		}
		seen[now] = true
	}
	return ticks
}

// In every zone of the tz database, around changes of its clocks: the ticks are those that the package comment promises.
// Most of the changes are tried by the nightly tests.
func TestTicksAroundChangesInEveryZone(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(20, 26))
	tried := 0
	for name := range strings.FieldsSeq(zoneNames) {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		all := changes(zone, 1975, 2045)
		if !testsize.Nightly() && len(all) > 1 {
			i := rnd.IntN(len(all) - 1)
			all = all[i : i+1]
		}
		for _, change := range all {
			r := rules[rnd.IntN(len(rules))]
			timetable, err := schedule.Cron(r.expression, name)
			require.NoError(t, err)
			want := r.expected(change)
			got := slices.Collect(timetable.Between(change.Add(-48*time.Hour), change.Add(48*time.Hour)))
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
					t.Fatalf("%s in %s, change at %v: tick %d of %v is to be that of %v", r.expression, name, change, i,
						tail(got, i), tail(want, i))
				}
			}
			tried++
		}
	}
	require.Greater(t, tried, 400)
}

func tail(ticks []time.Time, i int) []time.Time {
	return ticks[max(0, min(i-1, len(ticks))):min(len(ticks), i+3)]
}

// What package time knows of the last day of leap years from 2038 on is wrong, and ticks are right.
func TestTheLastDayOfALeapYear(t *testing.T) {
	for name := range strings.FieldsSeq(zoneNames) {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		noon, err := schedule.Cron("0 12 * * *", name)
		require.NoError(t, err)
		want := time.Date(2040, 12, 29, 12, 0, 0, 0, zone)
		for range 5 {
			next := noon.Next(want)
			want = want.AddDate(0, 0, 1)
			require.True(t, next.Equal(want), "%v, want %v", next, want)
		}
	}
}

// Where clocks were put forward by a whole day, what belongs to that day comes at its end.
func TestADayThatWasSkipped(t *testing.T) {
	zone, err := time.LoadLocation("Pacific/Apia")
	require.NoError(t, err)
	daily, err := schedule.Cron("0 9 * * *", "Pacific/Apia")
	require.NoError(t, err)
	var got []string
	for tick := range daily.Between(time.Date(2011, 12, 29, 0, 0, 0, 0, zone), time.Date(2012, 1, 1, 0, 0, 0, 0, zone)) {
		got = append(got, tick.Format("Jan 2 15:04"))
	}
	require.Equal(t, []string{"Dec 29 09:00", "Dec 31 00:00", "Dec 31 09:00"}, got)
}

// The table of the package comment.
func TestTheTableOfChanges(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct{ expression, spring, autumn string }{
		{"30 2 * * *", "03:00 CEST", "02:30 CEST"},
		{"0,30 2 * * *", "03:00 CEST", "02:00 CEST 02:30 CEST"},
		{"30 * * * *", "01:30 CET 03:30 CEST", "01:30 CEST 02:30 CEST 02:30 CET 03:30 CET"},
	} {
		timetable, err := schedule.Cron(c.expression, "Europe/Berlin")
		require.NoError(t, err)
		for day, want := range map[time.Time]string{
			time.Date(2030, 3, 31, 1, 0, 0, 0, zone): c.spring, time.Date(2030, 10, 27, 1, 0, 0, 0, zone): c.autumn,
		} {
			var got []string
			for tick := range timetable.Between(day, time.Date(day.Year(), day.Month(), day.Day(), 4, 0, 0, 0, zone)) {
				got = append(got, tick.Format("15:04 MST"))
			}
			require.Equal(t, want, strings.Join(got, " "), c.expression)
		}
	}
}

// In every zone, around changes of its clocks: a window is open when clocks show a time in it, and what Open and Close
// return are the moments at which that changes.
func TestWindowsInEveryZone(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(20, 27))
	for name := range strings.FieldsSeq(zoneNames) {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		all := changes(zone, 1975, 2045)
		if len(all) == 0 {
			continue
		}
		change := all[rnd.IntN(len(all))]
		text := []string{"08:00-18:00", "22:00-06:00", "02:30-03:00", "mon-fri 01:00-02:30", "sat,sun", "00:00-24:00", "fri 23:30-02:10"}[rnd.IntN(7)]
		w, err := schedule.ParseWindow(text, name)
		require.NoError(t, err)
		t0 := change.Add(-40 * time.Hour)
		open, closed := w.Open(t0), w.Close(t0)
		for now := t0; now.Before(change.Add(40 * time.Hour)); now = now.Add(time.Minute) {
			switch w.Contains(now) {
			case true:
				if !open.Before(now) && !open.Equal(now) {
					t.Fatalf("%v is open at %v, and was to open at %v", w, now, open)
				}
				open = now.Add(time.Minute)
				if closed.Equal(now) {
					t.Fatalf("%v is to close at %v", w, now)
				}
				if !closed.IsZero() && closed.Before(now) {
					closed = w.Close(now)
				}
				open = w.Open(open)
			case false:
				if !closed.Before(now) && !closed.Equal(now) {
					t.Fatalf("%v is closed at %v, and was to close at %v", w, now, closed)
				}
				closed = w.Close(now.Add(time.Minute))
			}
		}
	}
}
