package command

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// suspend stops a case from starting anything new. Its reason is part of the suspension, and not only a note in the
// history, since a person who finds the case suspended needs it.
func (x *Executor) suspend(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := x.openRoot(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	why := ""
	if c.Reason != nil {
		why = c.Reason.String()
	}
	return tx.On(u, o, workflow.Result{Case: c.Case}, func(m *kernel.Machine) error { return m.Repairs().SuspendCase(c.Case, why) })
}

// move corrects the marking of a case. The note with the reason comes before the changes of the move in the same entry,
// so the history reads: why, then what.
func (x *Executor) move(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := x.openRoot(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.On(u, o, workflow.Result{Case: c.Case}, func(m *kernel.Machine) error {
		if err := m.NoteReason(c.Case, c.Reason); err != nil {
			return err
		}
		return m.Repairs().Move(c.Case, c.From, c.To, c.Force)
	})
}

// resume continues a suspended or failed case. The kernel decides which case of the tree that is, so the result is
// known only after the command.
func (x *Executor) resume(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := x.openRoot(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	return thenRemember(tx, u, o, func(m *kernel.Machine) (r workflow.Result, err error) {
		if r.Case, err = m.Repairs().Resume(c.Case, c.Payload, c.Retry); err != nil {
			return r, err
		}
		return r, m.NoteReason(r.Case, c.Reason)
	})
}

// repairItem retries, skips or gives up an item. The three are one function because they differ only in the call of the
// kernel, which decides whether the item and its case allow them:
//
//	retry     a new item, the next attempt; a case that failed with the item is resumed
//	skip      the item counts as completed, with the output of the command
//	give up   the task of an incident fails
func (x *Executor) repairItem(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, at, err := x.openItem(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	return thenRemember(tx, u, o, func(m *kernel.Machine) (workflow.Result, error) {
		item, err := workitem.ID{}, m.NoteReason(at.ID, c.Reason)
		switch {
		case err != nil:
		case c.Kind == workflow.KindRetry:
			item, err = m.Repairs().Retry(c.Item, c.Payload, c.Retry)
		case c.Kind == workflow.KindGiveUp:
			item, err = c.Item, m.Repairs().GiveUpItem(c.Item)
		default:
			item, err = m.Repairs().Skip(c.Item, c.Payload, c.Route)
		}
		return workflow.Result{Case: at.ID, Item: item}, err
	})
}

// repairIncident runs the job of an incident again, or fails the task of one. The command names the job, which the store maps to its tree; the case
// below the root is known only once the tree is open.
func (x *Executor) repairIncident(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	root, err := tx.Store().Root(tx.Context(), c.Job)
	if errors.Is(err, store.ErrNotFound) {
		return workflow.Result{}, kernel.IncidentNotOpen(c.Job)
	}
	if err != nil {
		return workflow.Result{}, fmt.Errorf("incident %s: %w", c.Job, err)
	}
	u, err := tx.Open(root)
	if err != nil {
		return workflow.Result{}, err
	}
	return thenRemember(tx, u, o, func(m *kernel.Machine) (r workflow.Result, err error) {
		if at, _ := u.Tree.Job(c.Job); at != nil {
			r.Case = at.ID
		}
		repair := m.Repairs().RetryIncident
		if c.Kind == workflow.KindGiveUpIncident {
			repair = m.Repairs().GiveUpIncident
		}
		if err := repair(c.Job); err != nil {
			return r, err
		}
		return r, m.NoteReason(r.Case, c.Reason)
	})
}

// thenRemember runs a command whose result is known only after it, such as the id of a new item, and then records its
// key. A command that fails has no result, and its key can be used again.
func thenRemember(
	tx *commit.Tx, u *commit.TreeWrite, o commit.Operation, f func(*kernel.Machine) (workflow.Result, error),
) (workflow.Result, error) {
	var result workflow.Result
	_, err := tx.On(u, o.Unkeyed(), result, func(m *kernel.Machine) (err error) {
		result, err = f(m)
		return err
	})
	if err != nil {
		return workflow.Result{}, err
	}
	return result, tx.Remember(u, o, result)
}

// openItem opens the tree of a command's item, and returns the case of the item. If the command is restricted to a
// task, the item must belong to that.
func (x *Executor) openItem(tx *commit.Tx, c *workflow.Command) (*commit.TreeWrite, *state.Case, error) {
	root, err := tx.RootOfItem(c.Item)
	if err != nil {
		return nil, nil, err
	}
	u, err := tx.Open(root)
	if err != nil {
		return nil, nil, err
	}
	at, it := u.Tree.Item(c.Item)
	if it == nil {
		return nil, nil, x.missing(tx, c)
	}
	if c.Workflow != "" && at.Workflow != c.Workflow || c.Task != "" && it.Task != c.Task {
		return nil, nil, fmt.Errorf("work item %s belongs to task %s/%s, and the action was asked of task %s/%s: %w",
			c.Item, at.Workflow, it.Task, c.Workflow, c.Task, store.ErrNotFound)
	}
	return u, at, nil
}
