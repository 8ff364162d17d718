package command

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// CodeReplaced is that of the reason for which a case is canceled whose place another one takes.
const CodeReplaced = "replaced"

// beginOrFind starts a case, or does what the start says if another one holds its business key.
func (x *Executor) beginOrFind(
	tx *commit.Tx, fresh *state.Case, d *workflow.Definition, c *workflow.Command, o commit.Operation,
) (workflow.Result, error) {
	if c.IfTaken == "" || c.IfTaken == workflow.Refuse {
		return x.begin(tx, fresh, d, c, o, nil)
	}
	var result workflow.Result
	again := *fresh // that one has become part of a tree
	err := tx.Savepoint(func() (err error) {
		result, err = x.begin(tx, fresh, d, c, o, nil)
		return err
	})
	var taken *workflow.KeyTakenError
	if !errors.As(err, &taken) {
		return result, err
	}
	u, opened := tx.Open(taken.Case)
	if opened != nil {
		return workflow.Result{}, opened
	}
	holder := u.Tree.Case(taken.Case)
	switch {
	case c.IfTaken == workflow.Return:
		result = workflow.Result{Case: taken.Case, Found: true}
		return result, tx.Remember(u, o, result)
	case holder.State.Final():
		return workflow.Result{}, fmt.Errorf("%w: it has completed", err)
	case c.IfTaken == workflow.Replace && holder.Begun:
		return workflow.Result{}, fmt.Errorf("%w: it has begun, and %q is for one that has not", err, c.IfTaken)
	}
	reason := &workitem.Failure{Code: CodeReplaced, Message: "a start with the same business key takes its place"}
	unkeyed := commit.Operation{Command: o.Command, Actor: o.Actor}
	if _, err := tx.On(u, unkeyed, result, func(m *kernel.Machine) error { return m.Cancel(taken.Case, reason) }); err != nil {
		return workflow.Result{}, err
	}
	return x.begin(tx, &again, d, c, o, nil)
}
