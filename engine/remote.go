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

// Errors cross processes as codes, since Go values cannot. The owner of a database turns the error of a command into
// its code with [Code]; the process that asked makes a RemoteError of it, for which errors.Is reports the same kind:
//
//	engine: fmt.Errorf("case %s %w", id, ErrInactive)   ─▶  "not-active", text  ─▶  RemoteError, errors.Is(err, ErrInactive)
//
// The order matters if an error is of several kinds: the most specific code comes first.

// codes are the codes of the kinds of errors, as returned by [Code] and carried by a [RemoteError]. The first match
// counts.
var codes = []struct {
	word string
	kind error
}{
	{"bad-config", ErrConfig},
	{"commit-failed", fault.ErrCommit},
	{"newer", store.ErrNewer}, // before lost, since an engine that is too old has lost its database too
	{"lost", store.ErrLost},   // before closed, since a lost engine is closed too
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
	{"restarted", workflow.ErrRestarted},
	{"suspended", workflow.ErrSuspended},
	{"dead-end", workflow.ErrDeadEnd},
	// Two codes of one kind. [Code] finds this one by the kind, and the next by the type of the error. Both are
	// listed, since [RemoteError.Is] looks up the kind of each.
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
	{"half-copied", store.ErrHalfCopied},
	{"corrupt", store.ErrCorrupt},
	{"undone", store.ErrUndone},
	{"refused", store.ErrRefused},
	{"conflict", store.ErrConflict},
	{"unavailable", store.ErrUnavailable},
	{"random-failed", workitem.ErrRandom},
	{"hold-deadlock", workflow.ErrHoldDeadlock},
}

// Code returns the stable code of an error of this package: "not-found", "not-active", "illegal-transition",
// "bad-route", "invalid-payload", and so on. An error of a callback that wraps a *workitem.Failure has the code of
// that failure. Any other error has the code "error", and nil has "".
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

// RemoteError is the error of a command that another process executed. errors.Is matches the same errors of this
// package as in that process.
type RemoteError struct {
	Code string // see [Code]
	Text string // the whole message
}

// Error returns the message.
func (e *RemoteError) Error() string { return e.Text }

// Is reports whether the error has the code of the target.
func (e *RemoteError) Is(target error) bool {
	for _, c := range codes {
		if c.word == e.Code {
			return c.kind == target
		}
	}
	return false
}

// RemoteAnswer decodes the reply to a command that another process executed. The error is a *RemoteError if the command
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
