package workitem

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Failure says why a work item, a job or a case failed. It is data, since a failed item is an outcome that the process
// handles.
type Failure struct {
	Code      string          `json:"code,omitempty"`    // a word that programs compare: "timeout"; "" if none was given
	Message   string          `json:"message,omitempty"` // one sentence for a person
	Details   json.RawMessage `json:"details,omitempty"` // anything more, as JSON; nil if none
	Retryable bool            `json:"retryable"`         // whether another attempt may help; [Failf] says that it may
	After     time.Duration   `json:"after,omitempty"`   // wait this long, in nanoseconds; 0 leaves it to the policy

	// Filtered says that the filters of the retry policy were called with the original error, in the process where
	// it occurred. Retryable is their result, and they are not called again.
	Filtered bool `json:"filtered,omitempty"`
}

// The failure codes that Tasq itself sets.
const (
	CodeError    = "error"     // the work returned an error that carries no code
	CodePanic    = "panic"     // the work panicked; the details hold the stack
	CodeTimeout  = "timeout"   // the work took longer than it may
	CodeCrash    = "crash"     // the work crashed its process too often
	CodeRunaway  = "runaway"   // the command of the work would have its case loop without end
	CodeNoOutput = "no-output" // a task needs the output of a task that has none
	CodeInvalid  = "invalid"   // the output of the work is invalid

	// CodeCaseFailed is the reason of items and cases that were canceled because their case failed; resuming the case
	// replaces them.
	CodeCaseFailed = "case-failed"

	// CodePolicy is the failure of a task whose policy is not met, if the last of its work items or child cases was canceled, or completed
	// as one of too few. If it has failed, its code is that of the task. The message counts them in both cases.
	CodePolicy = "policy"

	CodeTooLarge = "too-large" // the output of the work is too large to be stored; the message has both sizes
)

// String returns "code: message", or the one that is not empty.
func (f *Failure) String() string {
	switch {
	case f == nil:
		return ""
	case f.Code == "":
		return f.Message
	case f.Message == "":
		return f.Code
	}
	return f.Code + ": " + f.Message
}

// Error returns the message, so that work can return a failure as its error: workitem.Failf("busy", "try later"), or
// &workitem.Failure{Code: "no-funds"} if another attempt does not help.
func (f *Failure) Error() string { return f.String() }

// Permanent returns the opposite of Retryable, for package retry.
func (f *Failure) Permanent() bool { return f != nil && !f.Retryable }

// RetryAfter returns After, for package retry.
func (f *Failure) RetryAfter() time.Duration {
	if f == nil {
		return 0
	}
	return f.After
}

// FailureCode returns Code, so that a failure is [Coded].
func (f *Failure) FailureCode() string {
	if f == nil {
		return ""
	}
	return f.Code
}

// FailureDetails returns Details.
func (f *Failure) FailureDetails() json.RawMessage {
	if f == nil {
		return nil
	}
	return f.Details
}

// fatal marks an error that no further attempt can repair.
type fatal struct{ err error }

func (f fatal) Error() string   { return f.err.Error() }
func (f fatal) Unwrap() error   { return f.err }
func (f fatal) Permanent() bool { return true }

// Fatal marks an error as not retryable, like retry.Permanent. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return fatal{err}
}

// IsFatal reports whether an error was marked by [Fatal].
func IsFatal(err error) bool {
	var f fatal
	return errors.As(err, &f)
}

// Coded is an error with a failure code, for FailureOf. FailureDetails returns further details as JSON, or nil.
type Coded interface {
	error
	FailureCode() string
	FailureDetails() json.RawMessage
}

