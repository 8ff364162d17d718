package activities

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/retry"
)

// Refused returns why a ready-made answer cannot work, such as [Retry] with a policy of no attempts; nil for any other
// answer, which it does not call. Package builder asks, so that the reason is a problem of Build. Where nobody asks,
// the answer fails every change that it is told of.
func Refused(answer func(context.Context, *Change) error) error {
	if answer == nil || reflect.ValueOf(answer).Pointer() != refusals {
		return nil
	}
	return answer(context.Background(), nil)
}

// refused makes an answer that holds nothing but the reason why it is none. All of them are one piece of code, by which
// Refused knows them; inlined into a caller it would be another.
//
//go:noinline
func refused(reason error) func(context.Context, *Change) error {
	return func(context.Context, *Change) error { return reason }
}

var refusals = reflect.ValueOf(refused(nil)).Pointer()

// checkRetry is stricter than the policy itself, whose zero value is one attempt: an answer that never answers is a
// mistake. One attempt in so many words is none, since a program may be configured so.
func checkRetry(p retry.Policy) error {
	if p.Attempts == 0 && p.Validate() == nil {
		return fmt.Errorf("%w: Attempts is 0: say how many there are in all, the first included", retry.ErrInvalid)
	}
	return p.Validate()
}

// refusalOf finds the refused ones among answers; nil if there are none.
func refusalOf[S any](answers []func(context.Context, S) error) func(context.Context, S) error {
	var reasons []error
	for _, answer := range answers {
		if change, ok := any(answer).(func(context.Context, *Change) error); ok {
			reasons = append(reasons, Refused(change))
		}
	}
	reason := errors.Join(reasons...)
	if reason == nil {
		return nil
	}
	return any(refused(reason)).(func(context.Context, S) error) // only an S that is a *Change has any
}
