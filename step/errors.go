package step

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// The kinds of errors, by errors.Is.
var (
	// ErrSuspended says that the job is suspended until something that it waits for has happened. Return it,
	// wrapped or not; the function will be called again.
	ErrSuspended = errors.New("the job is suspended")

	// ErrYielded says that [Yield] has released the worker of the job. Return it, wrapped or not; the function will be
	// called again.
	ErrYielded = errors.New("the job has yielded its worker")

	// ErrNoJob says that the context does not belong to a running job.
	ErrNoJob = errors.New("not in a job")

	// ErrTimeout says that a step took longer than its [Timeout].
	ErrTimeout = errors.New("the wait timed out")

	// ErrCanceled says that a step was canceled: its child case was canceled, or another branch was chosen.
	ErrCanceled = errors.New("canceled")

	// ErrDuplicate says that a name was used twice in one run.
	ErrDuplicate = errors.New("the name of a step is used twice")

	// ErrChanged says that a step differs from what was recorded under its name, because the code has
	// changed.
	ErrChanged = errors.New("the step differs from what was recorded")

	// ErrHistory says that the function returned without reaching all steps that this attempt of the job has
	// recorded.
	ErrHistory = errors.New("recorded steps were not reached")

	// ErrUsage says that a call is invalid: a negative duration, or a step within a step.
	ErrUsage = errors.New("misuse of a step")
)

// The failure codes of this package, beside those of package workitem.
const (
	CodeTooLarge = workitem.CodeTooLarge // the result exceeds the size limit; the message has both sizes

	CodeDuplicate = "step-duplicate" // the failure of a run with ErrDuplicate
	CodeChanged   = "step-changed"   // with ErrChanged
	CodeHistory   = "step-left-over" // with ErrHistory
	CodeUsage     = "step-misuse"    // with ErrUsage
)

// codes says as what a mistake is recorded. The failure has no message of its own, so that of the error is taken whole.
var codes = map[error]*workitem.Failure{
	ErrDuplicate: {Code: CodeDuplicate}, ErrChanged: {Code: CodeChanged},
	ErrHistory: {Code: CodeHistory}, ErrUsage: {Code: CodeUsage},
}

// mistake is an error of the code, not of the world. It is permanent: only other code can repair it.
type mistake struct {
	kind error
	text string
}

func mistakef(kind error, format string, args ...any) error {
	return &mistake{kind, fmt.Sprintf(format, args...)}
}

// misuse makes a mistake that the function cannot hide: its job fails, also if it continues and returns nil.
func (r *Run) misuse(format string, args ...any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keepMistake(mistakef(ErrUsage, format, args...))
}

// nothingToCall is the mistake of a call whose function is nil.
func (r *Run) nothingToCall(what title, at uintptr) error {
	return r.misuse("%v, at %s: there is no function to call: it is nil", what, place(at))
}

func (m *mistake) Error() string   { return m.text }
func (m *mistake) Unwrap() []error { return []error{m.kind, codes[m.kind]} }
func (m *mistake) Permanent() bool { return true }

// ignoredMistake is a mistake after which a function continued, to end with another error.
type ignoredMistake struct{ wrong, err error }

func (b *ignoredMistake) Error() string {
	return fmt.Sprintf("%v (and the function returned: %v)", b.wrong, b.err)
}
func (b *ignoredMistake) Unwrap() []error { return []error{b.wrong, b.err} }
func (b *ignoredMistake) Permanent() bool { return true }

// As has the failure of the job be made of both, with the code of the mistake.
func (b *ignoredMistake) As(target any) bool {
	f, ok := target.(**workitem.Failure)
	if ok {
		*f = &workitem.Failure{Code: workitem.FailureOf(b.wrong).Code, Message: b.Error()}
	}
	return ok
}

// Error is the failure of a step. It is made from the record, on the first run as on every replay, so that code that
// examines it takes the same branch each time. It therefore does not wrap the error that the step's function
// returned: return an error with a code (&workitem.Failure{Code: "no-funds"}) and compare the code.
//
// errors.As finds a *workitem.Failure in it, with the code, the details and Retryable as recorded, and a message that
// names the step.
type Error struct {
	Step     string
	Kind     workitem.StepKind
	Attempts int               // how often the function was called; 0 for the kinds that call none
	Failure  *workitem.Failure // as recorded, of the last attempt
}

func errorOf(s *workitem.Step) *Error {
	f := s.Failure
	if f == nil {
		f = &workitem.Failure{Code: workitem.CodeError, Message: "it failed"}
	}
	return &Error{Step: s.Name, Kind: s.Kind, Attempts: s.Attempt, Failure: f}
}

// Error returns `step "charge" failed after 4 attempts: no-funds: the account is empty`.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.head(), e.Failure) }

func (e *Error) head() string {
	if e.Attempts > 1 {
		return fmt.Sprintf("step %q failed after %d attempts", e.Step, e.Attempts)
	}
	return fmt.Sprintf("step %q", e.Step)
}

// Unwrap returns the failure, with a message that names the step.
func (e *Error) Unwrap() error { return labelled(e.head(), e.Failure) }

// Is reports whether the target is ErrTimeout and the step has timed out.
func (e *Error) Is(target error) bool {
	return target == ErrTimeout && e.Failure.Code == workitem.CodeTimeout
}

// labelled says in a failure's message where it comes from, since a failure is all that a job keeps of its error.
func labelled(head string, f *workitem.Failure) *workitem.Failure {
	l := *f
	l.Message = head
	if f.Message != "" {
		l.Message = head + ": " + f.Message
	}
	return &l
}

// overtime names the reason of a failure that came after the time was over.
func overtime(f *workitem.Failure, limit time.Duration) *workitem.Failure {
	if f.Code == workitem.CodeError {
		f.Code, f.Message = workitem.CodeTimeout, fmt.Sprintf("not done within %s: %s", limit, f.Message)
	}
	return f
}