// FailureOf converts the error of some work to a failure. If the error is or wraps a *Failure, the result has its code
// and details, and the message of the whole error. If it is or wraps a Coded, the result has its code and details; any
// other error gets CodeError. An error with a method Permanent() bool that returns true, such as those of Fatal and
// retry.Permanent, is not retryable. A method RetryAfter() time.Duration, as of retry.After, sets After. FailureOf(nil)
// is nil.
//
// The result can always be stored, whatever the error: a code longer than MaxCode and a message longer than MaxMessage
// are truncated, invalid UTF-8 is replaced, details longer than MaxDetails are dropped, and details that are not JSON
// become a JSON string.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := Failure{Code: CodeError, Retryable: true}
	var given *Failure
	if errors.As(err, &given) && given != nil {
		f = *given
	}
	switch text := err.Error(); {
	case errors.As(err, &given) && given == nil && text == "":
		f.Message = "the error is a nil *workitem.Failure, which is not a nil error: return nil itself, or declare the variable as an error"
	case given == nil || f.Message == "" && text != f.Code: // a bare code is not said twice
		f.Message = text
	case f.Message != "":
		f.Message = worded(err, text, f.Message)
	}
	f.coded(err)
	f.marked(err)
	f.bound()
	return &f
}

// coded takes over the code of an error that has one, unless a failure in it has said one already.
func (f *Failure) coded(err error) {
	e, ok := errors.AsType[Coded](err)
	if !ok || f.Code != CodeError {
		return
	}
	code := e.FailureCode()
	if code == "" { // as that of a nil *Failure
		return
	}
	f.Code = code
	if f.Details == nil {
		f.Details = e.FailureDetails()
	}
	if own := e.Error(); strings.HasPrefix(own, f.Code+": ") { // the code is not said twice
		f.Message = strings.Replace(f.Message, own, own[len(f.Code)+2:], 1)
	}
}

// marked takes over what an error says of a further attempt.
func (f *Failure) marked(err error) {
	if p, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err); ok && p.Permanent() {
		f.Retryable = false
	}
	if a, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok && a.RetryAfter() > 0 {
		f.After = a.RetryAfter()
	}
}

// worded is the message of a failure with what the errors around it say: "order 17: the account is empty". In their text
// the failure stands as it shows itself, with its code, or as the error that carries it does.
func worded(err error, text, message string) string {
	for _, carrier := range carriers(err) {
		if part := carrier.Error(); strings.Contains(text, part) {
			return strings.Replace(text, part, message, 1)
		}
	}
	return message
}

// carriers lists the errors from the failure that errors.As finds, or from what makes itself one, up to the outermost.
func carriers(err error) []error {
	if found := (*Failure)(nil); err == nil {
		return nil
	} else if _, is := err.(*Failure); is {
		return []error{err}
	} else if as, can := err.(interface{ As(any) bool }); can && as.As(&found) {
		return []error{err}
	}
	var inner []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		inner = carriers(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			if inner = carriers(each); inner != nil {
				break
			}
		}
	}
	if inner == nil {
		return nil
	}
	return append(inner, err)
}

// The size limits of a failure that is made from an error, in bytes. An error may contain a whole response of
// a server.
const (
	MaxCode    = 200
	MaxMessage = 16 << 10
	MaxDetails = 256 << 10
)

// bound makes a failure that a store can keep. One that is bounded stays as it is.
func (f *Failure) bound() {
	note := ""
	f.Code, f.Message = strings.ToValidUTF8(f.Code, "\uFFFD"), strings.ToValidUTF8(f.Message, "\uFFFD")
	if len(f.Code) > MaxCode {
		f.Code = strings.ToValidUTF8(f.Code[:MaxCode], "")
	}
	if len(f.Details) > 0 && !(json.Valid(f.Details) && utf8.Valid(f.Details)) {
		f.Details, _ = json.Marshal(string(f.Details)) // a string always has a JSON form
	}
	if n := len(f.Details); n > MaxDetails {
		f.Details = nil
		note = fmt.Sprintf(" (its details had %d bytes, and are left out)", n)
	}
	if n := len(f.Message); n+len(note) > MaxMessage {
		note = fmt.Sprintf("... (%d bytes in all)", n) + note
		f.Message = strings.ToValidUTF8(f.Message[:MaxMessage-len(note)], "")
	}
	f.Message += note
}

// Failf returns a retryable failure with a code and a message.
func Failf(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), Retryable: true}
}
