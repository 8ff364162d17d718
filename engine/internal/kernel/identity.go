package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// identify sets the business key and the labels of a new case. What the start gave takes precedence over what the
// definition computes from the input. A unique key that another case holds is an error.
func (m *Machine) identify(c *state.Case, d *workflow.Definition) error {
	made, err := m.callbacks.identity(c, d)
	if err != nil {
		return fmt.Errorf("business key and labels: %w", err)
	}
	id := workflow.Identity{Key: c.Key, Labels: c.Labels}.Over(made)
	if err := id.Check(); err != nil {
		return err
	}
	c.Key, c.Labels = id.Key, id.Labels
	if !c.Parent.IsZero() {
		return nil
	}
	return m.keys.claim(c, d.UniqueKey, m.now, m.recorded.canWait())
}

// RequireKey sets how the next Start handles the business key of its case.
func (m *Machine) RequireKey(w workflow.KeyRequirements) { m.keys.required = w }

// waitTurn opens the job by which a case waits for those before it, see [Machine.Turn].
func (m *Machine) waitTurn(id workitem.CaseID) step {
	return func() error {
		c := m.tree.Case(id)
		if c.State.Final() {
			return nil // onInitialized has ended the case
		}
		return m.jobs.openAs(state.JobWaiting, id, &state.Job{Kind: state.JobStart, Priority: c.Priority})
	}
}

// Turn begins a root case that has waited for those before it.
func (m *Machine) Turn() error {
	c := m.tree.Case(m.tree.Root)
	return m.jobs.move(c.ID, c.Turn(), func(e *state.JobMoved) { e.To, e.Due = state.JobPending, m.now })
}
