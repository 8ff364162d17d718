package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Workflow is a verified definition whose cases take a C. It is immutable and safe for concurrent use.
type Workflow[C any] struct {
	*workflow.Definition
	Description string // as [Describe] said; "" if nothing
}

// Warnings lists what verification says of the net that does not prevent its use: what is probably not meant, a
// finding that leaves the net weakly sound, [NoOutput] where it is undecided, or [verify.Undecided]. Those that [Silence] names are not
// among them. It is nil if there is none. An engine logs them when it is opened with the workflow.
func (w *Workflow[C]) Warnings() []verify.Finding {
	if w.isNil() {
		return nil
	}
	return w.Verification.Warnings
}

// Untyped returns the definition without its payload types, which is what an engine opens; nil of a nil workflow.
func (w *Workflow[C]) Untyped() *workflow.Definition {
	if w == nil {
		return nil
	}
	return w.Definition
}

func (w *Workflow[C]) isNil() bool { return w == nil || w.Definition == nil }

// Start starts a case. The error wraps a *domain.InvalidError if the input breaks its own rules.
func (w *Workflow[C]) Start(ctx context.Context, e workflow.Doer, input C, opts ...workflow.Option) (workitem.CaseID, error) {
	if w.isNil() {
		return workitem.CaseID{}, errors.New("start a case: the workflow is nil; build it first")
	}
	id, err := startCase(ctx, e, w.Definition, input, opts)
	if err != nil {
		return workitem.CaseID{}, fmt.Errorf("start %s: %w", w.Name, err)
	}
	return id, nil
}

// Case describes a child case with this input, for [Choice] and for activities.Activation.NewCase. An input that
// breaks its own rules is refused when the case starts.
func (w *Workflow[C]) Case(input C) activities.NewCase {
	n := activities.NewCase{}
	if w.isNil() {
		return n
	}
	n.Workflow = w.Name
	payload, err := json.Marshal(input)
	if err != nil {
		payload = unwritable(err)
	}
	n.Input = payload
	return n
}
