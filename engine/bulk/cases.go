package bulk

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// Cases returns the root cases that a filter selects and that have a text in their payloads, as targets of an action of a kind: for a
// suspension the live cases that are not suspended, for a cancellation the live ones, and for a resume those that failed or, with
// Suspended in the filter, the live ones that are suspended. It leaves out the cases of bulk actions. States, RootOnly and Page of the filter have no effect. If the
// search reached a bound before all cases were searched, the error wraps a *[store.CutError].
func Cases(ctx context.Context, v store.Viewer, kind workflow.Kind, f store.CaseFilter, s store.Search) (targets []string, err error) {
	f.States = []state.CaseState{state.CaseStarted}
	switch kind {
	case workflow.KindSuspend, workflow.KindCancel:
	case workflow.KindResume:
		if !f.Suspended {
			f.States = []state.CaseState{state.CaseFailed}
		}
	default:
		return nil, fmt.Errorf("a filter of cases selects no targets of %q: give resume, suspend or cancel", kind)
	}
	f.RootOnly, f.Page = true, store.Page{Limit: store.DefaultLimit}
	s.Spent = new(store.SearchSpent)
	for {
		found, err := store.SearchCases(ctx, v, f, s, nil)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			f.After = c.ID.String()
			if c.Workflow != Name && (kind != workflow.KindSuspend || c.Suspended == nil) {
				targets = append(targets, f.After)
			}
		}
		if len(found) < f.Limit {
			return targets, nil
		}
	}
}

// Failed returns the root cases that failed with a code, or with any for "", as targets of a resume. It leaves out the
// cases of bulk actions.
func Failed(ctx context.Context, v store.Viewer, f store.CaseFilter, code string) ([]string, error) {
	f.RootOnly, f.States = true, []state.CaseState{state.CaseFailed}
	var targets []string
	for c, err := range store.AllCases(ctx, v, f) {
		if err != nil {
			return nil, err
		}
		if c.Workflow != Name && (code == "" || c.Failure != nil && c.Failure.Code == code) {
			targets = append(targets, c.ID.String())
		}
	}
	return targets, nil
}

// Live returns the live root cases that are suspended, as targets of a resume, or that are not, as targets of a
// suspension. It leaves out the cases of bulk actions.
func Live(ctx context.Context, v store.Viewer, f store.CaseFilter, suspended bool) ([]string, error) {
	kind := workflow.KindSuspend
	if suspended {
		kind = workflow.KindResume
	}
	f.Suspended = suspended
	return Cases(ctx, v, kind, f, store.Search{})
}
