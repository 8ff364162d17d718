package bulk

import (
	"context"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Restarted is a case that was restarted or forked.
type Restarted struct {
	Case      workitem.CaseID `json:"case"`
	Successor workitem.CaseID `json:"successor"` // the newest case that restarts or forks it
}

// WithoutRestarted divides the targets of a restart into those without a restart or a fork, and the others. A restart or a fork that was
// removed does not count. An action refuses the others unless its Force is set.
func WithoutRestarted(ctx context.Context, v store.Viewer, targets []string) (left []string, restarted []Restarted, err error) {
	for part := range slices.Chunk(targets, store.DefaultLimit) {
		newest, err := successors(ctx, v, part)
		if err != nil {
			return nil, nil, err
		}
		for _, target := range part {
			id, _ := workitem.ParseID(target) // what is no id has no successor
			if s, is := newest[workitem.CaseID(id)]; is {
				restarted = append(restarted, Restarted{workitem.CaseID(id), s})
			} else {
				left = append(left, target)
			}
		}
	}
	return left, restarted, nil
}

// successors returns the newest restart or fork of those cases that have one.
func successors(ctx context.Context, v store.Viewer, of []string) (map[workitem.CaseID]workitem.CaseID, error) {
	newest, f := make(map[workitem.CaseID]workitem.CaseID), store.CaseFilter{RootOnly: true, Predecessors: []workitem.CaseID{}}
	for _, target := range of {
		if id, err := workitem.ParseID(target); err == nil {
			f.Predecessors = append(f.Predecessors, workitem.CaseID(id))
		}
	}
	for c, err := range store.AllCases(ctx, v, f) {
		if err != nil {
			return nil, err
		}
		newest[c.Predecessor] = c.ID
	}
	return newest, nil
}
