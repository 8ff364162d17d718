package kernel

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
)

// located adds its origin to an error; nil stays nil.
func located(c *state.Case, t net.TaskID, what string, err error) error {
	if err == nil {
		return nil
	}
	where := "case of " + c.Workflow
	if t >= 0 {
		where = c.Workflow + "/" + c.Net.TaskName(t)
		if pos := c.Net.Task(t).Pos.String(); pos != "" {
			where += " (" + pos + ")"
		}
	}
	return fmt.Errorf("%s of %s: %w", what, where, err)
}

// info is [Info] with what only the tree has, for callbacks in the transaction.
func (b *callbacks) info(c *state.Case) activities.CaseInfo {
	info := Info(c)
	info.Children = func(task string) []activities.ChildOutput { return childOutputs(b.tree, c, task) }
	return info
}

// childOutputs returns the outputs of the completed child cases of the latest activation of a composite task, oldest
// first. It searches backwards and stops at the first child of an earlier activation, since the children of a case are
// in the order of their creation: otherwise each round of a loop would visit the children of all rounds before it.
func childOutputs(tree *state.Tree, c *state.Case, task string) []activities.ChildOutput {
	t, ok := c.Net.TaskByName(task)
	if !ok {
		return nil
	}
	var list []activities.ChildOutput
	for _, id := range slices.Backward(c.Children) {
		child := tree.Case(id)
		if child == nil || child.ParentTask != task {
			continue
		}
		if child.Generation < c.Tasks[t].Generation {
			break // the rest belongs to earlier activations
		}
		if child.State == state.CaseCompleted {
			list = append(list, activities.ChildOutput{Case: id, Workflow: child.Workflow, Output: child.Output})
		}
	}
	slices.Reverse(list)
	return list
}

// Info returns the description of a case for callbacks. It refers to the case without copying, since a *state.Case
// never changes.
func Info(c *state.Case) activities.CaseInfo {
	return activities.CaseInfo{
		ID: c.ID, Root: c.Root, Parent: c.Parent, ParentTask: c.ParentTask, Workflow: c.Workflow, Version: c.Version,
		Fingerprint: c.Fingerprint, Input: c.Input, Options: c.Options, Predecessor: c.Predecessor, Key: c.Key, Labels: c.Labels, State: c.ItemState(),
		Output: c.Output, Failure: c.Failure,
		Outputs: func(task string) json.RawMessage {
			if t, ok := c.Net.TaskByName(task); ok {
				return c.Tasks[t].Output
			}
			return nil
		},
	}
}
