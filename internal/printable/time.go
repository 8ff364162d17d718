package printable

import (
	"fmt"
	"time"
)

// Duration writes how long something took or has lasted, in two units at most: "0s", "42s", "1m30s", "5m",
// "3h20m", "4d".
func Duration(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	days := int(d / (24 * time.Hour))
	h, m, sec := int(d/time.Hour)%24, int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%s%ds", sign, sec)
	case d < time.Hour && sec > 0:
		return fmt.Sprintf("%s%dm%ds", sign, m, sec)
	case d < time.Hour:
		return fmt.Sprintf("%s%dm", sign, m)
	case days == 0 && m == 0:
		return fmt.Sprintf("%s%dh", sign, h)
	case days == 0:
		return fmt.Sprintf("%s%dh%dm", sign, h, m)
	case days < 10 && h > 0:
		return fmt.Sprintf("%s%dd%dh", sign, days, h)
	}
	return fmt.Sprintf("%s%dd", sign, days)
}

// Never is the due time of what waits for no time, such as the case of a paused schedule.
var Never = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// NoTime is what [Never] is called where a time is expected.
const NoTime = "no time"

// Until writes in how much time a moment comes, as [Duration].
func Until(t, now time.Time) string {
	if t.Equal(Never) {
		return NoTime
	}
	return Duration(t.Sub(now))
}

// Time writes a time for people, in UTC to the second; "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// Took writes how long something took, exactly where it was short: "0ms", "12ms", "1.4s"; from ten seconds on as [Duration].
func Took(d time.Duration) string {
	switch {
	case d < 0 || d >= 10*time.Second:
		return Duration(d)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
}
