package activities

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/retry"
)

// Refused returns why a ready-made activity is invalid, such as Retry with a policy of no attempts; nil for any other
// function, which it does not call. Package builder calls it to report the reason as a problem of Build. An invalid
// activity that is used nevertheless returns an error for every change.
func Refused(answer func(context.Context, *Change) error) error {
	if r := partsOf(answer); r != nil {
		return r.refusal
	}
	return nil
}

// RetryOf returns the policy of Retry or Resume, also within All. It returns the zero policy if there are several,
// and for any other function, which it does not call.
func RetryOf(answer func(context.Context, *Change) error) retry.Policy {
	if r := partsOf(answer); r != nil && r.refusal == nil && len(r.retries) == 1 {
		return r.retries[0]
	}
	return retry.Policy{}
}

// ready is a ready-made answer, with what a definition has to know of it before anything happens.
type ready struct {
	refusal error // why it cannot work; nil if it can
	retries []retry.Policy
	answer  func(context.Context, *Change) error
}

// made returns the answer as a function. All of them are one piece of code, by which [inside] knows them; inlined into
// a caller it would be another. A change that is nil asks for the answer itself.
//
//go:noinline
func (r *ready) made() func(context.Context, *Change) error {
	return func(ctx context.Context, c *Change) error {
		switch {
		case c == nil:
			*ctx.Value(insideKey{}).(**ready) = r
			return nil
		case r.refusal != nil:
			return r.refusal
		}
		return r.answer(ctx, c)
	}
}

type insideKey struct{}

var readyMade = reflect.ValueOf((&ready{}).made()).Pointer()

// partsOf returns what a ready-made answer is made of; nil of any other answer, which it does not call.
func partsOf(answer func(context.Context, *Change) error) *ready {
	if answer == nil || reflect.ValueOf(answer).Pointer() != readyMade {
		return nil
	}
	var r *ready
	_ = answer(context.WithValue(context.Background(), insideKey{}, &r), nil)
	return r
}

// checkRetry is stricter than the policy itself, whose zero value is one attempt: an answer that never answers is a
// mistake. One attempt in so many words is none, since a program may be configured so.
func checkRetry(p retry.Policy) error {
	if p.Attempts == 0 && p.Validate() == nil {
		return fmt.Errorf("%w: Attempts is 0: say how many there are in all, the first included", retry.ErrInvalid)
	}
	return p.Validate()
}

// combine puts together what is known of the ready-made ones among answers; nil if there are none.
func combine[S any](answers []func(context.Context, S) error) *ready {
	var all *ready
	for _, answer := range answers {
		change, ok := any(answer).(func(context.Context, *Change) error)
		if !ok {
			return nil
		}
		if r := partsOf(change); r != nil {
			if all == nil {
				all = new(ready)
			}
			all.refusal = errors.Join(all.refusal, r.refusal)
			all.retries = append(all.retries, r.retries...)
		}
	}
	return all
}
