package commit

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tasq-dev/tasq/retry"
)

// Panic is the error of a callback that panicked. Its text is one line, since it becomes the message of a failure; the
// stack is in the details of the failure, and in the [retry.PanicError] that it wraps. The code of the failure is "panic".
type Panic struct {
	*retry.PanicError
	at string // "file.go:17"; "" if unknown
}

// NewPanic returns the error for a panic. Call it in the deferred function, with the value of recover.
func NewPanic(value any) *Panic { return &Panic{retry.NewPanicError(value), panickedAt()} }

// Error returns "panicked: runtime error: index out of range [3] with length 3 (file.go:17)".
func (e *Panic) Error() string {
	if e.at == "" {
		return fmt.Sprintf("panicked: %v", e.Value)
	}
	return fmt.Sprintf("panicked: %v (%s)", e.Value, e.at)
}

// Unwrap returns the PanicError, which wraps the value if that is an error.
func (e *Panic) Unwrap() error { return e.PanicError }

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
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
	return ""
}
