package scenario_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/scenario"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0":              0,
		"0s":             0,
		"5s":             5 * time.Second,
		"1.5h":           90 * time.Minute,
		"1h30m":          90 * time.Minute,
		"250ms":          250 * time.Millisecond,
		"2d":             48 * time.Hour,
		"1d12h":          36 * time.Hour,
		"0d":             0,
		"106751d":        106751 * 24 * time.Hour,
		"106751d23h47m":  106751*24*time.Hour + 23*time.Hour + 47*time.Minute,
		"36500d":         36500 * 24 * time.Hour, // a hundred years
		"2562047h47m16s": math.MaxInt64 / time.Second * time.Second,
	} {
		got, err := scenario.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseDurationRefuses(t *testing.T) {
	for _, text := range []string{
		"", "5", "s", "d", "-5s", "+5s", "1.5d", "1d-5s", "1d5", "1dd", "1h2d", "5 s", "1d 2h", "١s",
		"9223372036854775808ns", "99999999999999999999d",
	} {
		_, err := scenario.ParseDuration(text)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), "is not a duration; expected one like 5s, 1h30m or 2d")
	}
	for _, text := range []string{"106752d", "106751d24h", "106751d2562047h"} {
		_, err := scenario.ParseDuration(text)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), "is too long a duration; the longest has 106751 days")
	}
	_, err := scenario.ParseDuration(strings.Repeat("1", 1_000_000) + "d")
	require.Less(t, len(err.Error()), 200)
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s":     0,
		"5s":     5 * time.Second,
		"10m":    10 * time.Minute,
		"1h":     time.Hour,
		"10h":    10 * time.Hour,
		"1h30m":  90 * time.Minute,
		"1h0m5s": time.Hour + 5*time.Second,
		"48h":    48 * time.Hour,
		"1.5s":   1500 * time.Millisecond,
		"30ms":   30 * time.Millisecond,
	} {
		require.Equal(t, want, scenario.FormatDuration(d))
	}
}

func TestFormatDurationReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		d := time.Duration(rapid.Int64Range(0, int64(math.MaxInt64/unit)).Draw(t, "n")) * unit
		back, err := scenario.ParseDuration(scenario.FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, back)
	})
}
