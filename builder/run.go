package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

type workKey struct{}

// WorkFrom returns the job that a Run, or the function of a job, is called for: its case, its item, the attempt and the
// fencing token. It returns false in any other context.
func WorkFrom(ctx context.Context) (*activities.Work, bool) {
	w, ok := ctx.Value(workKey{}).(*activities.Work)
	return w, ok
}

// runnerOf wraps a typed Run for a worker, which makes a failure of the error, and of a panic.
func runnerOf[In, Out any](run func(context.Context, In) (Out, error)) func(
	context.Context, *activities.Work,
) (json.RawMessage, error) {
	result := encodeOutput[Out]
	if isAccepted[Out]() {
		result = encodeAccepted[Out]
	}
	return func(ctx context.Context, w *activities.Work) (json.RawMessage, error) {
		in, err := restore[In](w.Input)
		if err != nil {
			return nil, workitem.Fatal(fmt.Errorf("input of %s: %w", w.Item.Label(), err))
		}
		out, err := run(context.WithValue(ctx, workKey{}, w), in)
		if err != nil {
			return nil, err
		}
		return result(out)
	}
}

// isAccepted reports whether encodeAccepted can be used for a type.
func isAccepted[Out any]() bool {
	t := reflect.TypeFor[Out]()
	return t.Kind() == reflect.Struct && domain.IsFaithful(t)
}

// encodeAccepted encodes what a function returned as the acceptor of its type has it. To read what was written, and to write it again, would
// change nothing.
func encodeAccepted[Out any](out Out) (json.RawMessage, error) {
	raw, err := encodeOutput(out)
	if err == nil && domain.Corrected(raw) {
		if raw, err = domain.Canonical[Out](raw); err != nil {
			err = &activities.OutputError{Err: err}
		}
	}
	return raw, err
}

// decoderOf makes a P of an input for the filters of a retry policy.
func decoderOf[P any]() func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) { return restore[P](raw) }
}

func asError[E error](err error, target *E) bool { return errors.As(err, target) }
