package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/schedule"
)

func utc(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestCronExpressions(t *testing.T) {
	for _, c := range []struct{ expression, after, want string }{
		{"* * * * *", "2030-01-01 08:00:30", "2030-01-01 08:01:00"},
		{"* * * * *", "2030-01-01 08:00:00", "2030-01-01 08:01:00"},
		{"* * * * * *", "2030-01-01 08:00:00", "2030-01-01 08:00:01"},
		{"*/15 30 8 * * *", "2030-01-01 08:30:45", "2030-01-02 08:30:00"},
		{"0 8 * * mon-fri", "2030-01-04 09:00:00", "2030-01-07 08:00:00"},
		{"0 8 * * MON,Wed", "2030-01-07 08:00:00", "2030-01-09 08:00:00"},
		{"0 0 29 feb *", "2096-03-01 00:00:00", "2104-02-29 00:00:00"},
		{"0 0 13 * fri", "2030-01-01 00:00:00", "2030-01-04 00:00:00"},
		{"0 0 13 * fri", "2030-01-11 00:00:00", "2030-01-13 00:00:00"},
		{"0 0 ? * 7", "2030-01-01 00:00:00", "2030-01-06 00:00:00"},
		{"0 0 * * fri-sun", "2030-01-05 00:00:00", "2030-01-06 00:00:00"},
		{"0 0 * * 5-7", "2030-01-05 00:00:00", "2030-01-06 00:00:00"},
		{"10-50/20 9 1 jan-mar *", "2030-01-01 09:10:00", "2030-01-01 09:30:00"},
		{"5/20 * * * *", "2030-01-01 09:45:00", "2030-01-01 10:05:00"},
		{"@hourly", "2030-01-01 09:00:00", "2030-01-01 10:00:00"},
		{"@daily", "2030-01-01 09:00:00", "2030-01-02 00:00:00"},
		{"@midnight", "2030-01-01 09:00:00", "2030-01-02 00:00:00"},
		{"@Weekly", "2030-01-01 09:00:00", "2030-01-06 00:00:00"},
		{"@monthly", "2030-01-01 09:00:00", "2030-02-01 00:00:00"},
		{"@yearly", "2030-01-01 09:00:00", "2031-01-01 00:00:00"},
		{"@annually", "2030-01-01 09:00:00", "2031-01-01 00:00:00"},
	} {
		timetable, err := schedule.Cron(c.expression, "")
		require.NoError(t, err, c.expression)
		require.Equal(t, utc(c.want), timetable.Next(utc(c.after)).UTC(), c.expression)
		require.Equal(t, utc(c.want), timetable.Next(utc(c.after).Add(time.Nanosecond)).UTC(), c.expression)
		require.Equal(t, utc(c.want), timetable.Next(utc(c.want).Add(-time.Nanosecond)).UTC(), c.expression)
	}
}

func TestInvalidCronExpressions(t *testing.T) {
	for expression, want := range map[string]string{
		"":                  "set either Cron or Every",
		"* * * *":           "has 4 fields: use minute, hour, day of month, month, day of week",
		"* * * * * * *":     "has 7 fields",
		"60 * * * *":        `the minute is "60": use 0 to 59`,
		"* 24 * * *":        `the hour is "24": use 0 to 23`,
		"* * 0 * *":         `the day of month is "0": use 1 to 31`,
		"* * * foo *":       `the month is "foo": use 1 to 12, or jan to dec`,
		"* * * * 8":         `the day of week is "8": use 0 to 7, or sun to sat`,
		"* * * * fri-mon":   `the range "fri-mon" of the day of week goes backwards: use two ranges, fri-7,0-mon`,
		"*/0 * * * *":       `the step "0" of the minute is none: use 1 to 59`,
		"*/x * * * *":       `the step "x" of the minute is none`,
		"5- * * * *":        `the minute is "": use 0 to 59`,
		"+5 * * * *":        `the minute is "+5": use 0 to 59`,
		"1,,2 * * * *":      `the minute is "": use 0 to 59`,
		"0 0 30 feb *":      "no year has such a day",
		"0 0 31 4,6,9,11 *": "no year has such a day",
		"@every 5m":         "or Every for an interval",
		"@reboot":           "use @hourly, @daily",
		"TZ=UTC 0 * * * *":  "set the Zone of the schedule instead",
	} {
		_, err := schedule.Cron(expression, "")
		require.ErrorIs(t, err, schedule.ErrInvalid, expression)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), "invalid schedule"), "%v", err)
	}
	for zone, want := range map[string]string{
		"Europe/Berln": `zone "Europe/Berln" is not in the tz database of this program: use a name such as Europe/Berlin`,
		"Local":        "zone Local differs between machines",
	} {
		_, err := schedule.Cron("@daily", zone)
		require.ErrorIs(t, err, schedule.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// A random expression, against a search of every minute.
func TestRandomExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string, low, high int) (string, []int) {
			if rapid.IntRange(0, 2).Draw(t, name+" any") == 0 {
				return "*", nil
			}
			values := rapid.SliceOfNDistinct(rapid.IntRange(low, high), 1, 4, rapid.ID).Draw(t, name)
			return strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ","), values
		}
		minute, minutes := list("minute", 0, 59)
		hour, hours := list("hour", 0, 23)
		day, days := list("day", 1, 28)
		weekday, weekdays := list("weekday", 0, 6)
		in := func(values []int, n int) bool { return values == nil || slices.Contains(values, n) }
		timetable, err := schedule.Cron(strings.Join([]string{minute, hour, day, "*", weekday}, " "), "")
		require.NoError(t, err)
		now := utc("2030-01-01 00:00:00").Add(time.Duration(rapid.IntRange(0, 525600).Draw(t, "now")) * time.Minute)
		next := timetable.Next(now)
		for m := now.Add(time.Minute); ; m = m.Add(time.Minute) {
			onDay := in(days, m.Day()) && in(weekdays, int(m.Weekday()))
			if days != nil && weekdays != nil {
				onDay = in(days, m.Day()) || in(weekdays, int(m.Weekday()))
			}
			if onDay && in(hours, m.Hour()) && in(minutes, m.Minute()) {
				require.Equal(t, m, next.UTC())
				return
			}
		}
	})
}

func FuzzCron(f *testing.F) {
	for _, seed := range []string{"*/5 1-3,23 * jan-mar mon", "@daily", "0 0 29 2 *", "* * * * * 7", "9-5 * * * *"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		timetable, err := schedule.Cron(text, "Europe/Berlin")
		if err != nil {
			require.ErrorIs(t, err, schedule.ErrInvalid)
			return
		}
		now := utc("2030-03-30 00:00:00")
		next := timetable.Next(now)
		require.True(t, next.After(now), "%v", next)
		require.True(t, timetable.Next(next).After(next))
		require.Equal(t, next, timetable.Next(next.Add(-time.Second)))
	})
}
