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

// Warnings returns the findings of verification that do not prevent the use of the workflow: probable mistakes, findings that leave the
// net weakly sound, NoOutput where it is undecided, and verify.Undecided. Those that [Silence] names are omitted. An engine logs the
// warnings when it is opened with the workflow.
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

// Start starts a case. The error wraps a *domain.InvalidError if the input is invalid.
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

// Case describes a child case with this input, for [Choice] and for [activities.Activation.NewCase]. An invalid
// input is rejected when the case starts.
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
