package retry

import (
	"errors"
	"slices"
	"time"
)

// Failure is how an attempt failed, for a policy. Its fields are the same wherever a policy is asked, in process or
// durable, so that a filter works in both places.
type Failure struct {
	Attempt int           // the number of the attempt that failed, from 1
	Elapsed time.Duration // from the start of the first attempt until now, runs and waits included
	Err     error         // why it failed
	Name    string        // what failed, for filters that serve several; "" if it has no name
	Input   any           // what it was given, with its Go type; nil if it is unknown

	// Refused says that the attempt returned a value, which a check, or the rules of its own type, refused. Err is the
	// reason. Filters are not asked about it: they say which errors are worth another attempt.
	Refused bool
}

// Filter accepts the failures that are worth another attempt. One that panics accepts nothing.
type Filter func(Failure) bool

// On accepts every error that is one of the targets, in the sense of errors.Is.
func On(targets ...error) Filter {
	return func(f Failure) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(f.Err, t) })
	}
}

// OnType accepts every error that is, or wraps, an E, in the sense of errors.As: retry.OnType[*net.OpError]().
func OnType[E error]() Filter {
	return func(f Failure) bool {
		_, ok := errors.AsType[E](f.Err)
		return ok
	}
}

// OnCode accepts every error that has one of the failure codes, by a method FailureCode() string: a *workitem.Failure
// with its Code, a [PanicError] ("panic"), data that breaks its rules ("invalid"), a run that took too long
// ("timeout"). It is the one filter that also knows failures which were reported as data: by a person, or by another
// process. Where several errors of a chain have that method, the outermost one counts.
func OnCode(codes ...string) Filter {
	return func(f Failure) bool {
		e, ok := errors.AsType[interface {
			error
			FailureCode() string
		}](f.Err)
		return ok && slices.Contains(codes, e.FailureCode())
	}
}

// Next decides what follows a failed attempt: another one after the wait, or none (false, with a wait of 0). There is
// none if
//
//   - the error is permanent (see [Permanent]),
//   - the policy has filters and none accepts the failure,
//   - Attempts are used up, or
//   - the wait would cross MaxElapsed.
//
// The wait is the delay that the error carries (see [After]), otherwise [Policy.Wait] spread by the jitter. It is never
// negative. Apart from the source of chance the answer depends on nothing but the policy and f, so a durable engine may
// ask with what it has stored.
func (p Policy) Next(f Failure) (wait time.Duration, again bool) {
	if !p.Accepts(f) {
		return 0, false
	}
	return p.afford(f)
}

// Accepts reports whether a failed attempt is worth another one at all, however many are left: its error is not
// permanent, and one of the filters accepts it, if the policy has any and the value was not merely refused. A durable
// engine asks it while it has the error, and stores the answer.
func (p Policy) Accepts(f Failure) bool {
	if IsPermanent(f.Err) {
		return false
	}
	return f.Refused || len(p.Filters) == 0 ||
		slices.ContainsFunc(p.Filters, func(match Filter) bool { return safely(match, f) })
}

// safely asks a filter. A panic is a bug in the filter, which must not hide the error that it was asked about.
func safely(match Filter, f Failure) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return match(f)
}

// afford says whether attempts and time are left, and how long to wait.
func (p Policy) afford(f Failure) (time.Duration, bool) {
	if f.Attempt >= p.Attempts {
		return 0, false
	}
	wait, known := Delay(f.Err)
	if !known {
		wait = p.spread(p.Wait(f.Attempt))
	}
	if p.MaxElapsed > 0 && wait > p.MaxElapsed-max(f.Elapsed, 0) {
		return 0, false
	}
	return wait, true
}
