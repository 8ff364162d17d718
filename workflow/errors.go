package workflow

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
)

// The kinds of errors of commands, beside *workitem.TransitionError, *domain.InvalidError, and the errors of the workflow's own
// callbacks, which are wrapped. Test for them with errors.Is. Package engine has a code for each.
var (
	ErrNotFound   = errors.New("not found")     // no such case, item, task, step or token
	ErrInactive   = activities.ErrInactive      // the case or the task has ended
	ErrUnfinished = errors.New("has not ended") // the command needs a case that has ended, and the case has not
	ErrNotFailed  = errors.New("has not failed")
	ErrRestarted  = errors.New("was restarted already") // see UnlessRestarted
	ErrSuspended  = errors.New("is suspended")
	ErrDeadEnd    = errors.New("the case could not end")
	ErrUnknown    = errors.New("unknown workflow")
	ErrBadRoute   = errors.New("bad route") // the route of a split names no flow, or a flow that does not exist
	ErrRunaway    = errors.New("the command does not terminate")
	ErrKeyReused  = errors.New("the idempotency key was used for another command")
	ErrFull       = errors.New("the queue is full") // see FullError
	ErrBadCommand = errors.New("bad command")       // a field is missing, or does not belong to the kind of the command
)

// UnknownError says that the engine was not opened with the workflow of a new case. It is an [ErrUnknown].
type UnknownError struct {
	Workflow    string
	Fingerprint string   // of the definition that the command asks for; "" for the newest
	Known       []string // the workflows that the engine was opened with, sorted
}

// Error lists the workflows that the engine has, since a misspelt name and a program of an older version look the same
// from outside.
func (e *UnknownError) Error() string {
	known := "none"
	if len(e.Known) > 0 {
		known = fmt.Sprint(e.Known)
	}
	return fmt.Sprintf("%v: %q; the engine was opened with %s", ErrUnknown, e.Workflow, known)
}

// Is reports whether the target is [ErrUnknown].
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }
