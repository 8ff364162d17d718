package scenario

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ParseDuration parses a duration as Go writes it ("1s", "1h30m"), or one that begins with days ("2d", "1d12h"). It is
// never negative. The error is a [*SyntaxError] without a position, also for a value that exceeds 64 bits.
func ParseDuration(s string) (time.Duration, error) {
	bad := func() error { return syntaxf("%s is not a duration; expected one like 5s, 1h30m or 2d", quote(s)) }
	if !startsWithDigit(s) {
		return 0, bad()
	}
	var sum time.Duration
	rest := s
	if days, after, ok := strings.Cut(s, "d"); ok {
		n, ok := parseNumber(days)
		if !ok || after != "" && !startsWithDigit(after) {
			return 0, bad()
		}
		if n > int(math.MaxInt64/day) {
			return 0, syntaxf("%s is too long a duration; the longest has %d days", quote(s), math.MaxInt64/day)
		}
		sum, rest = time.Duration(n)*day, after
	}
	if rest == "" {
		return sum, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, bad()
	}
	if d > math.MaxInt64-sum {
		return 0, syntaxf("%s is too long a duration; the longest has %d days", quote(s), math.MaxInt64/day)
	}
	return sum + d, nil
}

// FormatDuration returns the shortest form that Go can parse: "1h30m" and not "1h30m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// parseNumber parses digits only: no sign, no underscore. It rejects a number that exceeds an int.
func parseNumber(s string) (int, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
