package workitem

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Failure says why a work item, a job or a case failed. It is data, not an error: a failed item is an outcome that the
// process answers.
type Failure struct {
	Code      string          `json:"code,omitempty"`    // a word that programs compare: "timeout"; "" if none was given
	Message   string          `json:"message,omitempty"` // one sentence for a person
	Details   json.RawMessage `json:"details,omitempty"` // anything more, as JSON; nil if none
	Retryable bool            `json:"retryable"`         // whether another attempt may help; [Failf] says that it may
	After     time.Duration   `json:"after,omitempty"`   // wait this long, in nanoseconds; 0 leaves it to the policy

	// Filtered says that the filters of the retry policy have seen the error that this was made of, in the process
	// where it occurred. Retryable holds their answer, and they are not asked again.
	Filtered bool `json:"filtered,omitempty"`
}

// The codes that Tasq gives itself.
const (
	CodeError    = "error"     // the work returned an error that carries no code
	CodePanic    = "panic"     // the work panicked; the details hold the stack
	CodeTimeout  = "timeout"   // the work took longer than it may
	CodeCrash    = "crash"     // the work took its process down too often
	CodeNoOutput = "no-output" // a task needs the output of one that has given none
	CodeInvalid  = "invalid"   // the work returned an output that its own rules refuse

	// CodeCaseFailed is the reason of what was canceled because its case failed, which opens it again if it is resumed.
	CodeCaseFailed = "case-failed"

	CodeTooLarge = "too-large" // the work returned an output that is too large to be kept; the message has both lengths
)

// String returns "code: message", or what there is of the two.
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

// Error makes a failure usable as the error of the work, with its code kept: return workitem.Failf("busy", "try later"),
// or &workitem.Failure{Code: "no-funds"} where another attempt does not help.
func (f *Failure) Error() string { return f.String() }

// Permanent reports the opposite of Retryable, by which package retry knows a failure that is returned as an error.
func (f *Failure) Permanent() bool { return f != nil && !f.Retryable }

// RetryAfter returns After, by which package retry knows the wait that a failure asks for.
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

// Fatal marks an error that no further attempt can repair, so that no retry policy makes one: it does what
// retry.Permanent does. Fatal(nil) is nil.
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

// Coded is an error that says its own failure code, for [FailureOf]: FailureDetails returns JSON, nil if there is
// nothing more to say.
type Coded interface {
	error
	FailureCode() string
	FailureDetails() json.RawMessage
}

// FailureOf makes a failure of the error that some work returned. An error that is or wraps a *Failure keeps that one's
// code and details, and its message with the words that were put around it. One that is or wraps a [Coded] has the code
// and the details of that; any other has [CodeError]. An error with a method Permanent() bool that returns true, such
// as those of [Fatal] and retry.Permanent, is not retryable; a method RetryAfter() time.Duration, as that of
// retry.After, asks for a wait. FailureOf(nil) is nil.
//
// A failure can always be kept, whatever the error was: a code longer than [MaxCode] and a message longer than
// [MaxMessage] are cut, bytes that are no UTF-8 are replaced, details longer than [MaxDetails] are left out, and details
// that are not JSON become a JSON string.
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

// The limits of a failure that is made of an error, in bytes. An error may quote a whole answer of a server.
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

// Failf makes a retryable failure with a code and a message.
func Failf(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), Retryable: true}
}
