package commit

import "github.com/tasq-dev/tasq/retry"

// Panic is the error of a callback that panicked. Its text is one line, since it becomes the message of a failure; the
// stack is in the details of the failure, and in the [retry.PanicError] that it wraps. The code of the failure is "panic".
type Panic struct{ *retry.PanicError }

// NewPanic returns the error for a panic. Call it in the deferred function, with the value of recover.
func NewPanic(value any) *Panic { return &Panic{retry.NewPanicError(value)} }

// Error returns "panicked: runtime error: index out of range [3] with length 3 (file.go:17)".
func (e *Panic) Error() string { return e.Brief() }

// Unwrap returns the PanicError, which wraps the value if that is an error.
func (e *Panic) Unwrap() error { return e.PanicError }
