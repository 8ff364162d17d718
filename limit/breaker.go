package limit

import "time"

// A breaker is in one of three phases. Closed (used is 0) it counts results in a log of its latest time Per. Open (used is
// a time that has not come) it admits nothing. Half open (that time has come) it admits N probes at a time, of which back
// have no result yet, and counts those that succeeded in the log. at is when the phase changed: results of what was
// admitted before it are not counted.

// slices of the time Per in which results of one kind become one entry of the log.
const breakerParts = 10

func (l *Limit) waitBreaker(s *State, now int64) time.Duration {
	switch {
	case s.used == 0:
		return 0
	case now < s.used:
		return time.Duration(s.used - now)
	case s.back >= l.N:
		return Unknown
	}
	return 0
}

func (l *Limit) takeBreaker(s *State, now int64) {
	if s.used != 0 && now >= s.used {
		s.back++
	}
}

// report counts the result of what was admitted at a time.
func (l *Limit) report(s *State, admitted, now int64, failed bool) {
	switch {
	case s.used == 0:
		if admitted < s.at {
			return
		}
		l.count(s, now, failed)
		if l.tripped(s) {
			l.open(s, now)
		}
	case admitted >= s.used:
		s.back = max(0, s.back-1)
		if failed {
			l.open(s, now)
			return
		}
		if l.count(s, now, false); s.succeeded() >= l.N {
			*s = State{at: now}
		}
	}
}

// open starts the pause. Probes that are still running were admitted before it, and do not count.
func (l *Limit) open(s *State, now int64) {
	*s = State{at: now, used: now + int64(l.Pause)}
}

// count appends a result to the log, and drops those that are too old.
func (l *Limit) count(s *State, now int64, failed bool) {
	old := 0
	for old < len(s.log) && s.log[old].at+int64(l.Per) <= now {
		old++
	}
	s.log = append(s.log[:0], s.log[old:]...)
	one := int64(1)
	if failed {
		one = -1
	}
	part := int64(l.Per) / breakerParts
	for i := len(s.log) - 1; i >= 0 && i >= len(s.log)-2; i-- {
		if e := &s.log[i]; (e.n > 0) == !failed && now-e.at < part {
			e.n += one
			return
		}
	}
	s.log = append(s.log, entry{now, one})
}

// tripped reports whether enough results are failures.
func (l *Limit) tripped(s *State) bool {
	var good, bad int64
	for _, e := range s.log {
		good, bad = good+max(0, e.n), bad+max(0, -e.n)
	}
	return good+bad >= l.Least && float64(bad) >= l.Share*float64(good+bad)
}

// succeeded counts the results of a half-open breaker, which are all good.
func (s *State) succeeded() (n int64) {
	for _, e := range s.log {
		n += e.n
	}
	return n
}
