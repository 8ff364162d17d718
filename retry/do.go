package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/internal/readable"
)

// Do calls fn until it returns a value that every check accepts, at most as often as the policy allows. It is
// Call.Do for a call without a name, an input and a clock.
func Do[T any](
	ctx context.Context, p Policy, fn func(ctx context.Context, attempt int) (T, error), checks ...Check[T],
) (T, error) {
	return Call[T]{Policy: p, Checks: checks}.Do(ctx, fn)
}

// Call configures the attempts of some work. The zero value makes one attempt and accepts any value.
type Call[T any] struct {
	Policy Policy
	Name   string     // the name of the work in errors, filters and checks. Default: no name
	Input  any        // the input of the work, for filters and checks. Default: nil
	Checks []Check[T] // checks of the result, all of which must accept it. Default: none
	Clock  Clock      // measures and waits. Default: SystemClock

	// Log gets one line at DEBUG for each attempt, when it has ended: "attempt completed" or "attempt failed", with the
	// name of the call, the number of the attempt, the wait before the next one (if there is one), and the error.
	// Default: nil, which logs nothing.
	Log *slog.Logger
}

// Check rejects a value by returning the reason. A rejected value counts as a failed attempt, for which the policy's
// filters are not called; the reason may be marked with Permanent or After, like an error. A check that panics rejects
// the value.
type Check[T any] func(Outcome[T]) error

// Outcome is the result of an attempt, for a Check. It is the counterpart of Failure.
type Outcome[T any] struct {
	Value   T
	Attempt int           // the number of the attempt, from 1, for checks that become less strict
	Elapsed time.Duration // from the start of the first attempt until now, runs and waits included
	Name    string        // that of the call
	Input   any           // that of the call
}

// Valid converts a function of the value to a Check. A nil function is a nil Check, which Do rejects.
func Valid[T any](f func(T) error) Check[T] {
	if f == nil {
		return nil
	}
	return func(o Outcome[T]) error { return f(o.Value) }
}

// Do calls fn until it returns a value that every check accepts, and returns that value. fn gets the number of the
// attempt, from 1. Rejected values and errors count as attempts alike. If Do fails, the error is one of these:
//
//   - fn's own error, unchanged, if it is permanent, if no filter accepts it, or if the policy makes one attempt only;
//   - an [*ExhaustedError] around fn's last error, if attempts or time have run out;
//   - a *ValidationError if the last attempt returned a value that was rejected;
//   - an error that wraps ctx.Err() and the last failure, if ctx ended first. A wait ends at once when ctx does, and fn
//     is not called again;
//   - an error that wraps ErrInvalid if the policy is invalid, or if fn or a check is nil. fn is not called.
//
// A panic of fn is a failed attempt, whose error is a [*PanicError].
func (c Call[T]) Do(ctx context.Context, fn func(ctx context.Context, attempt int) (T, error)) (T, error) {
	argument.Context(ctx, "retry.Do")
	var none T
	if err := c.validate(fn == nil); err != nil {
		return none, fmt.Errorf("%s%w", prefix(c.Name), err)
	}
	if c.Clock == nil {
		c.Clock = SystemClock
	}
	refused := &ValidationError[T]{Name: c.Name}
	start := c.Clock.Now()
	var last error
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return none, c.stopped(ctx, attempt-1, last)
		}
		value, err := guarded(ctx, attempt, fn)
		elapsed := max(c.Clock.Now().Sub(start), 0)
		f := Failure{Attempt: attempt, Elapsed: elapsed, Err: err, Name: c.Name, Input: c.Input}
		next := c.afterError
		if err == nil {
			reason := c.refuse(Outcome[T]{value, attempt, elapsed, c.Name, c.Input})
			if reason == nil {
				c.log(ctx, f, 0, true)
				return value, nil
			}
			refused.add(attempt, value, reason)
			f.Err, f.Refused, next = refused, true, c.afterRefusal
		}
		wait, final := next(f)
		c.log(ctx, f, wait, final != nil)
		if final != nil {
			return none, final
		}
		last = f.Err
		Sleep(ctx, c.Clock, wait)
	}
}

