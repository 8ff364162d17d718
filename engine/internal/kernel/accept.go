package kernel

import (
	"encoding/json"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Accept decodes and validates a payload with the definition of the task.
func Accept(spec *workflow.Task, a workitem.Action, payload json.RawMessage) (json.RawMessage, error) {
	if spec.Accept == nil {
		if len(payload) == 0 {
			return nil, nil
		}
		return payload, domain.CheckJSON(payload)
	}
	return spec.Accept(a, payload)
}

// isAccepted reports whether an item's input is the same bytes as the input of its case, which the definition has
// accepted in this command as a value of the same type. Then it need not be decoded again. A case that an older program
// has started is checked by the present rules.
// The comparison of addresses is enough: the input of a task that passes on the input of the case is the same slice.
// The same bytes at another address are decoded once more, which only takes longer.
func (m *Machine) isAccepted(c *state.Case, spec *workflow.Task, input json.RawMessage) bool {
	if m.opened == nil || m.opened.ID != c.ID || !spec.AcceptIsPlain || len(input) == 0 || len(input) != len(c.Input) || &input[0] != &c.Input[0] {
		return false
	}
	d := m.definitions.host.Definition(c.Fingerprint)
	return d != nil && d.AcceptIsPlain && d.InputType != nil && d.InputType == spec.InputType
}
