package engine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Errors cross processes as words, as their Go values cannot. The owner of a database turns the error of a command into its word
// with [Code]; the process that asked makes a RemoteError of it, in which errors.Is finds the same kind:
//
//	engine: fmt.Errorf("case %s %w", id, ErrInactive)   ─▶  "not-active", text  ─▶  RemoteError, errors.Is(err, ErrInactive)
//
// The order matters where one error is of several kinds: the word that says most comes first.

// codes are the words for kinds of error, for programs: what [Code] returns and a [RemoteError] carries. The first that
// fits counts.
var codes = []struct {
	word string
	kind error
}{
	{"commit-failed", fault.ErrCommit},
	{"lost", store.ErrLost}, // before closed, which it is, too
	{"closed", ErrClosed},
	{"callback-failed", ErrCallback},
	{"key-reused", ErrKeyReused},
	{"key-taken", workflow.ErrKeyTaken},
	{"throttled", workflow.ErrThrottled},
	{"too-large", ErrTooLarge},
	{"bad-command", workflow.ErrBadCommand},
	{"bad-route", ErrBadRoute},
	{"runaway", ErrRunaway},
	{"full", ErrFull},
	{"not-failed", workflow.ErrNotFailed},
	{"suspended", workflow.ErrSuspended},
	{"dead-end", workflow.ErrDeadEnd},
	{"unknown-workflow", ErrUnknown},
	{"not-loaded", ErrUnknown},
	{"definition-changed", ErrDrift},
	{"not-active", ErrInactive},
	{"not-ended", ErrUnfinished},
	{"lease-lost", ErrLeaseLost},
	{"not-found", ErrNotFound},
	{"owned", store.ErrOwned},
	{"older", store.ErrOlder},
	{"read-only", store.ErrReadOnly},
	{"newer", store.ErrNewer},
	{"half-copied", store.ErrHalfCopied},
	{"corrupt", store.ErrCorrupt},
	{"undone", store.ErrUndone},
	{"refused", store.ErrRefused},
	{"conflict", store.ErrConflict},
	{"unavailable", store.ErrUnavailable},
	{"random-failed", workitem.ErrRandom},
	{"hold-deadlock", workflow.ErrHoldDeadlock},
}

// Code returns the word for the kind of an error of this package: "not-found", "not-active", "illegal-transition",
// "bad-route", "invalid-payload", and so on. An error of the process's own callbacks that is or wraps a
// [*workitem.Failure] has that one's code. It is "error" for any other kind, and "" for nil.
func Code(err error) string {
	if err == nil {
		return ""
	}
	if remote := (*RemoteError)(nil); errors.As(err, &remote) {
		return remote.Code
	}
	if t := (*workitem.TransitionError)(nil); errors.As(err, &t) {
		return "illegal-transition"
	}
	if n := (*NotLoadedError)(nil); errors.As(err, &n) {
		return "not-loaded"
	}
	for _, c := range codes {
		if errors.Is(err, c.kind) {
			return c.word
		}
	}
	if invalid := (*domain.InvalidError)(nil); errors.As(err, &invalid) {
		return "invalid-payload"
	}
	if f := (*workitem.Failure)(nil); errors.As(err, &f) && f != nil && f.Code != "" {
		return f.Code
	}
	return "error"
}

// RemoteError is the error of a command that another process did. errors.Is finds in it the kind that it had over
// there.
type RemoteError struct {
	Code string // see [Code]
	Text string // the whole message
}

// Error returns the message.
func (e *RemoteError) Error() string { return e.Text }

// Is reports whether the error was of the target's kind.
func (e *RemoteError) Is(target error) bool {
	for _, c := range codes {
		if c.word == e.Code {
			return c.kind == target
		}
	}
	return false
}

// RemoteAnswer reads the reply to a command that was left for another process. The error is a [*RemoteError] if the command
// failed.
func RemoteAnswer(a store.Answer) (workflow.Result, error) {
	var result workflow.Result
	if a.Code != "" {
		return result, &RemoteError{Code: a.Code, Text: a.Error}
	}
	if err := json.Unmarshal(a.Result, &result); err != nil {
		return result, fmt.Errorf("the owner's response is invalid: %w", err)
	}
	return result, nil
}
