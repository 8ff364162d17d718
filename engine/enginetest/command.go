package enginetest

import (
	"context"
	"encoding/json"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Do has an engine or a transaction execute a command, for tests that need its error alone.
func Do(ctx context.Context, e workflow.Doer, c workflow.Command) error {
	_, err := e.Do(ctx, c)
	return err
}

// Start starts a case of a workflow by its name, and returns its id.
func Start(
	ctx context.Context, e workflow.Doer, name string, input json.RawMessage, opts ...workflow.Option,
) (workitem.CaseID, error) {
	started, err := e.Do(ctx, workflow.Start(name, input, opts...))
	return started.Case, err
}
