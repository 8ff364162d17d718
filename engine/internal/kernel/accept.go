package kernel

import (
	"encoding/json"

	"github.com/tasq-dev/tasq/domain"
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
