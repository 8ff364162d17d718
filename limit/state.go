package limit

import (
	"math"
	"slices"
	"time"
)

// State is the state of one limit: plain data with a short binary encoding. The zero value is the state of an unused
// limit. It is read and changed by the methods of its [Limit], and is not safe for concurrent use.
//
// All calls for a state must use the same clock for their argument now: nanoseconds since any fixed moment, never
// negative, such as a monotonic clock for a state in memory, or the clock of the database (time.Time.UnixNano) for a
// row that processes share. If that clock is set back, the state is adjusted as if no time had passed, so that
// neither too much is admitted nor anything is blocked for hours.
type State struct {
	at   int64   // paced: last change; fixed: start of the window; sliding: start of the last entry; breaker: of the phase
	used int64   // slots: held; paced: when all is worked off; windows: admitted; breaker: open until, 0 if closed
	back int64   // rates: the sum of what moved the state back in time; breaker: probes that have no result yet
	log  []entry // sliding: what was admitted; breaker: results
}

// entry is an amount at a time. In the log of a breaker a negative amount counts failures.
type entry struct{ at, n int64 }

// Grant records what an acquisition took of one limit, for Commit, which corrects the amount, and Give, which ends the
// acquisition. It is plain data, so it can be stored with the work.
type Grant struct {
	N    int64 `json:"n"`    // how much is charged: what was acquired, or the amount of the latest Commit
	Mark int64 `json:"mark"` // when it was acquired, in the units of the state
}

// settled is the mark of a grant that has a debt.
const settled = math.MinInt64

// Unknown is the wait of an acquisition that time alone does not admit: slots have to be released, the result of a
// probe is pending, or the limit is paused.
const Unknown time.Duration = math.MaxInt64

// Wait returns how long it takes until the limit can admit n, if nothing else is admitted in the meantime: 0 if it can
// now, Unknown if time alone is not enough. n of 0 or less is admitted at once. Callers must reject more than
// [Limit.Capacity], which is never admitted. Wait changes the state only if the clock was set back; a persistent state
// must be saved then.
func (l Limit) Wait(s *State, now, n int64) time.Duration { return l.wait(s, now, n) }

// wait is Wait without a copy of the definition.
func (l *Limit) wait(s *State, now, n int64) time.Duration {
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

// Take acquires n, and returns the grant for Commit and Give. It does not check the limit: call Wait first, and
// Take only if that returned 0, within one lock or transaction.
func (l Limit) Take(s *State, now, n int64) Grant { return l.take(s, now, n) }

// take is Take without a copy of the definition.
func (l *Limit) take(s *State, now, n int64) Grant {
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
func (l *Limit) rewind(s *State, now int64) {
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

// Commit corrects the amount of a grant of a rate to what was used. The unused part is refunded, if it still counts;
// usage beyond the amount is charged now, as a debt, even if it exceeds the limit. It may be called again with a
// larger total; after a debt nothing is refunded any more. Slots and breakers do not change.
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

// Give ends the acquisition of a grant: it releases slots, and reports to a breaker whether the work failed. Rates do not
// change.
func (l Limit) Give(s *State, g Grant, now int64, failed bool) { l.give(s, g, now, failed) }

// give is Give without a copy of the definition.
func (l *Limit) give(s *State, g Grant, now int64, failed bool) {
	switch l.Algorithm {
	case Slots:
		s.used = max(0, s.used-g.N)
	case CircuitBreaker:
		l.rewind(s, now)
		l.report(s, g.Mark, now, failed)
	}
}

// Undo cancels an acquisition that was not used: the amount of a rate is refunded, if it still counts, and nothing is
// reported to a breaker.
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

// Clone returns a copy that shares nothing with s.
func (s State) Clone() State {
	s.log = slices.Clone(s.log)
	return s
}

// Idle reports whether the state is equivalent to the zero State: nothing is held, and nothing that was admitted still
// counts. Such a state can be dropped.
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

// Used returns how much of N is in use now: slots that are held, or the admitted amount that still counts. For a
// breaker it is the number of probes without a result.
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

// Capacity returns the largest amount of an acquisition: N, and 1 for a breaker.
func (l Limit) Capacity() int64 {
	if l.Algorithm == CircuitBreaker {
		return 1
	}
	return l.N
}

// AnyWindow returns the largest amount that is admitted in any window [t, t+Per), if no acquisition takes more than
// most. Debts of Commit are not included. It is 0 for slots and breakers.
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
		return 2 * l.N // the amount that begins a window may be given back, and the window continues
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
