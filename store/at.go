package store

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Moment is a point in the history of a case: up to a position of the journal, or up to a time, each included. The zero value is
// the present. With both, the earlier one counts.
type Moment struct {
	Seq  int64
	Time time.Time
}

// passed reports whether an entry came after the moment.
func (m Moment) passed(e *Entry) bool {
	return m.Seq > 0 && e.Seq > m.Seq || !m.Time.IsZero() && e.At.After(m.Time)
}

// At rebuilds the tree of a case from its journal, as it was at a moment. Like every tree it holds the items of each task's latest
// activation. The error wraps [ErrNotFound] if the case was not there then.
func At(ctx context.Context, v Viewer, id workitem.CaseID, m Moment) (*state.Tree, error) {
	tree := state.NewTree()
	err := v.View(ctx, func(r Reader) error {
		root, err := r.Root(ctx, id)
		if err != nil {
			return err
		}
		f := JournalFilter{Root: root}
		for {
			entries, err := r.Journal(ctx, f)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if m.passed(e) {
					return nil
				}
				if err := replay(tree, e); err != nil {
					return err
				}
				f.After = e.Seq
			}
			if len(entries) < DefaultLimit {
				return nil
			}
		}
	})
	if err == nil && tree.Case(id) == nil {
		err = fmt.Errorf("it was not there at that moment: %w", ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	return tree, nil
}

// replay applies an entry of the journal to a tree.
func replay(tree *state.Tree, e *Entry) error {
	tree.Begin()
	for _, c := range e.Changes {
		if err := tree.Apply(c); err != nil {
			return fmt.Errorf("%w: journal entry %d: %w", ErrCorrupt, e.Seq, err)
		}
	}
	tree.End(e.Seq)
	return nil
}
