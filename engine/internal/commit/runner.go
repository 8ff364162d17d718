package commit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/readable"
)

// ErrCallback says that a callback of the user panicked, took too long, or called the engine.
var ErrCallback = errors.New("callback failed")

// runner calls callbacks for the writer on a separate goroutine, so that the writer can abandon one that does not
// return. The goroutine is reused, since a channel send costs less than a new goroutine.
//
//	writer ── f ──▶ goroutine: f() ── err ──▶ writer            in time
//	writer ── f ──▶ goroutine: f() ...  time is over            the writer fails the command, and starts a new goroutine;
//	                                                            the old one ends when f returns, if ever
//
// A callback may call the kernel, for example to start a child case, which has callbacks too. Those run on the same
// goroutine, within the time of the outermost one.
type runner struct {
	limit time.Duration
	timer *time.Timer
	work  chan func()
	done  chan error
}

// nestedKey marks the context of a callback.
type nestedKey struct{}

// NotNested returns an error if a callback calls the engine: the engine waits for the callback, so the call would
// deadlock. It recognises the callback by its context; one that passes another context blocks until its time is over.
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

// renew starts a new goroutine. The old one is stuck or has ended.
func (r *runner) renew() {
	work := make(chan func())
	r.work, r.done = work, make(chan error, 1)
	go serveCallbacks(work)
}

// serveCallbacks is the outermost function of each goroutine that calls callbacks. [InCallback] looks for its name.
func serveCallbacks(work <-chan func()) {
	for f := range work {
		f()
	}
}

// InCallback reports whether it is called from a callback. It searches the whole stack, and is for functions without a
// context, such as Close.
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
		defer func() { done <- err }() // deferred, since runtime.Goexit runs nothing else
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

// errExited is the error of a callback that ended its goroutine instead of returning.
var errExited = fmt.Errorf("%w: it ended its goroutine (%w), as runtime.Goexit and the FailNow of a test do; let it return "+
	"an error", ErrCallback, kernel.ErrAbandoned)

// safely converts a panic to an error. It also replaces an error whose own methods panic, which would otherwise crash the
// writer when it is formatted.
func safely(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it %w", ErrCallback, NewPanic(p))
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
