package limit

import (
	"slices"
	"sort"
	"time"
)

// window returns the start of the fixed window that now lies in, and what is used of it. A debt is carried from window to
// window, N at a time.
func (l *Limit) window(s *State, now int64) (start, used int64) {
	if s.used == 0 {
		return now, 0
	}
	passed := (now - s.at) / int64(l.Per)
	used = max(0, s.used-span(passed, l.N))
	if used == 0 && passed > 0 {
		return now, 0
	}
	return s.at + passed*int64(l.Per), used
}

func (l *Limit) waitFixed(s *State, now, n int64) time.Duration {
	start, used := l.window(s, now)
	over := used + n - l.N
	if over <= 0 {
		return 0
	}
	windows := (over + l.N - 1) / l.N
	return time.Duration(min(start+span(windows, int64(l.Per))-now, 1<<61))
}

func (l *Limit) takeFixed(s *State, now, n int64) {
	s.at, s.used = l.window(s, now)
	s.used += n
}

// refundFixed gives back what was taken in the window that continues.
func (l *Limit) refundFixed(s *State, mark, now, unused int64) {
	s.at, s.used = l.window(s, now)
	if mark-s.back >= s.at {
		s.used = max(0, s.used-unused)
	}
}

// The log of a sliding window has an entry for each acquisition. From the exact-th entry on, those that begin within the
// same small part of the window become one, with the time of the latest. So the log has at most exact + parts entries, and
// what leaves the window leaves it at most Per/parts too late, and never too early.
const (
	exact = 32
	parts = 64
)

// live returns what is used of a sliding window, and how many of the first entries have left it.
func (l *Limit) live(s *State, now int64) (used int64, gone int) {
	used = s.used
	for _, e := range s.log {
		if e.at+int64(l.Per) > now {
			break
		}
		used -= e.n
		gone++
	}
	return used, gone
}

func (l *Limit) waitSliding(s *State, now, n int64) time.Duration {
	used, gone := l.live(s, now)
	if used <= l.N-n {
		return 0
	}
	for _, e := range s.log[gone:] {
		if used -= e.n; used <= l.N-n {
			return time.Duration(e.at + int64(l.Per) - now)
		}
	}
	return Unknown // unreachable: an empty window has room for N
}

func (l *Limit) takeSliding(s *State, now, n int64) {
	used, gone := l.live(s, now)
	s.log, s.used = slices.Delete(s.log, 0, gone), used+n
	if last := len(s.log) - 1; last >= 0 {
		e := &s.log[last]
		if e.n == 0 {
			s.at = now
		}
		if e.at == now || e.n == 0 || last >= exact && now-s.at < int64(l.Per)/parts {
			e.at, e.n = now, e.n+n
			return
		}
	}
	s.at = now
	if len(s.log) == cap(s.log) {
		s.log = l.grow(s.log)
	}
	s.log = append(s.log, entry{now, n})
}

// grow returns a log with room for another entry, and at most for as many as the window admits: there may be one for each of
// many keys. Only debts need more.
func (l *Limit) grow(log []entry) []entry {
	most := int(min(l.N, exact+parts))
	grown := make([]entry, len(log), max(len(log)+1, min(2*len(log)+1, most)))
	copy(grown, log)
	return grown
}

// refundSliding takes an amount out of the entry that it was counted in, if that is still there.
func (l *Limit) refundSliding(s *State, mark, now, unused int64) {
	taken := mark - s.back
	i := sort.Search(len(s.log), func(i int) bool { return s.log[i].at >= taken })
	if i == len(s.log) || taken+int64(l.Per) <= now {
		return
	}
	unused = min(unused, s.log[i].n)
	s.log[i].n -= unused
	s.used -= unused
	if s.log[i].n == 0 && i < len(s.log)-1 { // the last one is taken up by what comes next
		s.log = slices.Delete(s.log, i, i+1)
	}
}
