package limit

import (
	"math"
	"slices"
	"time"
)

// State is what one limit remembers: plain data with a short binary form. The zero value is a limit that was not used
// yet. It is not safe for concurrent use, and belongs to one limit: the methods of [Limit] read and change it.
//
// A state is used with one clock, which gives the argument now of these methods: nanoseconds since any fixed moment,
// never negative, such as a monotonic clock in process, or the time of a database (time.Time.UnixNano) for a row that
// processes share. Where that clock goes back, the state moves with it, as if no time had passed; so a clock that is
// set back by hours neither admits too much nor holds anything up.
type State struct {
	at   int64   // paced: last change; fixed: start of the window; sliding: start of the last entry; breaker: of the phase
	used int64   // slots: held; paced: when all is worked off; windows: admitted; breaker: open until, 0 if closed
	back int64   // rates: the sum of what moved the state back in time; breaker: probes that have no result yet
	log  []entry // sliding: what was admitted; breaker: results
}

// entry is an amount at a time. In the log of a breaker a negative amount counts failures.
type entry struct{ at, n int64 }

// Grant says what an acquisition took of one limit. What it took is settled with it later: Commit corrects the amount,
// Give ends the acquisition. It is plain data, so that it can be stored with the lease of a slot.
type Grant struct {
	N    int64 `json:"n"`    // how much is charged: what was taken, or the latest Commit
	Mark int64 `json:"mark"` // where it is in the time of the state
}

// settled is the mark of a grant that has a debt.
const settled = math.MinInt64

// Unknown is how long it takes until a limit can admit something that no passing of time lets it admit: slots that are
// to be given back, a probe that has no result, a limit that is paused.
const Unknown time.Duration = math.MaxInt64

// Wait returns how long it takes until the limit can admit n, if nothing else is admitted meanwhile: 0 if it can now,
// [Unknown] if time alone is not enough. n of 0 or less is admitted at once. More than [Limit.Capacity] is never
// admitted; callers refuse it before. Wait changes the state only if the clock has gone back since; a stored state has to
// be stored then.
func (l Limit) Wait(s *State, now, n int64) time.Duration {
	if n <= 0 {
		return 0
	}
	l.rewind(s, now)
	if l.N <= 0 || l.Algorithm != CircuitBreaker && n > l.N {
		return Unknown
	}
	switch l.Algorithm {
	case Slots:
		if s.used > l.N-n {
			return Unknown
		}
		return 0
	case FixedWindow:
		return l.waitFixed(s, now, n)
	case SlidingWindow:
		return l.waitSliding(s, now, n)
	case CircuitBreaker:
		return l.waitBreaker(s, now)
	}
	return l.waitPaced(s, now, n)
}

// Take admits n, and returns what Commit and Give need. It does not ask whether there is room: call Wait first, and
// Take only if that returned 0, within one lock or transaction.
func (l Limit) Take(s *State, now, n int64) Grant {
	l.rewind(s, now)
	g := Grant{N: n, Mark: now + s.back}
	switch l.Algorithm {
	case Slots:
		s.used += n
	case FixedWindow:
		l.takeFixed(s, now, n)
	case SlidingWindow:
		l.takeSliding(s, now, n)
	case CircuitBreaker:
		g.Mark = now
		l.takeBreaker(s, now)
	default:
		g.Mark = l.takePaced(s, now, n)
	}
	return g
}

// rewind moves a state to a clock that has gone back.
func (l Limit) rewind(s *State, now int64) {
	last := s.at
	if n := len(s.log); n > 0 {
		last = max(last, s.log[n-1].at)
	}
	by := last - now
	if by <= 0 || l.Algorithm == Slots {
		return
	}
	s.at -= by
	for i := range s.log {
		s.log[i].at -= by
	}
	switch {
	case l.paced():
		s.used, s.back = s.used-by, s.back+by
	case l.Algorithm != CircuitBreaker:
		s.back += by
	case s.used != 0:
		s.used = max(1, s.used-by)
	}
}

