package limit

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limit is the definition of a limit: plain data, which can be compared, stored and encoded as JSON. It holds no state;
// a [Set], [Keys] or a [State] does. Start from the result of a constructor, and set further fields.
type Limit struct {
	// Name identifies the limit within a set, in errors and in commands.
	Name string `json:"name"`

	// N is the number of slots, the amount that is admitted during Per, or the number of probes of a breaker. 0
	// pauses the limit: acquisitions wait until N is changed.
	N int64 `json:"n"`

	// Per is the length of a rate's window, and the time over which a breaker counts. 0 for slots.
	Per time.Duration `json:"per,omitempty"`

	// Algorithm is the algorithm of a rate, or Slots or CircuitBreaker for limits of these kinds.
	Algorithm Algorithm `json:"algorithm,omitempty"`

	// Each is the amount that an acquisition takes if it does not name the limit. With 0, every acquisition
	// has to name it.
	Each int64 `json:"each,omitempty"`

	// Share, Least and Pause are those of a breaker; see [Breaker]. 0 for other limits.
	Share float64       `json:"share,omitempty"`
	Least int64         `json:"least,omitempty"`
	Pause time.Duration `json:"pause,omitempty"`

	// InStore makes all processes with the same store share the limit, and keeps its state over restarts; see [Limit.Shared].
	// Otherwise each process has a limit of its own, in memory.
	InStore bool `json:"in_store,omitempty"`
}

// Shared returns the limit with InStore set: all processes with the same store share it, and its state survives restarts. It is
// for the functions of an engine, such as builder.Takes(limit.Calls(100, time.Minute).Shared(), 0), and for engine.Limits. A breaker cannot be shared.
func (l Limit) Shared() Limit {
	l.InStore = true
	return l
}

// Algorithm says how a limit counts. The zero value is SlidingWindow.
type Algorithm uint8

// The algorithms. The package comment has a table of what each of them admits.
const (
	SlidingWindow  Algorithm = iota // at most N in any window, and all N at once
	GCRA                            // at most N in any window, at an even pace, in bursts of N/20 + 1
	TokenBucket                     // N at once, refilled evenly
	LeakyBucket                     // one by one, at an even pace, never a burst
	FixedWindow                     // N from the first use on, and again after Per
	Slots                           // not a rate: N at a time, which are given back
	CircuitBreaker                  // not a rate: see Breaker
)

var algorithmNames = []string{
	"sliding-window", "gcra", "token-bucket", "leaky-bucket", "fixed-window", "slots", "circuit-breaker",
}

// String returns "sliding-window", "gcra", "token-bucket", "leaky-bucket", "fixed-window", "slots" or
// "circuit-breaker".
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// MarshalText returns the name that String returns.
func (a Algorithm) MarshalText() ([]byte, error) {
	if int(a) >= len(algorithmNames) {
		return nil, fmt.Errorf("%w: %v: use one of the constants", ErrInvalid, a)
	}
	return []byte(a.String()), nil
}

// UnmarshalText sets the algorithm by its name. Another text is an error that is [ErrInvalid].
func (a *Algorithm) UnmarshalText(text []byte) error {
	for i, name := range algorithmNames {
		if name == string(text) {
			*a = Algorithm(i)
			return nil
		}
	}
	return fmt.Errorf("%w: no algorithm is called %q: use one of %s", ErrInvalid, text, strings.Join(algorithmNames, ", "))
}

// Resource returns a limit with a number of slots, such as connections, files or concurrent calls. An acquisition
// takes one slot, or the amount that it names, and returns them when it is released.
func Resource(name string, capacity int64) Limit {
	return Limit{Name: name, N: capacity, Algorithm: Slots, Each: 1}
}

// Rate returns a limit of n during a time. Amounts are not released; they become available again as time passes.
// Each acquisition names its amount, such as the tokens of a model; set Each if that is always the same.
func Rate(name string, n int64, per time.Duration, algorithm Algorithm) Limit {
	return Limit{Name: name, N: n, Per: per, Algorithm: algorithm}
}

// Calls returns a limit of n acquisitions during a time, regardless of their amounts of other limits. It is a [Rate]
// with the name "calls" and a sliding window, of which each acquisition takes one. Set another Name where functions of an engine, or
// the limits of a set, have several such limits.
func Calls(n int64, per time.Duration) Limit {
	l := Rate("calls", n, per, SlidingWindow)
	l.Each = 1
	return l
}

