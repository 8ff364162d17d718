// Package readable checks errors that a user's function has returned, before the engine looks at them.
//
// The methods of such an error may panic: those of a nil pointer that was returned as an error do, which is a common
// mistake. The engine calls the methods on its own goroutines, where a panic would end the process. An error may also
// wrap itself: errors.Is and errors.As never return from such a chain, and its text overflows the stack, which ends the
// process, too.
package readable

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Error returns nil if the engine can call all methods of err that it may need: Error, those by which errors.Is and
// errors.As follow a chain, and those that describe a failure. Otherwise it returns an error that says which method
// failed, and how. It does not wrap err, since the methods of err cannot be called. A nil error is readable.
func Error(err error) (unreadable error) {
	if err == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			unreadable = fmt.Errorf("the error that was returned, of type %T, panics when it is read: %v; if it is a nil pointer, return nil", err, p)
		}
	}()
	if count(err, 0) > most {
		return fmt.Errorf("the error that was returned, of type %T, wraps itself, or more than %d errors: let Unwrap return what is wrapped", err, most)
	}
	_ = err.Error()
	_ = errors.Is(err, errNone) // calls all Is and Unwrap methods
	if e, ok := errors.AsType[coded](err); ok {
		_, _ = e.FailureCode(), e.FailureDetails()
	}
	if e, ok := errors.AsType[permanent](err); ok {
		_ = e.Permanent()
	}
	if e, ok := errors.AsType[after](err); ok {
		_ = e.RetryAfter()
	}
	return nil
}

// most is how many errors an error may consist of.
const most = 10_000

// count returns n and the number of errors that err consists of. It stops soon after most.
func count(err error, n int) int {
	for err != nil && n <= most {
		n++
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, each := range e.Unwrap() {
				n = count(each, n)
			}
			return n
		default:
			return n
		}
	}
	return n
}

// errNone is an error that no other error matches.
var errNone = errors.New("none")

// The methods by which an error describes a failure; see workitem.FailureOf and package retry.
type (
	coded interface {
		error
		FailureCode() string
		FailureDetails() json.RawMessage
	}
	permanent interface {
		error
		Permanent() bool
	}
	after interface {
		error
		RetryAfter() time.Duration
	}
)
