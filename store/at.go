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
		root, err := RootOfCase(ctx, r, id)
		if err != nil {
			return err
		}
		if err = Replay(ctx, r, root, tree, m, nil); err == nil && tree.Case(id) == nil {
			err = fmt.Errorf("it did not exist at that time: %w", ErrNotFound)
		}
		if err != nil {
			err = fmt.Errorf("case %s: %w", id, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// replayPage is how many entries a replay reads at a time. A store may have to walk the whole history for each page.
const replayPage = 2_000

// Replay updates a tree: it applies the journal entries of a root case that follow the state of the tree, up to a moment. With an empty
// tree it begins with the first entry. each, if it is not nil, is called with every applied entry; an error of it ends the replay.
func Replay(ctx context.Context, r Reader, root workitem.CaseID, tree *state.Tree, m Moment, each func(*Entry) error) error {
	f := JournalFilter{Root: root, Until: m.Seq, Limit: replayPage}
	if c := tree.Case(root); c != nil {
		f.After = c.LastSeq
	}
	for {
		entries, err := r.Journal(ctx, f)
		if err != nil {
			return err
		}
		for _, e := range entries {
			// The first later entry ends the replay. If the clock was set back, entries behind it may have an earlier
			// time; they depend on this one, so they are not applied either.
			if m.passed(e) {
				return nil
			}
			if err := apply(tree, e); err != nil {
				return err
			}
			if each != nil {
				if err := each(e); err != nil {
					return err
				}
			}
			f.After = e.Seq
		}
		if len(entries) < f.Limit {
			return nil
		}
	}
}

// apply applies an entry of the journal to a tree.
func apply(tree *state.Tree, e *Entry) error {
	// Begin and End enclose the entry as they enclosed its command: End gives the root case the position of the
	// entry, at which a later replay continues.
	tree.Begin()
	for _, c := range e.Changes {
		if err := tree.Apply(c); err != nil {
			return fmt.Errorf("%w: journal entry %d: %w", ErrCorrupt, e.Seq, err)
		}
	}
	tree.End(e.Seq)
	return nil
}