// validate refuses what would fail every attempt, so that no backoff is spent on it.
func (c Call[T]) validate(noFunction bool) error {
	if err := c.Policy.Validate(); err != nil {
		return err
	}
	if noFunction {
		return fmt.Errorf("%w: there is no function to call: it is nil", ErrInvalid)
	}
	if i := slices.IndexFunc(c.Checks, func(check Check[T]) bool { return check == nil }); i >= 0 {
		return fmt.Errorf("%w: check %d is nil: leave it out", ErrInvalid, i+1)
	}
	return nil
}

// guarded calls fn, and makes an error of a panic.
func guarded[T any](ctx context.Context, attempt int, fn func(context.Context, int) (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = NewPanicError(p)
		}
	}()
	if value, err = fn(ctx, attempt); err != nil {
		err = cmp.Or(readable.Error(err), err)
	}
	return value, err
}

// log writes one line for an attempt that has ended.
func (c Call[T]) log(ctx context.Context, f Failure, wait time.Duration, last bool) {
	if c.Log == nil {
		return
	}
	attrs := []slog.Attr{slog.String("function", f.Name), slog.Int("attempt", f.Attempt)}
	if f.Err == nil {
		c.Log.LogAttrs(ctx, slog.LevelDebug, "attempt completed", attrs...)
		return
	}
	if !last {
		attrs = append(attrs, slog.Duration("wait", wait))
	}
	c.Log.LogAttrs(ctx, slog.LevelDebug, "attempt failed", append(attrs, slog.Any("error", f.Err))...)
}

// logBroken writes one line for a filter that panicked.
func (c Call[T]) logBroken(f Failure, broken *FilterError) {
	if c.Log != nil && broken != nil {
		c.Log.Error("a filter of a retry policy panicked, and accepts nothing", "function", f.Name, "attempt", f.Attempt, "error", broken,
			"stack", string(broken.Panic.Stack))
	}
}

// afterError returns the wait before another attempt, or the error that ends the call.
func (c Call[T]) afterError(f Failure) (time.Duration, error) {
	accepted, broken := c.Policy.Judge(f)
	c.logBroken(f, broken)
	err := broken.Beside(f.Err)
	if !accepted {
		return 0, err
	}
	wait, again := c.Policy.afford(f)
	switch {
	case again:
		return wait, nil
	case c.Policy.Attempts <= 1:
		return 0, err
	}
	return 0, &ExhaustedError{Name: f.Name, Attempts: f.Attempt, Elapsed: f.Elapsed, Err: err}
}

// afterRefusal is like afterError for a value that a check rejected. The filters speak of errors and aren't asked, and
// the error that ends the call explains itself.
func (c Call[T]) afterRefusal(f Failure) (time.Duration, error) {
	if wait, again := c.Policy.Next(f); again {
		return wait, nil
	}
	return 0, f.Err
}

// refuse returns why a value is no good, by the first check that says so.
func (c Call[T]) refuse(o Outcome[T]) error {
	for i, check := range c.Checks {
		if err := ask(check, i, o); err != nil {
			return err
		}
	}
	return nil
}

func ask[T any](check Check[T], number int, o Outcome[T]) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("check %d panicked: %v", number+1, r)
		}
	}()
	return check(o)
}

func (e *ValidationError[T]) add(attempt int, value T, reason error) {
	e.Attempts = attempt
	e.Results = append(e.Results, value)
	e.Reasons = append(e.Reasons, reason)
}

// stopped says that ctx ended after so many attempts. It names the last failure too, since "canceled" alone hides what
// the time was spent on.
func (c Call[T]) stopped(ctx context.Context, made int, last error) error {
	why := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(why, cause) {
		why = fmt.Errorf("%w: %w", why, cause)
	}
	if last == nil {
		return fmt.Errorf("%sstopped before the first attempt: %w", prefix(c.Name), why)
	}
	return fmt.Errorf("%sstopped after %s: %w (last failure: %w)", prefix(c.Name), attempts(made), why, last)
}