// Breaker returns a circuit breaker. While closed, it admits everything. It opens if at least the given share (above
// 0, at most 1) of the results during the time over are failures, of ten results at least. While open, for the time
// pause, it admits nothing, and callers wait. Then it is half-open and admits one probe at a time: a probe that
// succeeds closes it, one that fails opens it again.
//
// The fields Least (the number of results, ten) and N (the number of concurrent probes, all of which have to
// succeed) can be changed. Failures are reported by Lease.Fail, and by [Do].
func Breaker(name string, share float64, over, pause time.Duration) Limit {
	return Limit{Name: name, N: 1, Per: over, Algorithm: CircuitBreaker, Each: 1, Share: share, Least: 10, Pause: pause}
}

// ErrInvalid is wrapped by every error about an invalid limit.
var ErrInvalid = errors.New("invalid limit")

// maxPer and maxN keep all sums of times and amounts far within 64 bits, and maxName, in bytes, the rows of a store within an index.
const (
	maxPer  = 366 * 24 * time.Hour
	maxN    = 1e15
	maxName = 200
)

// Validate returns all that is wrong with the limit as one error, which wraps ErrInvalid; nil if it is valid.
func (l Limit) Validate() error {
	var wrong []string
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	refuse(l.Name == "", "it has no name")
	refuse(len(l.Name) > maxName, "its name has %d bytes: use at most %d", len(l.Name), maxName)
	refuse(int(l.Algorithm) >= len(algorithmNames), "Algorithm is %v: use one of the constants", l.Algorithm)
	refuse(l.N < 0 || l.N > maxN, "N is %d: use 0 to pause, or up to %d", l.N, int64(maxN))
	refuse(l.Each < 0 || l.Each > l.N && l.N > 0, "Each is %d: use 0 to N, which is %d", l.Each, l.N)
	if l.Algorithm == Slots {
		refuse(l.Per != 0, "Per is %v: slots have none; use Rate for a limit over time", l.Per)
	} else {
		refuse(l.Per <= 0 || l.Per > maxPer, "Per is %v: use a time above 0 and up to %v", l.Per, maxPer)
	}
	if l.paced() && l.Per > 0 {
		refuse(l.N/int64(l.Per/20+1) > 0, "N is %d in %v: %v admits up to 50 a microsecond; count in larger units",
			l.N, l.Per, l.Algorithm)
	}
	refuse(l.InStore && l.Algorithm == CircuitBreaker, "a breaker counts in each process: leave InStore out")
	if l.Algorithm == CircuitBreaker {
		refuse(!(l.Share > 0 && l.Share <= 1), "Share is %v: use a share above 0 and up to 1", l.Share)
		refuse(l.Least < 1, "Least is %d: use at least 1 result", l.Least)
		refuse(l.Pause <= 0 || l.Pause > maxPer, "Pause is %v: use a time above 0 and up to %v", l.Pause, maxPer)
		refuse(l.Each != 1, "Each is %d: a breaker is asked once by each acquisition", l.Each)
	} else {
		refuse(l.Share != 0 || l.Least != 0 || l.Pause != 0,
			"Share, Least or Pause is set, which only a breaker uses: use Breaker, or leave them out")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w %q: %s", ErrInvalid, l.Name, strings.Join(wrong, "; "))
}

// paced reports whether the state is a time at which what was admitted is worked off.
func (l *Limit) paced() bool {
	return l.Algorithm == GCRA || l.Algorithm == TokenBucket || l.Algorithm == LeakyBucket
}

// String describes the limit on one line: "5 slots of db", "60 of rate openai in 1m0s (gcra)", "breaker openai: open for
// 30s at 50% failures in 1m0s".
func (l Limit) String() string {
	switch l.Algorithm {
	case Slots:
		return fmt.Sprintf("%d slots of %s", l.N, l.Name)
	case CircuitBreaker:
		return fmt.Sprintf("breaker %s: open for %v at %g%% failures in %v", l.Name, l.Pause, 100*l.Share, l.Per)
	}
	return fmt.Sprintf("%d of rate %s in %v (%v)", l.N, l.Name, l.Per, l.Algorithm)
}

// kind is how the limit is called in messages, behind an amount: "3 of rate openai".
func (l Limit) kind() string {
	switch l.Algorithm {
	case Slots:
		return "slots"
	case CircuitBreaker:
		return "breaker"
	}
	return "rate"
}
