package bulk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// OfCases reports whether the targets of an action of a kind are cases.
func OfCases(kind workflow.Kind) bool {
	switch kind {
	case workflow.KindResume, workflow.KindSuspend, workflow.KindCancel, workflow.KindRedrive, workflow.KindRestart, workflow.KindRemove:
		return true
	}
	return false
}

// Ended are the states of cases that have ended.
var Ended = []state.CaseState{state.CaseCompleted, state.CaseFailed, state.CaseCanceled}

// Cases returns the root cases that a filter selects and that have a text in their payloads, as targets of an action of a kind: for a
// suspension the live cases that are not suspended, for a cancellation the live ones, for a resume those that failed or, with
// Suspended in the filter, the live ones that are suspended, and for a restart or a removal those that have ended, in one of its States if it has any.
// It leaves out the cases of bulk actions; [WithoutRestarted] leaves out those that were restarted. RootOnly and Page of the filter have no effect, and States only of these two. If the
// search reached a bound before all cases were searched, the error wraps a *[store.CutError].
func Cases(ctx context.Context, v store.Viewer, kind workflow.Kind, f store.CaseFilter, s store.Search) (targets []string, err error) {
	switch kind {
	case workflow.KindSuspend, workflow.KindCancel:
		f.States = []state.CaseState{state.CaseStarted}
	case workflow.KindResume:
		f.States = []state.CaseState{state.CaseFailed}
		if f.Suspended {
			f.States = []state.CaseState{state.CaseStarted}
		}
	case workflow.KindRestart, workflow.KindRemove:
		if f.States, err = among(f.States, Ended, "cases", string(kind)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("a filter of cases selects no targets of %q: give resume, suspend, cancel, restart or remove", kind)
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
	f.Suspended = false
	if code != "" {
		f.Code = &code
	}
	return Cases(ctx, v, workflow.KindResume, f, store.Search{})
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

// among returns the given states that are possible, and all possible ones for none. what are the objects, and do the action on them.
func among[S interface {
	comparable
	fmt.Stringer
}](given, possible []S, what, do string) ([]S, error) {
	if len(given) == 0 {
		return possible, nil
	}
	var both []S
	for _, s := range given {
		if slices.Contains(possible, s) {
			both = append(both, s)
		}
	}
	if both == nil {
		return nil, fmt.Errorf("%s cannot be executed on %s that are %s: select those that are %s: %w", do, what, words(given, " or "), words(possible, " or "), workflow.ErrBadCommand)
	}
	return both, nil
}

func words[S fmt.Stringer](all []S, between string) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, between)
}
