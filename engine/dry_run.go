package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// errDryRun rolls back the command of a dry run.
var errDryRun = errors.New("the command was only tried")

// Preview is what a command would do.
type Preview struct {
	Result workflow.Result
	Trees  []PreviewTree // the trees that would change

	// Settings are the settings of a limit, a queue or a workflow that would change. A command without trees and settings would do
	// nothing.
	Settings []PreviewSetting
}

// PreviewSetting is what a command would do to one setting of the store.
type PreviewSetting struct {
	Name     string          // as that of a [store.Setting]
	From, To json.RawMessage // nil if there is no such setting
}

// PreviewTree is what a command would do to one root case with its descendants.
type PreviewTree struct {
	Tree    *state.Tree // after the command
	Before  *state.Tree // without cases if the command starts the root case
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
		if p, err = e.tryIn(tx, &c); err != nil {
			return err
		}
		return errDryRun
	}})
	if errors.Is(err, errDryRun) {
		return p, nil
	}
	return Preview{}, err
}

// tryIn executes a command in a transaction, rolls it back alone, and returns what it did.
func (e *Engine) tryIn(tx *commit.Tx, c *workflow.Command) (p Preview, err error) {
	earlier := make(map[*commit.TreeWrite]int) // changes of the same transaction
	var changed []*commit.TreeWrite
	for u, changes := range tx.Changed() {
		earlier[u] = len(changes)
	}
	err = tx.Savepoint(func() error {
		p, changed = Preview{}, nil
		name, before := settingOf(c), json.RawMessage(nil)
		if name != "" {
			if before, err = tx.Store().Setting(tx.Context(), name); err != nil {
				return err
			}
		}
		if p.Result, err = e.controls.try(func() (workflow.Result, error) { return e.commands.Execute(tx, c) }); err != nil {
			return err
		}
		if name != "" {
			after, err := tx.Store().Setting(tx.Context(), name)
			if err != nil {
				return err
			}
			if !bytes.Equal(before, after) {
				p.Settings = append(p.Settings, PreviewSetting{Name: name, From: before, To: after})
			}
		}
		for u, changes := range tx.Changed() {
			if changes = changes[earlier[u]:]; len(changes) > 0 {
				p.Trees, changed = append(p.Trees, PreviewTree{Tree: snapshot(u.Tree), Changes: slices.Clone(changes)}), append(changed, u)
			}
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		for i, u := range changed { // they are rolled back
			p.Trees[i].Before = snapshot(u.Tree)
		}
		return p, nil
	}
	return Preview{}, err
}

// settingOf returns the name of the setting that a command changes; "" if it changes none.
func settingOf(c *workflow.Command) string {
	switch c.Kind {
	case workflow.KindSetLimit, workflow.KindForgetLimit:
		return store.LimitSetting + c.Limit
	case workflow.KindPause, workflow.KindUnpause, workflow.KindSetWorkers, workflow.KindForgetWorkers:
		return store.QueueSetting + c.Queue
	case workflow.KindSuspendWorkflow, workflow.KindResumeWorkflow:
		return store.WorkflowSetting + c.Workflow
	}
	return ""
}

// try runs a command that is rolled back: what it sets is not applied, or a queue would start its jobs for a moment.
func (c *controls) try(execute func() (workflow.Result, error)) (workflow.Result, error) {
	c.trying = true
	defer func() { c.trying = false }()
	return execute()
}

// snapshot returns a copy of a tree, which later changes do not affect. A case is copied before it is changed, so the
// copy shares the cases.
func snapshot(tree *state.Tree) *state.Tree {
	var cases []*state.Case
	tree.Each(func(c *state.Case) { cases = append(cases, c) })
	return state.NewTree(cases...)
}
