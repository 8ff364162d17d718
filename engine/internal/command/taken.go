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

// CodeReplaced is the code of the reason with which a case is canceled that another one replaces.
const CodeReplaced = "replaced"

// maxRetries bounds how often a start is retried because the case that held its key was removed before it was read.
const maxRetries = 100

// beginOrFind starts a case, or follows the start's IfTaken policy if another case holds its business key.
func (x *Executor) beginOrFind(
	tx *commit.Tx, fresh *state.Case, d *workflow.Definition, c *workflow.Command, o commit.Operation,
) (result workflow.Result, err error) {
	if c.IfTaken == "" || c.IfTaken == workflow.Refuse || c.IfTaken == workflow.Queued {
		return x.begin(tx, fresh, d, c, o, nil)
	}
	if c.IfTaken == workflow.Debounced {
		return x.debounce(tx, fresh, d, c, o)
	}
	for gone := 0; ; {
		again := *fresh // what begins becomes a part of a tree
		err = tx.Savepoint(func() (err error) {
			result, err = x.begin(tx, &again, d, c, o, nil)
			return err
		})
		var taken *workflow.KeyTakenError
		if throttled := (*workflow.ThrottledError)(nil); errors.As(err, &throttled) {
			taken = &workflow.KeyTakenError{Workflow: throttled.Workflow, Key: throttled.Key, Case: throttled.Case}
		} else if !errors.As(err, &taken) {
			return result, err
		}
		u, opened := tx.Open(taken.Case)
		if gone++; errors.Is(opened, store.ErrNotFound) && gone < maxRetries { // another engine has removed it since it was read
			continue
		}
		if opened != nil {
			return workflow.Result{}, opened
		}
		if c.IfTaken == workflow.Return {
			result = workflow.Result{Case: taken.Case, Found: true}
			return result, tx.Remember(u, o, result)
		}
		if err := x.replaceHolder(tx, u, c, o, err); err != nil {
			return workflow.Result{}, err
		}
	}
}

// The policies of a start whose business key is taken, by what the holder is:
//
//	               has not begun   in progress   completed
//	refuse         error           error         error       the default
//	return         its id          its id        its id
//	replace        canceled        error         error
//	supersede      canceled        canceled      error
//
// A queued start waits for its turn instead (startNextQueued), and a debounced one has a rule of its own (debounce).

// replaceHolder cancels the case that holds the key if the policy of the start allows it; otherwise it returns taken.
func (x *Executor) replaceHolder(tx *commit.Tx, u *commit.TreeWrite, c *workflow.Command, o commit.Operation, taken error) error {
	holder := u.Tree.Case(u.Tree.Root)
	switch {
	case holder.State.Final():
		return fmt.Errorf("%w: it has completed", taken)
	case c.IfTaken == workflow.Replace && holder.Begun:
		return fmt.Errorf("%w: it has begun, and %q is for one that has not", taken, c.IfTaken)
	}
	return cancelReplaced(tx, u, o)
}

// cancelReplaced cancels a case that another one replaces.
func cancelReplaced(tx *commit.Tx, u *commit.TreeWrite, o commit.Operation) error {
	reason := &workitem.Failure{Code: CodeReplaced, Message: "a start with the same business key takes its place"}
	_, err := tx.On(u, o.Unkeyed(), workflow.Result{}, func(m *kernel.Machine) error { return m.Cancel(u.Tree.Root, reason) })
	return err
}

// startNextQueued starts the queued case that waits for a root case that has ended, if it is its turn.
func (x *Executor) startNextQueued(tx *commit.Tx, ended *state.Case) error {
	holders, err := tx.KeyHolders(ended)
	if err != nil {
		return err
	}
	for _, id := range holders {
		u, err := tx.Open(id)
		if errors.Is(err, store.ErrNotFound) { // it was removed by another engine since the holders were read
			continue
		}
		if err != nil {
			return err
		}
		if u.Tree.Case(id).State.Final() { // it has completed, and was not queued itself
			continue
		}
		if u.Tree.Case(id).Turn() == nil { // it has had its turn already
			return nil
		}
		return tx.Internal(u, "turn", (*kernel.Machine).Turn)
	}
	return nil
}
