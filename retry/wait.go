package retry

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// longest is the longest duration that there is, about 292 years. Every overflow ends there.
const longest = time.Duration(math.MaxInt64)

// Wait returns the wait after attempt n (1 for the first), without jitter: grown by the backoff and cut to MaxWait. An
// n below 1 counts as 1. The result is never negative, whatever the policy.
func (p Policy) Wait(n int) time.Duration { return p.limit(p.grow(max(n, 1))) }

func (p Policy) grow(n int) time.Duration {
	switch p.Backoff {
	case BackoffConstant:
		return p.Initial
	case BackoffLinear:
		return times(p.Initial, uint64(n))
	case BackoffFibonacci:
		return times(p.Initial, fibonacci(n))
	case BackoffTable:
		if len(p.Waits) == 0 {
			return 0
		}
		return p.Waits[min(n, len(p.Waits))-1]
	default:
		if n == 1 || p.Initial <= 0 { // exact, and 0 * infinity is not a number
			return p.Initial
		}
		return duration(float64(p.Initial) * math.Pow(p.base(), float64(n-1)))
	}
}

func (p Policy) base() float64 {
	if p.Base == 0 {
		return 2
	}
	return p.Base
}

// limit puts a wait between 0 and MaxWait.
func (p Policy) limit(d time.Duration) time.Duration {
	if p.MaxWait > 0 {
		d = min(d, p.MaxWait)
	}
	return max(d, 0)
}

// spread lets chance change a wait, as the jitter says. The comparisons with d matter for waits of months and more,
// where a float64 no longer distinguishes one nanosecond from the next.
func (p Policy) spread(d time.Duration) time.Duration {
	w := float64(d)
	switch p.Jitter {
	case JitterFull:
		return min(d, duration(w*p.chance()))
	case JitterEqual:
		return min(d, d/2+duration(w/2*p.chance()))
	case JitterProportional:
		return p.limit(duration(w * (1 - p.Spread + 2*p.Spread*p.chance())))
	}
	return d
}

// chance draws a number from 0 to 1. An injected source that leaves this range, or returns no number, counts as its
// nearest end, since a wait computed from it may be negative.
func (p Policy) chance() float64 {
	x := p.draw()
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// draw asks the injected source. The engine asks for a wait while it handles a command, where a panic would end the process.
func (p Policy) draw() (x float64) {
	if p.Rand == nil {
		return rand.Float64()
	}
	defer func() {
		if recover() != nil {
			x = rand.Float64()
		}
	}()
	return p.Rand()
}

// duration is the nearest duration to so many nanoseconds: what is too long is the longest, and so is what isn't a
// number, since waiting too long does less harm than a loop without a wait.
func duration(ns float64) time.Duration {
	if !(ns < math.MaxInt64) {
		return longest
	}
	return time.Duration(max(ns, 0))
}

// times multiplies without wrapping around. A negative duration counts as 0.
func times(d time.Duration, n uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(max(d, 0)), n)
	if hi != 0 || lo > uint64(longest) {
		return longest
	}
	return time.Duration(lo)
}

// fibonacci returns the n-th Fibonacci number (1, 1, 2, 3, 5, ...), or the largest uint64 from the 94th on, which
// doesn't fit.
func fibonacci(n int) uint64 {
	if n > 93 {
		return math.MaxUint64
	}
	a, b := uint64(0), uint64(1)
	for range n {
		a, b = b, a+b
	}
	return a
}
