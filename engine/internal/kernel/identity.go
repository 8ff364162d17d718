package kernel

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// Where the key of a root case comes from, and whether another live case may have it:
//
//	the start gives C-1                        C-1               if the definition does not say UniqueKey
//	it does not, the input has no: 7           7                 as above, of a definition that makes the key of the input
//	it has OncePer day, for C-1                C-1 2026-11-23    no
//	it has IfTaken, for C-1                    C-1               no: refused, or what IfTaken says
//
// A child case has a key and labels to be found by, and holds nothing: its root case stands for it.

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
	c.Key, c.Labels = id.Key, id.Labels
	if !c.Parent.IsZero() {
		return nil
	}
	if m.wish.Unique && c.Key == "" {
		return fmt.Errorf("%w: IfTaken and OncePer need a business key, and the case has none", workflow.ErrBadCommand)
	}
	if m.wish.Window != "" {
		c.Key += " " + m.wish.Window
		if err := (workflow.Identity{Key: c.Key}).Check(); err != nil {
			return err
		}
	}
	c.Unique = c.Key != "" && (d.UniqueKey || m.wish.Unique || c.Unique)
	return m.mayHold(c)
}

// Wish says what the start that follows asks of the business key of its case.
func (m *Machine) Wish(w workflow.Wish) { m.wish = w }

// mayHold refuses a case whose unique key another one holds: one that is committed, or one of this transaction. Where engines share a
// database, the look-up locks the key until the transaction ends. So of two that start a case with one key at once, one waits, and then
// meets the case of the other.
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
