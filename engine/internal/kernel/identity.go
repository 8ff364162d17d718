package kernel

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// identify gives a fresh case its business key and its labels: what the case was given goes before what its definition makes of the
// input. A unique key that another case holds is refused.
func (m *Machine) identify(c *state.Case, d *workflow.Definition) error {
	var made workflow.Identity
	if d.Identity != nil {
		err := m.host.Call(m.ctx, func(context.Context) (err error) {
			made, err = d.Identity(c.Input)
			return err
		})
		if err != nil {
			return fmt.Errorf("business key and labels: %w", err)
		}
	}
	id := workflow.Identity{Key: c.Key, Labels: c.Labels}.Over(made)
	if err := id.Check(); err != nil {
		return err
	}
	c.Key, c.Labels, c.Unique = id.Key, id.Labels, d.UniqueKey && id.Key != "" && c.Parent.IsZero()
	return m.mayHold(c)
}

// A unique key is looked up twice. Here the holder is found among the cases that are committed and those of this transaction, which
// gives an error with its id. Two engines that start a case with one key at once both find no holder; the store's unique index then
// refuses the second commit, which runs again and meets the first case here.

// mayHold refuses a case whose unique key another one holds.
func (m *Machine) mayHold(c *state.Case) error {
	if !c.Unique {
		return nil
	}
	holder, err := m.host.KeyHolder(c)
	if err == nil && !holder.IsZero() {
		err = &workflow.KeyTakenError{Workflow: c.Workflow, Key: c.Key, Case: holder}
	}
	return err
}