// Commit corrects what a grant took of a rate to what was used. What was not used is given back as far as it has not
// been worked off by time; what was used beyond is charged now, as a debt, even if there is no room for it. It may be
// called again with a larger amount in all; after a debt nothing is given back any more. Slots and breakers do not
// change.
func (l Limit) Commit(s *State, g *Grant, now, used int64) {
	if l.Algorithm == Slots || l.Algorithm == CircuitBreaker {
		return
	}
	l.rewind(s, now)
	used = max(0, min(used, maxN))
	unused := g.N - used
	if unused > 0 && g.Mark == settled {
		return
	}
	g.N = used
	switch {
	case unused == 0:
	case unused < 0:
		l.Take(s, now, -unused)
		g.Mark = settled
	case l.Algorithm == FixedWindow:
		l.refundFixed(s, g.Mark, now, unused)
	case l.Algorithm == SlidingWindow:
		l.refundSliding(s, g.Mark, now, unused)
	default:
		l.refundPaced(s, g, now, unused)
	}
}

// Give ends the acquisition of a grant: slots are free again, and a breaker learns whether what was done failed. Rates do
// not change.
func (l Limit) Give(s *State, g Grant, now int64, failed bool) {
	switch l.Algorithm {
	case Slots:
		s.used = max(0, s.used-g.N)
	case CircuitBreaker:
		l.rewind(s, now)
		l.report(s, g.Mark, now, failed)
	}
}

// Undo takes an acquisition back that nothing was done with: what was taken of a rate is free again, as far as time has not
// worked it off, and a breaker learns nothing.
func (l Limit) Undo(s *State, g Grant, now int64) {
	switch l.Algorithm {
	case Slots:
		l.Give(s, g, now, false)
	case CircuitBreaker:
		if l.rewind(s, now); s.used != 0 && g.Mark >= s.used {
			s.back = max(0, s.back-1)
		}
	default:
		l.Commit(s, &g, now, 0)
	}
}

// Clone returns a state of its own that says the same.
func (s State) Clone() State {
	s.log = slices.Clone(s.log)
	return s
}

// Idle reports whether the state says no more than the zero State does: nothing is held, and all that was admitted has
// been worked off. Such a state can be forgotten.
func (l Limit) Idle(s *State, now int64) bool {
	l.rewind(s, now)
	switch l.Algorithm {
	case Slots:
		return s.used == 0
	case FixedWindow:
		_, used := l.window(s, now)
		return used == 0
	case SlidingWindow:
		return len(s.log) == 0 || s.log[len(s.log)-1].at+int64(l.Per) <= now
	case CircuitBreaker:
		return s.used == 0 && s.back == 0 && (len(s.log) == 0 || s.log[len(s.log)-1].at+int64(l.Per) <= now)
	}
	return s.used <= now
}

// Used returns how much of N is taken now: slots that are held, or what was admitted and is not worked off. A breaker
// returns its probes that have no result.
func (l Limit) Used(s *State, now int64) int64 {
	l.rewind(s, now)
	switch l.Algorithm {
	case Slots:
		return s.used
	case FixedWindow:
		_, used := l.window(s, now)
		return used
	case SlidingWindow:
		used, _ := l.live(s, now)
		return used
	case CircuitBreaker:
		return s.back
	}
	_, step := l.pace()
	if step == 0 {
		return 0
	}
	return (max(0, s.used-now) + step - 1) / step
}

// Capacity is the largest amount that can be admitted at once: N, and 1 for a breaker.
func (l Limit) Capacity() int64 {
	if l.Algorithm == CircuitBreaker {
		return 1
	}
	return l.N
}

// AnyWindow is the most that any window of the length Per can see, if the largest amount that is taken at once is most:
// the times of what is admitted in [t, t+Per), whatever t is. Debts of Commit are not counted. It is 0 for slots and
// breakers, which are no rates.
func (l Limit) AnyWindow(most int64) int64 {
	if l.N <= 0 {
		return 0
	}
	switch l.Algorithm {
	case SlidingWindow:
		return l.N
	case FixedWindow:
		if l.N == 1 {
			return 1
		}
		return 2 * l.N // the amount that begins a window may be given back, and the window goes on
	case Slots, CircuitBreaker:
		return 0
	}
	burst, _ := l.pace()
	per := l.N // TokenBucket and LeakyBucket: what is worked off in a window
	if l.Algorithm == GCRA {
		per = l.N - burst + 1
	}
	return max(0, burst+per-1+max(0, most-burst))
}
