package retry

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/internal/argument"
)

// Clock is the source of time of all packages of Tasq. Tests and scenario files use a virtual one.
//
// A clock must be safe for concurrent use.
type Clock interface {
	// Now returns the present time.
	Now() time.Time

	// AfterFunc calls f once in its own goroutine when d has passed; at once if d is zero or negative. The returned
	// stop prevents the call, and reports whether it did: false means that f or stop was called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// SystemClock is the clock of the machine. Inside a testing/synctest bubble it is the bubble's clock.
var SystemClock Clock = systemClock{}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// Sleep waits for d by a clock, or until ctx ends, whichever comes first. A nil clock is SystemClock. A d of zero or less does not wait.
func Sleep(ctx context.Context, clock Clock, d time.Duration) {
	argument.Context(ctx, "retry.Sleep")
	if d <= 0 {
		return
	}
	if clock == nil {
		clock = SystemClock
	}
	over := make(chan struct{})
	stop := clock.AfterFunc(d, func() { close(over) })
	select {
	case <-over:
	case <-ctx.Done():
		stop()
	}
}
