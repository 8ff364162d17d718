package retry

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Permanent marks an error as not retryable, such as a wrong password. The text of the error stays the same, and
// errors.Is and errors.As find the wrapped error. It ends every retry that it passes through, also outer ones.
// Permanent(nil) is nil.
//
// An error type can instead have a method Permanent() bool.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether an error was marked by [Permanent], or has a method Permanent() bool that says so. Where
// several errors of a chain have that method, the outermost one counts.
func IsPermanent(err error) bool {
	e, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err)
	return ok && e.Permanent()
}

// After adds to an error the delay that a server requested, such as with an HTTP header Retry-After. The next
// attempt, if there is one, waits exactly that long. A delay of 0 or less has no effect. The text of the error stays
// the same, and errors.Is and errors.As find the wrapped error. After(d, nil) is nil.
//
// An error type can instead have a method RetryAfter() time.Duration.
func After(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &after{d, err}
}

// Delay returns the delay that After, or a method RetryAfter() time.Duration, has given an error, and whether
// there is one. If several errors of a chain have that method, the outermost one counts.
func Delay(err error) (time.Duration, bool) {
	e, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err)
	if !ok || e.RetryAfter() <= 0 {
		return 0, false
	}
	return e.RetryAfter(), true
}

type permanent struct{ err error }

func (p *permanent) Error() string   { return p.err.Error() }
func (p *permanent) Unwrap() error   { return p.err }
func (p *permanent) Permanent() bool { return true }

type after struct {
	delay time.Duration
	err   error
}

func (a *after) Error() string             { return a.err.Error() }
func (a *after) Unwrap() error             { return a.err }
func (a *after) RetryAfter() time.Duration { return a.delay }

// PanicError is the error of an attempt that panicked. A panic is a failed attempt like any other, in [Do] and in
// everything durable: filters see a *PanicError, and after the last attempt it is the error.
type PanicError struct {
	Value any    // what the work panicked with
	Stack []byte // of the goroutine, as debug.Stack returns it

	at string // "file.go:17"; "" if unknown
}

// NewPanicError returns the error for a panic. Call it in the deferred function, with the value of recover:
// it captures the stack.
func NewPanicError(value any) *PanicError {
	return &PanicError{Value: value, Stack: debug.Stack(), at: panickedAt()}
}

// panickedAt returns the place of the panic that is being recovered: the first function below the runtime's panic.
func panickedAt() string {
	calls := make([]uintptr, 64)
	n := runtime.Callers(1, calls)
	panicking := false
	for frames, more := runtime.CallersFrames(calls[:n]), n > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch inside := strings.HasPrefix(frame.Function, "runtime."); {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !inside:
			return fmt.Sprintf("%s:%d", path.Base(frame.File), frame.Line)
		}
	}
	return ""
}

// Brief returns one line with the place of the panic: "panicked: runtime error: index out of range [3] with length 3 (file.go:17)".
func (e *PanicError) Brief() string {
	if e.at == "" {
		return fmt.Sprintf("panicked: %v", e.Value)
	}
	return fmt.Sprintf("panicked: %v (%s)", e.Value, e.at)
}

// Error returns "panic: runtime error: index out of range [3] with length 3", without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error, so that errors.Is and errors.As find it; nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// FailureCode returns the failure code of a durable attempt: "panic".
func (e *PanicError) FailureCode() string { return "panic" }

// FailureDetails returns the stack as a JSON string.
func (e *PanicError) FailureDetails() json.RawMessage {
	stack, _ := json.Marshal(string(e.Stack)) // a string always has a JSON form
	return stack
}

// FilterError says that a filter of a policy panicked when it was asked about an error. It does not wrap the panic, whose code and
// details are not those of the error.
type FilterError struct {
	Number int         // of the filter in Policy.Filters, from 1
	Panic  *PanicError // what it panicked with, and where
}

// Error returns "filter 1 of the retry policy panicked: index out of range (file.go:17)".
func (e *FilterError) Error() string {
	return fmt.Sprintf("filter %d of the retry policy %s", e.Number, e.Panic.Brief())
}

// Beside adds the FilterError to the error that the filter was asked about: "connection refused; filter 1 of the retry policy
// panicked: ...". It returns err itself if e is nil.
func (e *FilterError) Beside(err error) error {
	if e == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, e)
}

// ExhaustedError says that a policy gave up on a retryable error, because attempts or time had run out. It wraps that
// error.
type ExhaustedError struct {
	Name     string        // the name of the call; "" if it has none
	Attempts int           // how many there were
	Elapsed  time.Duration // from the start of the first attempt to the end of the last one
	Err      error         // how the last attempt failed
}

// Error returns "fetch: gave up after 3 attempts in 3.2s: connection refused".
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("%sgave up after %s in %v: %v", prefix(e.Name), attempts(e.Attempts), e.Elapsed, e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *ExhaustedError) Unwrap() error { return e.Err }

// ValidationError says that the last attempt returned a value that a Check rejected, and that no attempt was left. It
// has every rejected value, so that the caller can still use the best of them.
type ValidationError[T any] struct {
	Name     string  // the name of the call; "" if it has none
	Attempts int     // how many there were, those that returned an error included
	Results  []T     // the rejected values, oldest first; fewer than Attempts if some attempts returned an error
	Reasons  []error // why each of Results was rejected
}

// Error returns "draft: no valid result in 3 attempts: text is too short", with the last of the reasons.
func (e *ValidationError[T]) Error() string {
	s := fmt.Sprintf("%sno valid result in %s", prefix(e.Name), attempts(e.Attempts))
	if last := e.Unwrap(); last != nil {
		s += ": " + last.Error()
	}
	return s
}

// Unwrap returns the last of the reasons, nil if there is none. The earlier ones aren't wrapped, since they may carry a
// delay or a mark that is out of date.
func (e *ValidationError[T]) Unwrap() error {
	if len(e.Reasons) == 0 {
		return nil
	}
	return e.Reasons[len(e.Reasons)-1]
}

func prefix(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
