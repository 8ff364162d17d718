package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tasq-dev/tasq/internal/kernel"
)

// runner runs callbacks for the writer, on a goroutine of its own, so that one that never returns can be left behind. The
// goroutine is kept from one callback to the next: handing over costs less than starting.
//
// A callback may come back into the kernel (it starts a child case, whose own callbacks run); those run on the same
// goroutine, within the time of the outermost.
type runner struct {
	limit time.Duration
	timer *time.Timer
	work  chan func()
	done  chan error
}

type nestedKey struct{}

func newRunner(limit time.Duration) *runner {
	r := &runner{limit: limit, timer: time.NewTimer(time.Hour)}
	r.timer.Stop()
	r.renew()
	return r
}

// renew starts a fresh goroutine.
func (r *runner) renew() {
	work := make(chan func())
	r.work, r.done = work, make(chan error, 1)
	go func() {
		for f := range work {
			f()
		}
	}()
}

// stop ends the goroutine.
func (r *runner) stop() { close(r.work) }

// call runs f, and returns its error, or one that wraps ErrCallback if it panicked or took too long.
func (r *runner) call(ctx context.Context, f func(context.Context) error) error {
	if ctx.Value(nestedKey{}) != nil {
		return safely(ctx, f)
	}
	done := r.done
	inner, cancel := context.WithCancel(context.WithValue(ctx, nestedKey{}, true))
	defer cancel()
	r.work <- func() { done <- safely(inner, f) }
	r.timer.Reset(r.limit)
	select {
	case err := <-done:
		r.timer.Stop()
		return err
	case <-r.timer.C:
	}
	close(r.work)
	r.renew()
	return fmt.Errorf("%w: it did not return within %s and was left behind (%w); a callback runs inside a transaction "+
		"that everybody waits for, so do long work in Run or in a job", ErrCallback, r.limit, kernel.ErrAbandoned)
}

// safely turns a panic into an error that keeps the stack.
func safely(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v\n%s", ErrCallback, p, debug.Stack())
		}
	}()
	return f(ctx)
}
