package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/schedule"
)

// The least and the greatest values that are valid, and those next to them.
func TestBoundsOfExpressions(t *testing.T) {
	for expr, valid := range map[string]bool{
		"*/1 * * * *": true, "*/59 * * * *": true, "*/0 * * * *": false, "*/60 * * * *": false,
		"0-59 * * * *": true, "0-60 * * * *": false,
	} {
		_, err := schedule.Schedule{Name: "x", Cron: expr}.Compile()
		require.Equal(t, valid, err == nil, expr)
	}
	week := func(days string) (all []string) {
		s := compile(t, schedule.Schedule{Name: "x", Cron: "0 0 * * " + days})
		for tick := range s.Between(utc("2030-01-06 00:00:00"), utc("2030-01-13 00:00:00")) { // from a Sunday
			all = append(all, tick.Weekday().String()[:3])
		}
		return all
	}
	require.Equal(t, []string{"Sun"}, week("0-0"))
	require.Equal(t, []string{"Sun"}, week("7"))
	require.Equal(t, []string{"Sun", "Fri", "Sat"}, week("fri-sun"))
}

// Names of policies, and numbers that have none.
func TestNamesOfPolicies(t *testing.T) {
	for c, name := range []string{"none", "last", "all"} {
		require.Equal(t, name, schedule.CatchUp(c).String())
		var read schedule.CatchUp
		require.NoError(t, read.UnmarshalText([]byte(name)))
		require.Equal(t, schedule.CatchUp(c), read)
	}
	require.Equal(t, "catch-up(3)", schedule.CatchUp(3).String())
	_, err := schedule.CatchUp(3).MarshalText()
	require.ErrorIs(t, err, schedule.ErrInvalid)
	for o, name := range []string{"skip", "queue", "cancel", "allow"} {
		require.Equal(t, name, fmt.Sprint(schedule.Overlap(o)))
	}
	require.Equal(t, "overlap(4)", schedule.Overlap(4).String())
	for _, s := range []schedule.Schedule{{Overlap: 4}, {CatchUp: 3}} {
		s.Name, s.Every = "x", time.Second
		_, err := s.Compile()
		require.ErrorIs(t, err, schedule.ErrInvalid)
		s.Overlap, s.CatchUp = 0, 0
		_, err = s.Compile()
		require.NoError(t, err, "each second is the most often")
	}
}

// A tick is on time within the grace after its start, which the jitter delays.
func TestGraceCountsFromTheDelayedStart(t *testing.T) {
	s := compile(t, schedule.Schedule{Name: "x", Cron: "@hourly", Jitter: 30 * time.Minute})
	last := utc("2030-01-01 00:00:00")
	tick := s.Next(last)
	begin := s.Begin(tick)
	require.Greater(t, begin.Sub(tick), schedule.DefaultGrace, "the test needs a start that is delayed by more than the grace")
	require.Empty(t, s.Due(last, begin.Add(-1)).Ticks)
	require.True(t, slices.EqualFunc([]time.Time{tick}, s.Due(last, begin.Add(schedule.DefaultGrace)).Ticks, time.Time.Equal))
	require.Empty(t, s.Due(last, begin.Add(schedule.DefaultGrace+1)).Ticks)
}

func TestMinutesOfWindows(t *testing.T) {
	_, err := schedule.ParseWindow("08:59-09:00", "Europe/Berlin")
	require.NoError(t, err)
	_, err = schedule.ParseWindow("08:60-09:30", "Europe/Berlin")
	require.ErrorIs(t, err, schedule.ErrInvalid)
	w := schedule.MustParseWindow("mon-fri 08:00-18:00", "Europe/Berlin")
	require.Equal(t, "Europe/Berlin", w.Location().String())
	require.Equal(t, "mon-fri 08:00-18:00", w.Text())
	require.Equal(t, time.UTC, schedule.Window{}.Location())
	require.Equal(t, "always", schedule.Window{}.Text())
}
