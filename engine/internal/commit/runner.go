package commit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/readable"
)

// ErrCallback is for a callback of the user's that panicked, took too long, or called the engine.
var ErrCallback = errors.New("callback failed")

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

// nestedKey marks the context of a callback.
type nestedKey struct{}

// NotNested refuses a call of the engine by a callback, for which the engine waits. It can tell by the context alone, so
// a callback that uses another one waits until its time is over.
func NotNested(ctx context.Context) error {
	if ctx.Value(nestedKey{}) == nil {
		return nil
	}
	return fmt.Errorf("%w: it called the engine, which waits for it to return; use what the callback was given, or do it "+
		"in Run or in a job", ErrCallback)
}

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
	go serveCallbacks(work)
}

// serveCallbacks is the outermost function of every goroutine that calls callbacks, see [InCallback].
func serveCallbacks(work <-chan func()) {
	for f := range work {
		f()
	}
}

// InCallback reports whether its caller runs on a goroutine that calls callbacks, for what has no context to tell, such as Close. It looks
// at all of the stack.
func InCallback() bool {
	calls := make([]uintptr, 64)
	n := runtime.Callers(1, calls)
	for ; n == len(calls); n = runtime.Callers(1, calls) {
		calls = make([]uintptr, 2*len(calls))
	}
	for frames, more := runtime.CallersFrames(calls[:n]), true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); strings.HasSuffix(frame.Function, "engine/internal/commit.serveCallbacks") {
			return true
		}
	}
	return false
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
	r.work <- func() {
		err := errExited
		defer func() { done <- err }() // a callback that ends the goroutine leaves nothing else to run
		err = safely(inner, f)
	}
	r.timer.Reset(r.limit)
	select {
	case err := <-done:
		r.timer.Stop()
		if errors.Is(err, errExited) {
			r.renew()
		}
		return err
	case <-r.timer.C:
	}
	close(r.work)
	r.renew()
	return fmt.Errorf("%w: it did not return within %s and was left behind (%w); a callback runs inside a transaction that "+
		"all commands wait for, so do long work in Run or in a job, and do not call the engine, which waits for it", ErrCallback, r.limit, kernel.ErrAbandoned)
}

// errExited is what became of a callback that did not return, but ended its goroutine.
var errExited = fmt.Errorf("%w: it ended its goroutine (%w), as runtime.Goexit and the FailNow of a test do; let it return "+
	"an error", ErrCallback, kernel.ErrAbandoned)

// safely turns a panic into an error that keeps the stack, and an error whose methods panic into one that says so.
func safely(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v\n%s", ErrCallback, p, debug.Stack())
		}
	}()
	if err = f(ctx); err == nil {
		return nil
	}
	if unreadable := readable.Error(err); unreadable != nil {
		return fmt.Errorf("%w: %w", ErrCallback, unreadable)
	}
	return err
}
