package limit

import (
	"math/bits"
	"time"
)

// The three paced algorithms keep one time, s.used: when all that was admitted is worked off, at a step of time for each
// unit. That is the theoretical arrival time of GCRA, and at the same time the level of a bucket. They differ in how far
// that time may lie ahead when something is admitted (the burst), and in the length of a step:
//
//	           burst        step
//	token      N            Per/N
//	leaky      1            Per/N
//	gcra       N/20 + 1     Per/(N - burst + 1)
//
// In a window of the length Per, which does not contain its end, at most burst + ceil(Per/step) - 1 units are admitted
// one by one: 2N-1, N, and N. An amount above the burst is admitted when all else is worked off, and adds what it is
// above the burst.

// pace returns how many units may be admitted at once, and the time for each. The step is rounded up, so the bounds hold.
func (l *Limit) pace() (burst, step int64) {
	n, per := l.N, int64(l.Per)
	if n <= 0 {
		return 0, 0
	}
	switch l.Algorithm {
	case TokenBucket:
		burst = n
	case GCRA:
		burst = n/20 + 1
		n = n - burst + 1
	default:
		burst = 1
	}
	return burst, (per + n - 1) / n
}

// span is the time for n units; it does not overflow.
func span(n, step int64) int64 {
	high, low := bits.Mul64(uint64(n), uint64(step))
	const most = 1 << 61
	if high != 0 || low > most {
		return most
	}
	return int64(low)
}

func (l *Limit) waitPaced(s *State, now, n int64) time.Duration {
	burst, step := l.pace()
	ahead := max(0, s.used-now)
	return time.Duration(max(0, ahead+span(min(n, burst), step)-span(burst, step)))
}

func (l *Limit) takePaced(s *State, now, n int64) int64 {
	_, step := l.pace()
	s.used = min(max(s.used, now)+span(n, step), 1<<62)
	s.at = now
	return s.used + s.back
}

// refundPaced gives back units whose time has not come yet. The grant is worked off at g.Mark, less what was refunded
// since to any grant: so what comes back is never more than if only what was used had been taken, and the bound of a
// window holds for what was used. The order of grants and refunds may make it less.
func (l *Limit) refundPaced(s *State, g *Grant, now, unused int64) {
	_, step := l.pace()
	end := max(s.used, now)
	left := max(0, min(g.Mark-s.back, end)-now)
	refund := min(span(unused, step), left)
	s.used, s.at = end-refund, now
	s.back += refund
}
