package retry

import (
	"errors"
	"slices"
	"time"
)

// Failure describes a failed attempt to a policy. Its fields have the same meaning in process and in durable
// retries, so that filters work in both.
type Failure struct {
	Attempt int           // the number of the attempt that failed, from 1
	Elapsed time.Duration // from the start of the first attempt until now, runs and waits included
	Err     error         // why it failed
	Name    string        // the name of the work; "" if it has none
	Input   any           // the input of the work, with its Go type; nil if unknown

	// Refused says that the attempt returned a value that a check, or the validation of its type, rejected. Err is the
	// reason. Filters are not called for it, since they select errors.
	Refused bool
}

// Filter reports whether a failure is retryable. A filter that panics accepts nothing; see [Policy.Judge].
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

// OnCode accepts every error with one of the failure codes, as returned by a method FailureCode() string: a
// *workitem.Failure with its Code, a PanicError ("panic"), invalid data ("invalid"), a run that timed out
// ("timeout"). It is the only filter that also matches failures that were reported as data, by a person or by another
// process. If several errors of a chain have that method, the outermost one counts.
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
// no other attempt if
//
//   - the error is permanent (see [Permanent]),
//   - the policy has filters and none accepts the failure,
//   - Attempts are used up, or
//   - the wait would exceed MaxElapsed.
//
// The wait is the delay of the error (see After), or otherwise Policy.Wait with jitter. It is never negative. Except
// for the random numbers, the result depends only on the policy and f, so a durable engine can call it with stored
// data.
func (p Policy) Next(f Failure) (wait time.Duration, again bool) {
	if !p.Accepts(f) {
		return 0, false
	}
	return p.afford(f)
}

// Accepts reports whether a failure is retryable, regardless of the number of attempts left: its error is not
// permanent, and a filter accepts it, unless the policy has no filters or a value was rejected. A durable engine
// calls it while it has the error, and stores the result.
func (p Policy) Accepts(f Failure) bool {
	accepted, _ := p.Judge(f)
	return accepted
}

// Judge is [Policy.Accepts], and also returns the first filter that panicked; nil if none did.
func (p Policy) Judge(f Failure) (accepted bool, broken *FilterError) {
	switch {
	case IsPermanent(f.Err):
		return false, nil
	case f.Refused, len(p.Filters) == 0:
		return true, nil
	}
	for i, match := range p.Filters {
		ok, panicked := safely(match, f)
		if panicked != nil && broken == nil {
			broken = &FilterError{Number: i + 1, Panic: panicked}
		}
		if ok {
			return true, broken
		}
	}
	return false, broken
}

// safely asks a filter. A panic is a bug in the filter, which must not hide the error that it was asked about.
func safely(match Filter, f Failure) (ok bool, panicked *PanicError) {
	defer func() {
		if p := recover(); p != nil {
			ok, panicked = false, NewPanicError(p)
		}
	}()
	return match(f), nil
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
