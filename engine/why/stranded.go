package why

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Strand is a live case that does not come to its end by itself, nor by the work that it offers.
type Strand struct {
	Case     workitem.CaseID `json:"case"`
	Root     workitem.CaseID `json:"root"`
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"`
	Reason   string          `json:"reason"` // and what to do
}

// Stranded lists the live cases that no run completes from where they stand, and those of which nothing is under way: no job, timer,
// event, open work item or incident. Each root case is looked at in a view of its own. A case whose search was given up is not listed.
func Stranded(ctx context.Context, v store.Viewer, now time.Time) iter.Seq2[Strand, error] {
	return func(yield func(Strand, error) bool) {
		live := store.CaseFilter{RootOnly: true, States: []state.CaseState{state.CaseStarted}}
		for root, err := range store.AllCases(ctx, v, live) {
			var found []Strand
			if err == nil {
				err = v.View(ctx, func(r store.Reader) (err error) {
					found, err = strandedIn(ctx, r, root.ID, now)
					return err
				})
			}
			if err != nil {
				yield(Strand{}, err)
				return
			}
			for _, s := range found {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// strandedIn looks at the cases of one tree.
func strandedIn(ctx context.Context, r store.Finder, root workitem.CaseID, now time.Time) (found []Strand, err error) {
	tree, err := r.Tree(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", root, err)
	}
	in := Input{Tree: tree, Case: root, Now: now}
	if in.Failed, err = r.Jobs(ctx, store.JobFilter{Root: root, States: []state.JobState{state.JobFailed}}); err != nil {
		return nil, fmt.Errorf("jobs of case %s: %w", root, err)
	}
	idle := make(map[workitem.CaseID]bool)
	for _, w := range Explain(in).Waits {
		if w.Kind == Stuck {
			idle[w.Case] = true
		}
	}
	tree.Each(func(c *state.Case) {
		if c.State.Final() {
			return
		}
		in.Case = c.ID
		way := WayOf(tree, Explain(in))
		_, text, _ := strings.Cut(way.String(), ", and ")
		switch {
		case way.Decided && !way.Found:
		case idle[c.ID]:
			text = "nothing is under way, and no task can start: there are tokens in " + tokens(c) + "; move a token, or cancel the case"
		default:
			return
		}
		found = append(found, Strand{Case: c.ID, Root: root, Workflow: c.Workflow, Version: c.Version, Reason: text})
	})
	return found, nil
}
