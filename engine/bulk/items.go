package bulk

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ItemActions are the actions of the kind [workflow.KindAct] that are executed on many work items.
var ItemActions = []workitem.Action{workitem.Reset, workitem.Fail, workitem.Cancel}

// ItemStates returns those of the given states in which an action can be executed on a work item, and all of these for none. The error
// wraps workflow.ErrBadCommand if there are none, or if there is no bulk action of this kind.
func ItemStates(do workitem.Action, given []workitem.State) ([]workitem.State, error) {
	switch do {
	case workitem.Reset, workitem.Fail:
		return among(given, []workitem.State{workitem.Started}, "work items", do.String())
	case workitem.Cancel:
		return among(given, []workitem.State{workitem.Initialized, workitem.Started}, "work items", do.String())
	}
	return nil, fmt.Errorf("there is no bulk action %q on work items; there are %s: %w", do, words(ItemActions, ", "), workflow.ErrBadCommand)
}

// Items returns the work items that a filter selects and that have a text in their payloads, as targets of an action of the kind
// [workflow.KindAct]: those on which the action can be executed now. It leaves out the work of bulk actions. Page of the filter has no
// effect. If the search reached a bound before all items were searched, the error wraps a *[store.CutError].
func Items(ctx context.Context, v store.Viewer, do workitem.Action, f store.ItemFilter, s store.Search) (targets []string, err error) {
	if f.States, err = ItemStates(do, f.States); err != nil {
		return nil, err
	}
	f.Page, s.Spent = store.Page{Limit: store.DefaultLimit}, new(store.SearchSpent)
	for {
		found, err := store.SearchItems(ctx, v, f, s, nil)
		if err != nil {
			return nil, err
		}
		for _, it := range found {
			f.After = it.ID.String()
			if it.Workflow != Name {
				targets = append(targets, f.After)
			}
		}
		if len(found) < f.Limit {
			return targets, nil
		}
	}
}
