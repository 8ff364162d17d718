package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// How the business key of a root case is determined, and whether another live case may hold it:
//
//	the start gives C-1                        C-1               if the definition does not say UniqueKey
//	it does not, the input has no: 7           7                 as above, of a definition that makes the key of the input
//	it has OncePer day, for C-1                C-1 2026-11-23    no
//	it has IfTaken, for C-1                    C-1               no: refused, or what IfTaken says
//	it has IfTaken queue, for C-1              C-1               yes: it waits until those before it have ended
//	it is debounced, for C-1                   C-1               yes, if it was debounced and has begun
//	it is throttled, for C-1                   C-1               as the first two, if not too many have started
//
// A child case has a key and labels so that it can be found, but holds no key: its root case does.

// identify sets the business key and the labels of a new case. What the start gave takes precedence over what the
// definition computes from the input. A unique key that another case holds is an error.
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
	if m.key.Unique && c.Key == "" {
		return fmt.Errorf("%w: IfTaken and OncePer need a business key, and the case has none", workflow.ErrBadCommand)
	}
	if m.key.Throttle > 0 {
		if err := m.throttle(c); err != nil {
			return err
		}
	}
	if m.key.Window != "" {
		c.Key += " " + m.key.Window
		if err := (workflow.Identity{Key: c.Key}).Check(); err != nil {
			return err
		}
	}
	c.Unique = c.Key != "" && (d.UniqueKey || m.key.Unique || c.Unique)
	return m.mayHold(c)
}

// throttle returns an error if the business key has used up its starts within the window that ends now.
func (m *Machine) throttle(c *state.Case) error {
	if c.Key == "" {
		return fmt.Errorf("%w: Throttle needs a business key, and the case has none", workflow.ErrBadCommand)
	}
	starts, err := m.host.KeyStarts(c, m.now.Add(-m.key.Within))
	first := len(starts) - m.key.Throttle
	if err != nil || first < 0 {
		return err
	}
	again := starts[first].At.Add(m.key.Within)
	return &workflow.ThrottledError{Workflow: c.Workflow, Key: c.Key, Throttle: m.key.Throttle, Window: m.key.Within,
		Case: starts[len(starts)-1].Case, Again: again, Wait: again.Sub(m.now)}
}

// RequireKey sets how the next Start handles the business key of its case.
func (m *Machine) RequireKey(w workflow.KeyRequirements) { m.key = w }

// mayHold returns an error if another case holds the unique key: a committed one, or one of this transaction. If
// engines share a database, the look-up locks the key until the transaction ends. So if two engines start a case with
// one key at once, the second waits, and then finds the case of the first.
func (m *Machine) mayHold(c *state.Case) error {
	if !c.Unique {
		return nil
	}
	holders, err := m.host.KeyHolders(c)
	holders = slices.DeleteFunc(holders, func(id workitem.CaseID) bool { return slices.Contains(m.key.Except, id) })
	if err != nil || len(holders) == 0 {
		return err
	}
	if m.key.Queued && len(m.copied) == 0 {
		return m.queue(holders)
	}
	return &workflow.KeyTakenError{Workflow: c.Workflow, Key: c.Key, Case: holders[0]}
}

// ErrBefore says that a case would have to wait for one with a greater id, made by an engine whose clock is ahead.
// Queued cases begin in the order of their ids, so the case has to be started again with a new id.
var ErrBefore = errors.New("the id of the case is below that of one that was started before it")

// queue determines whether a case has to wait for others that hold its key. A run that takes over steps cannot wait,
// since nothing would store the steps until it begins.
func (m *Machine) queue(holders []workitem.CaseID) (err error) {
	for _, id := range slices.Backward(holders) {
		if m.mustWait, err = m.host.IsLive(id); !m.mustWait && err == nil {
			continue
		}
		if err == nil && bytes.Compare(m.tree.Root[:], id[:]) < 0 {
			err = ErrBefore
		}
		return err
	}
	return nil
}

// waitTurn opens the job by which a case waits for those before it, see [Machine.Turn].
func (m *Machine) waitTurn(id workitem.CaseID) step {
	return func() error {
		c := m.tree.Case(id)
		if c.State.Final() {
			return nil // onInitialized has ended the case
		}
		return m.openJobAs(state.JobWaiting, id, &state.Job{Kind: state.JobStart, Priority: c.Priority})
	}
}

// Turn begins a root case that has waited for those before it.
func (m *Machine) Turn() error {
	c := m.tree.Case(m.tree.Root)
	return m.moveJob(c.ID, c.Turn(), func(e *state.JobMoved) { e.To, e.Due = state.JobPending, m.now })
}

// queued reports whether a case holds its key only until it ends, see [workflow.Queued] and [workflow.Debounced].
func queued(c *state.Case) (bool, error) {
	if !c.Unique || len(c.Options) == 0 {
		return false, nil
	}
	o, err := workflow.OptionsOf(Info(c))
	return o.Queued || !o.Debounced.IsZero(), err
}
