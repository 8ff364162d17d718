package store

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// SuccessorOf returns the newest case that restarts or forks a root case that has ended; zero if there is none. A restart or a fork that
// was removed does not count.
func SuccessorOf(ctx context.Context, r Finder, c *state.Case) (id workitem.CaseID, err error) {
	if c.Ended.IsZero() || !c.Parent.IsZero() {
		return id, nil
	}
	found, err := r.Cases(ctx, CaseFilter{Page: newest(1), RootOnly: true, Predecessors: []workitem.CaseID{c.ID}})
	if err != nil {
		return id, fmt.Errorf("restarts of case %s: %w", c.ID, err)
	}
	for _, one := range found {
		id = one.ID
	}
	return id, nil
}
