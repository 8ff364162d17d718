package workflow

import (
	"errors"

	"github.com/tasq-dev/tasq/activities"
)

// The kinds of failure of a command, beside *workitem.TransitionError, *domain.InvalidError, and the errors of the process's own
// callbacks, which are wrapped. Test for them with errors.Is. Package engine has a code for each.
var (
	ErrNotFound   = errors.New("not found")     // no such case, item, task, step or token
	ErrInactive   = activities.ErrInactive      // the case or the task has ended
	ErrUnfinished = errors.New("has not ended") // what can be asked of a case that has ended was asked of one that goes on
	ErrNotFailed  = errors.New("has not failed")
	ErrSuspended  = errors.New("is suspended")
	ErrDeadEnd    = errors.New("the case could not end")
	ErrUnknown    = errors.New("unknown workflow")
	ErrBadRoute   = errors.New("bad route") // a split was sent nowhere, or where it has no flow
	ErrRunaway    = errors.New("the command does not terminate")
	ErrKeyReused  = errors.New("the idempotency key was used for another command")
	ErrFull       = errors.New("the queue is full") // see FullError
	ErrBadCommand = errors.New("bad command")       // a field is missing, or not one of its kind
)
