package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The errors of acquisitions, by errors.Is. Another attempt does not help, so each has a method Permanent,
// which package retry checks.
var (
	// ErrTooMuch: more was asked for than the limit can admit at once.
	ErrTooMuch error = &refusal{"more than the limit admits at once"}

	// ErrUnknownLimit: an amount names a limit that the set does not have.
	ErrUnknownLimit error = &refusal{"unknown limit"}

	// ErrAmount: a limit that has to be named was not, or an amount cannot be.
	ErrAmount error = &refusal{"amount"}

	// ErrReleased: Commit was called on a lease that was released.
	ErrReleased error = &refusal{"the lease was released"}
)

// refusal is an error that stays as long as the program does.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// Permanent says that another attempt ends in the same error.
func (r *refusal) Permanent() bool { return true }

// Reason says why an acquisition has to wait: for which limit, and how long. It is admitted when no limit has
// a reason.
type Reason struct {
	Limit Limit         // the limit that has no room
	N     int64         // the requested amount
	Wait  time.Duration // how long until it is admitted; Unknown if time alone is not enough
}

// String returns "3 of rate openai, free in 4s", "2 of slots db, none is free", "breaker openai, which is open for 12s"
// or "1 of slots db, which is paused".
func (r Reason) String() string {
	what := fmt.Sprintf("%d of %s %s", r.N, r.Limit.kind(), r.Limit.Name)
	if r.Limit.Algorithm == CircuitBreaker {
		what = "breaker " + r.Limit.Name
	}
	switch {
	case r.Limit.N == 0:
		return what + ", which is paused"
	case r.Limit.Algorithm == CircuitBreaker && r.Wait == Unknown:
		return what + ", whose probe has no result yet"
	case r.Limit.Algorithm == CircuitBreaker:
		return what + ", which is open for " + rounded(r.Wait)
	case r.Wait == 0:
		return what
	case r.N > r.Limit.Capacity():
		return fmt.Sprintf("%s, which admits %d at once", what, r.Limit.Capacity())
	case r.Wait == Unknown:
		return what + ", not enough are free"
	}
	return what + ", free in " + rounded(r.Wait)
}

// rounded is a wait as people read it: to milliseconds, and never 0.
func rounded(d time.Duration) string {
	if d < time.Millisecond {
		return d.String()
	}
	return d.Round(time.Millisecond).String()
}

// Stopped returns the error of an acquisition whose context has ended, with the reasons why it waited; none if it did not wait. It is for
// implementations of Limiter.
func Stopped(ctx context.Context, reasons []Reason) error {
	why := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(why, cause) {
		why = fmt.Errorf("%w: %w", why, cause)
	}
	if len(reasons) == 0 {
		return fmt.Errorf("limit: stopped before it was admitted: %w", why)
	}
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = r.String()
	}
	return fmt.Errorf("limit: stopped while it waited for %s: %w", strings.Join(texts, " and "), why)
}

// Must returns v, and panics if err is not nil. It is for limits that are written in the program:
//
//	var limits = limit.Must(limit.NewSet(limit.Resource("db", 5)))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// CheckKeys checks the keys of a pool: there must be one at least, and none may be empty or occur twice. The error wraps ErrInvalid.
func CheckKeys(limit string, keys []string) error {
	if len(keys) == 0 {
		return fmt.Errorf("%w %q: it is taken of any of no keys: name at least one", ErrInvalid, limit)
	}
	for i, key := range keys {
		switch {
		case key == "":
			return fmt.Errorf("%w %q: one of its keys is empty: give it a name", ErrInvalid, limit)
		case slices.Contains(keys[:i], key):
			return fmt.Errorf("%w %q: it is taken of the key %q twice: name each once", ErrInvalid, limit, key)
		}
	}
	return nil
}
