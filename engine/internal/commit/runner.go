package commit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
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
	work  chan func(goroutine uint64)
	done  chan error

	// inside is the number of the goroutine whose callback is in progress; 0 if there is none. Any goroutine may read it.
	inside atomic.Uint64
}

// nestedKey marks the context of a callback.
type nestedKey struct{}

// errNested is the error of a callback that calls the engine: the engine waits for the callback, so the call would deadlock.
var errNested = fmt.Errorf("%w: it called the engine, which waits for it to return; use what the callback was given, as the Tx of Update, or do it "+
	"in Run or in a job", ErrCallback)

// NotNested returns an error if the context is that of a callback, which must not call an engine.
func NotNested(ctx context.Context) error {
	if ctx.Value(nestedKey{}) == nil {
		return nil
	}
	return errNested
}

// NotNested is like the function, and recognises a callback of this engine also if it passes another context, as the function of an Update does
// that uses the context of its caller. A goroutine that the callback has started is not recognised: it blocks until the time of the callback
// is over.
func (w *Writer) NotNested(ctx context.Context) error {
	if err := NotNested(ctx); err != nil {
		return err
	}
	// The number of a goroutine is expensive to get, so the cheaper tests are first.
	if inside := w.runner.inside.Load(); inside != 0 && InCallback() && goroutine() == inside {
		return errNested
	}
	return nil
}

// goroutine returns the number of the calling goroutine. The runtime gives it only as text: "goroutine 17 [running]:".
func goroutine() (n uint64) {
	var text [64]byte
	for _, c := range text[len("goroutine "):runtime.Stack(text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uint64(c-'0')
	}
	return n
}

func newRunner(limit time.Duration) *runner {
	r := &runner{limit: limit, timer: time.NewTimer(time.Hour)}
	r.timer.Stop()
	r.renew()
	return r
}

// renew starts a new goroutine. The old one is stuck or has ended.
func (r *runner) renew() {
	work := make(chan func(uint64))
	r.work, r.done = work, make(chan error, 1)
	go serveCallbacks(work)
}

// serveCallbacks is the outermost function of each goroutine that calls callbacks. [InCallback] looks for its name.
func serveCallbacks(work <-chan func(goroutine uint64)) {
	n := goroutine()
	for f := range work {
		f(n)
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
	r.work <- func(goroutine uint64) {
		err := errExited
		r.inside.Store(goroutine)
		defer func() { // deferred, since runtime.Goexit runs nothing else
			r.inside.CompareAndSwap(goroutine, 0) // unless it was left behind
			done <- err
		}()
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
	r.inside.Store(0)
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
