package store

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Difference is something of a case that differs between two moments.
type Difference struct {
	What string `json:"what"` // "case", "suspension", "tokens", "task", "item" or "child case"
	Name string `json:"name"` // of the condition, the task, the item or the child case; "" for the case itself
	From string `json:"from"` // its state at the first moment; "" if it was not there
	To   string `json:"to"`   // its state at the second moment; "" if it was not there any more
}

// Differences returns what differs in a case between two moments: its state, its tokens, and its tasks, items of the latest activation
// and child cases. A child case in the same state counts if something differs in it: To says how much. A zero moment is the present. The error wraps
// [ErrNotFound] if the case was not there at one of them.
func Differences(ctx context.Context, v Viewer, id workitem.CaseID, from, to Moment) ([]Difference, error) {
	before, err := At(ctx, v, id, from)
	if err != nil {
		return nil, err
	}
	after, err := At(ctx, v, id, to)
	if err != nil {
		return nil, err
	}
	return differences(before, after, id), nil
}

// differences compares a case of two trees, and its child cases.
func differences(before, after *state.Tree, id workitem.CaseID) []Difference {
	all := compare(partsOf(before, before.Case(id)), partsOf(after, after.Case(id)))
	for _, child := range after.Case(id).Children {
		was, is := before.Case(child), after.Case(child)
		if was == nil || is == nil || was.State != is.State {
			continue // its state differs, so it is listed already
		}
		if n := len(differences(before, after, child)); n > 0 {
			all = append(all, Difference{"child case", child.String(), was.State.String(), fmt.Sprintf("%s, with %s inside", is.State, printable.Plural(n, "difference"))})
		}
	}
	return all
}

// part is a part of a case, with its state.
type part struct{ what, name, state string }

// partsOf lists the parts of a case that have a state, in a fixed order.
func partsOf(tree *state.Tree, c *state.Case) []part {
	all := []part{{"case", "", c.State.String()}}
	if c.Suspended != nil {
		all = append(all, part{"suspension", "", "suspended"})
	}
	for p, n := range c.Marking {
		if n > 0 {
			all = append(all, part{"tokens", c.Net.ConditionName(net.ConditionID(p)), fmt.Sprint(n)})
		}
	}
	for t := range c.Tasks {
		if task := &c.Tasks[t]; task.Generation > 0 {
			all = append(all, part{"task", c.Net.TaskName(net.TaskID(t)), fmt.Sprintf("%s (activation %d)", task.State, task.Generation)})
		}
	}
	for it := range c.Items.All() {
		word := it.State.String()
		if it.Failure != nil && it.Failure.Code != "" {
			word += " (" + it.Failure.Code + ")"
		}
		all = append(all, part{"item", it.Label(), word})
	}
	for _, child := range c.Children {
		if of := tree.Case(child); of != nil {
			all = append(all, part{"child case", child.String(), of.State.String()})
		}
	}
	return all
}

// compare lists the parts of which the state differs: those of before in their order, and then those that are new.
func compare(before, after []part) (all []Difference) {
	type key struct{ what, name string }
	now := make(map[key]string, len(after))
	for _, p := range after {
		now[key{p.what, p.name}] = p.state
	}
	was := make(map[key]bool, len(before))
	for _, p := range before {
		k := key{p.what, p.name}
		was[k] = true
		if now[k] != p.state {
			all = append(all, Difference{p.what, p.name, p.state, now[k]})
		}
	}
	for _, p := range after {
		if !was[key{p.what, p.name}] {
			all = append(all, Difference{What: p.what, Name: p.name, To: p.state})
		}
	}
	return all
}
