package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// errDryRun rolls back the command of a dry run.
var errDryRun = errors.New("the command was only tried")

// Preview is what a command would do.
type Preview struct {
	Result workflow.Result
	Trees  []PreviewTree // the trees that would change; empty if the command would do nothing
}

// PreviewTree is what a command would do to one root case with its descendants.
type PreviewTree struct {
	Tree    *state.Tree // after the command
	Changes []state.Change
}

// A dry run executes the command in a transaction that is rolled back, and does not simulate it: callbacks, guards and
// the user's constraints give the same results as for the command. It does not show effects outside of the database:
// the jobs that the command opens are not executed.

// DryRun returns what a command would do: it executes the command, with its callbacks, in a transaction that is rolled back, together
// with the SQL of the callbacks. The ids in the result are not those that the command would assign later. The error is the one that the
// command would return.
func (e *Engine) DryRun(ctx context.Context, c workflow.Command) (p Preview, err error) {
	err = e.writer.Submit(ctx, &commit.Request{Run: func(tx *commit.Tx) error {
		p = Preview{}
		if p.Result, err = e.commands.Execute(tx, &c); err != nil {
			return err
		}
		for u, changes := range tx.Changed() {
			if len(changes) > 0 {
				p.Trees = append(p.Trees, PreviewTree{snapshot(u.Tree), slices.Clone(changes)})
			}
		}
		return errDryRun
	}})
	if errors.Is(err, errDryRun) {
		return p, nil
	}
	return Preview{}, err
}

// snapshot returns a copy of a tree, which later changes do not affect. A case is copied before it is changed, so the
// copy shares the cases.
func snapshot(tree *state.Tree) *state.Tree {
	var cases []*state.Case
	tree.Each(func(c *state.Case) { cases = append(cases, c) })
	return state.NewTree(cases...)
}
