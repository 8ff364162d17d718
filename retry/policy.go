package retry

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Policy says how often, when and after which errors work is retried. Use a literal, or start from the result of a
// constructor and set further fields:
//
//	p := retry.Exponential(5, time.Second)
//	p.MaxWait = time.Minute
//	p.Jitter = retry.JitterFull
//
// The zero value is one attempt and no retry. A policy is a value and is never changed by its methods; it is safe for
// concurrent use if Rand and the filters are.
type Policy struct {
	// Attempts is the number of attempts in all, the first included. Default: 1, which is no retry.
	Attempts int

	// Backoff is how the waits grow. Default: BackoffExponential.
	Backoff Backoff

	// Initial is the wait after the first attempt; the other waits are multiples of it. BackoffTable does not use
	// it. Default: 0, which retries at once.
	Initial time.Duration

	// Base is the factor between one wait and the next of BackoffExponential; at least 1. Default: 2.
	Base float64

	// Waits is the table of BackoffTable: the wait after attempt 1, 2, and so on. Later attempts repeat the last entry.
	// Default: none.
	Waits []time.Duration

	// MaxWait is the longest single wait, jitter included. The delay of [After] isn't cut. Default: 0, which is no
	// limit.
	MaxWait time.Duration

	// MaxElapsed limits the time from the start of the first attempt to the start of the last one. If a wait would
	// exceed it, the work fails at once. It does not interrupt a running attempt; use a context for that. Default:
	// 0, which is no limit.
	MaxElapsed time.Duration

	// Jitter is how the waits are randomized. Default: JitterNone.
	Jitter Jitter

	// Spread is the share of the wait by which JitterProportional may shorten or lengthen it; above 0, at most 1.
	// Default: 0, which only the other jitters accept.
	Spread float64

	// Rand is the source of random numbers in [0, 1). One that panics is replaced by the default. Default:
	// math/rand/v2.Float64.
	Rand func() float64

	// Filters select the errors that are retried: those that any filter accepts. Default: none, which retries every
	// error that is not marked with [Permanent].
	Filters []Filter
}

// Backoff is how the waits of a policy grow with the number of attempts.
type Backoff uint8

// The backoffs, with the wait after attempt n. The zero value is the exponential one.
const (
	BackoffExponential Backoff = iota // Initial * Base^(n-1)
	BackoffConstant                   // Initial
	BackoffLinear                     // Initial * n
	BackoffFibonacci                  // Initial * fib(n), with fib = 1, 1, 2, 3, 5, ...
	BackoffTable                      // Waits[n-1]
)

// The names of the constants.
var (
	backoffs = []string{"exponential", "constant", "linear", "fibonacci", "table"}
	jitters  = []string{"none", "full", "equal", "proportional"}
)

// String returns "exponential", "constant", "linear", "fibonacci" or "table".
func (b Backoff) String() string {
	if int(b) < len(backoffs) {
		return backoffs[b]
	}
	return fmt.Sprintf("backoff(%d)", uint8(b))
}

// Jitter randomizes a wait w, so that attempts that failed at the same time are not all retried at the same
// time.
type Jitter uint8

// The jitters. The zero value is none.
const (
	JitterNone         Jitter = iota // exactly w
	JitterFull                       // anything from 0 to w: w/2 on average
	JitterEqual                      // anything from w/2 to w
	JitterProportional               // anything from w*(1-Spread) to w*(1+Spread)
)

// String returns "none", "full", "equal" or "proportional".
func (j Jitter) String() string {
	if int(j) < len(jitters) {
		return jitters[j]
	}
	return fmt.Sprintf("jitter(%d)", uint8(j))
}

// Exponential returns a policy of so many attempts in all whose waits double: initial, 2*initial, 4*initial, ...
func Exponential(attempts int, initial time.Duration) Policy {
	return Policy{Attempts: attempts, Backoff: BackoffExponential, Initial: initial, Base: 2}
}

// Constant returns a policy of so many attempts in all with the same wait between any two.
func Constant(attempts int, wait time.Duration) Policy {
	return Policy{Attempts: attempts, Backoff: BackoffConstant, Initial: wait}
}

