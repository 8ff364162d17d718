package selection

import (
	"context"
	"iter"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// restarted marks the matches of a restart that were restarted already, unless they are to be restarted again. It looks at as many at
// once as a page has.
func (c *Choice) restarted(ctx context.Context, v store.Viewer, matching iter.Seq2[match, error]) iter.Seq2[match, error] {
	if c.Kind != workflow.KindRestart || c.Force {
		return matching
	}
	return func(yield func(match, error) bool) {
		var page []match
		flush := func() bool {
			if err := mark(ctx, v, page); err != nil {
				yield(match{}, err)
				return false
			}
			for _, one := range page {
				if !yield(one, nil) {
					return false
				}
			}
			page = page[:0]
			return true
		}
		for one, err := range matching {
			if err != nil {
				yield(match{}, err)
				return
			}
			if page = append(page, one); len(page) == store.DefaultLimit && !flush() {
				return
			}
		}
		flush()
	}
}

// mark finds which matches were restarted already.
func mark(ctx context.Context, v store.Viewer, page []match) error {
	targets := make([]string, len(page))
	for i := range page {
		targets[i] = page[i].target
	}
	_, restarted, err := bulk.WithoutRestarted(ctx, v, targets)
	of := make(map[workitem.CaseID]bulk.Restarted, len(restarted))
	for _, one := range restarted {
		of[one.Case] = one
	}
	for i := range page {
		if page[i].of != nil {
			page[i].restarted = of[page[i].of.ID]
		}
	}
	return err
}
