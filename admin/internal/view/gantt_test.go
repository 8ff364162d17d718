package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever the length of a case, the axis has a few marks at round times, and no two alike.
func TestTheMarksOfTheChartAreRoundAndDiffer(t *testing.T) {
	const day = 24 * time.Hour
	for whole, want := range map[time.Duration][]string{
		time.Millisecond:           {"0s", "200µs", "400µs", "600µs", "800µs", "1ms"},
		1700 * time.Millisecond:    {"0s", "500ms", "1s", "1.5s"},
		time.Minute:                {"0s", "10s", "20s", "30s", "40s", "50s", "1m"},
		71*time.Hour + time.Minute: {"0s", "12h", "1d", "1d12h", "2d", "2d12h"},
		400 * day:                  {"0s", "100d", "200d", "300d", "400d"},
	} {
		var got []string
		for at := time.Duration(0); at <= whole; at += stepOf(whole) {
			got = append(got, axisTime(at))
		}
		require.Equal(t, want, got, whole)
	}
	for whole := time.Millisecond; whole < 250*365*day; whole += whole/7 + 1 {
		step := stepOf(whole)
		require.LessOrEqual(t, whole/step, time.Duration(6), whole)
		require.GreaterOrEqual(t, whole/step, time.Duration(2), whole)
		seen := make(map[string]bool)
		for at := time.Duration(0); at <= whole; at += step {
			require.False(t, seen[axisTime(at)], "%s: %s", whole, axisTime(at))
			seen[axisTime(at)] = true
		}
	}
}