// Linear returns a policy of so many attempts in all whose waits grow evenly: initial, 2*initial, 3*initial, ...
func Linear(attempts int, initial time.Duration) Policy {
	return Policy{Attempts: attempts, Backoff: BackoffLinear, Initial: initial}
}

// Fibonacci returns a policy of so many attempts in all whose waits follow the Fibonacci numbers: initial, initial,
// 2*initial, 3*initial, 5*initial, ...
func Fibonacci(attempts int, initial time.Duration) Policy {
	return Policy{Attempts: attempts, Backoff: BackoffFibonacci, Initial: initial}
}

// Table returns a policy with exactly the given waits, so with one attempt more than there are waits.
func Table(waits ...time.Duration) Policy {
	return Policy{Attempts: len(waits) + 1, Backoff: BackoffTable, Waits: waits}
}

// ErrInvalid is wrapped by every error of Policy.Validate.
var ErrInvalid = errors.New("invalid retry policy")

// Validate returns all that is wrong with the policy as one error, which wraps ErrInvalid; nil if it is
// valid.
func (p Policy) Validate() error {
	var wrong []string
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	refuse(p.Attempts < 0, "Attempts is %d: use 1 for no retry, or more", p.Attempts)
	refuse(p.Backoff > BackoffTable, "Backoff is %v: use one of the constants", p.Backoff)
	refuse(p.Initial < 0, "Initial is %v: a wait can't be negative", p.Initial)
	refuse(p.Base != 0 && !(p.Base >= 1 && p.Base <= math.MaxFloat64),
		"Base is %v: use a finite factor of at least 1, or 0 for 2", p.Base)
	refuse(p.MaxWait < 0, "MaxWait is %v: use 0 for no limit", p.MaxWait)
	refuse(p.MaxElapsed < 0, "MaxElapsed is %v: use 0 for no limit", p.MaxElapsed)
	refuse(p.Jitter > JitterProportional, "Jitter is %v: use one of the constants", p.Jitter)
	refuse(p.Jitter == JitterProportional && !(p.Spread > 0 && p.Spread <= 1),
		"Spread is %v: JitterProportional needs a share above 0 and up to 1", p.Spread)
	refuse(p.Jitter != JitterProportional && p.Spread != 0,
		"Spread is %v, which only JitterProportional uses: set Jitter, or leave Spread out", p.Spread)
	refuse(p.Backoff == BackoffTable && len(p.Waits) == 0 && p.Attempts > 1,
		"Waits is empty: BackoffTable needs a wait for each further attempt")
	refuse(p.Backoff != BackoffTable && len(p.Waits) > 0,
		"Waits is set, which only BackoffTable uses: set Backoff, or use retry.Table")
	for i, w := range p.Waits {
		refuse(w < 0, "Waits[%d] is %v: a wait can't be negative", i, w)
	}
	for i, f := range p.Filters {
		refuse(f == nil, "Filters[%d] is nil: leave it out", i)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(wrong, "; "))
}

// String describes the policy on one line, such as "5 attempts, exponential 1s x2, at most 1m0s, full jitter". Equal
// policies have equal descriptions; filters and the source of chance are only counted or left out.
func (p Policy) String() string {
	if p.Attempts <= 1 {
		return "1 attempt"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d attempts, %v", p.Attempts, p.Backoff)
	switch p.Backoff {
	case BackoffTable:
		fmt.Fprintf(&b, " %v", p.Waits)
	case BackoffExponential:
		fmt.Fprintf(&b, " %v x%v", p.Initial, p.base())
	default:
		fmt.Fprintf(&b, " %v", p.Initial)
	}
	if p.MaxWait != 0 {
		fmt.Fprintf(&b, ", at most %v", p.MaxWait)
	}
	if p.MaxElapsed != 0 {
		fmt.Fprintf(&b, ", within %v", p.MaxElapsed)
	}
	if p.Jitter != JitterNone {
		fmt.Fprintf(&b, ", %v jitter", p.Jitter)
	}
	if p.Spread != 0 {
		fmt.Fprintf(&b, " %v", p.Spread)
	}
	if n := len(p.Filters); n > 0 {
		fmt.Fprintf(&b, ", filters: %d", n)
	}
	return b.String()
}
