package eventlog

import (
	"context"
	"iter"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Most root cases have few rows, and reading each in its own view costs more than reading its rows. So the root cases
// of a batch are read together, in one view. A batch has at most maxRows rows of a kind, like a page of any list. A
// larger batch is made smaller, and a single larger root case is read page by page.
const (
	maxRoots = 64
	maxRows  = store.DefaultLimit
)

// batches reads root cases with their rows.
type batches struct {
	v       store.Viewer
	f       store.CaseFilter // of the next root cases
	left    int              // how many root cases may follow; -1 for no limit
	size    int              // of the next batch
	objects bool             // whether items and cases are read
}

// history is a root case, with its rows if they are few.
type history struct {
	root    *state.Case
	whole   bool // the rows are loaded
	items   []*store.ItemRow
	cases   []*state.Case
	entries []*store.Entry
}

func newBatches(v store.Viewer, f store.CaseFilter, objects bool) *batches {
	b := &batches{v: v, f: f, left: -1, size: maxRoots, objects: objects}
	b.f.RootOnly = true
	if f.Limit > 0 {
		b.left = f.Limit
	}
	return b
}

// next reads the next root cases; none at the end.
func (b *batches) next(ctx context.Context) (roots []*history, err error) {
	if b.left == 0 {
		return nil, nil
	}
	err = b.v.View(ctx, func(r store.Reader) error {
		f := b.f
		if f.Limit = maxRoots; b.left > 0 {
			f.Limit = min(maxRoots, b.left)
		}
		found, err := r.Cases(ctx, f)
		if err != nil {
			return err
		}
		for {
			found = found[:min(len(found), b.size)]
			if roots, err = b.read(ctx, r, found); err != nil || roots != nil || len(found) == 0 {
				return err
			}
			if len(found) == 1 {
				roots = []*history{{root: found[0]}}
				return nil
			}
			b.size = (len(found) + 1) / 2
		}
	})
	if len(roots) > 0 {
		b.f.After = roots[len(roots)-1].root.ID.String()
		b.size = min(2*b.size, maxRoots)
	}
	if b.left > 0 {
		b.left -= len(roots)
	}
	return roots, err
}

// read reads the rows of root cases; nil if there are too many.
func (b *batches) read(ctx context.Context, r store.Reader, found []*state.Case) ([]*history, error) {
	if len(found) == 0 {
		return nil, nil
	}
	roots, of := make([]*history, len(found)), make(map[workitem.CaseID]*history, len(found))
	ids, page := make([]workitem.CaseID, len(found)), store.Page{Limit: maxRows + 1}
	for i, c := range found {
		roots[i] = &history{root: c, whole: true}
		ids[i], of[c.ID] = c.ID, roots[i]
	}
	entries, err := r.Journal(ctx, store.JournalFilter{Roots: ids, Limit: page.Limit})
	if err != nil || len(entries) > maxRows {
		return nil, err
	}
	for _, e := range entries {
		of[e.Root].entries = append(of[e.Root].entries, e)
	}
	if !b.objects {
		return roots, nil
	}
	items, err := r.Items(ctx, store.ItemFilter{Roots: ids, Page: page})
	if err != nil || len(items) > maxRows {
		return nil, err
	}
	for _, it := range items {
		of[it.Root].items = append(of[it.Root].items, it)
	}
	cases, err := r.Cases(ctx, store.CaseFilter{Roots: ids, Page: page})
	if err != nil || len(cases) > maxRows {
		return nil, err
	}
	for _, c := range cases {
		of[c.Root].cases = append(of[c.Root].cases, c)
	}
	return roots, nil
}

// eachItem lists the work items. They are listed before the cases: the items of a case that is opened in between are
// not in the log, but every item in the log has its case.
func (h *history) eachItem(ctx context.Context, v store.Viewer) iter.Seq2[*store.ItemRow, error] {
	if h.whole {
		return each(h.items)
	}
	return store.AllItems(ctx, v, store.ItemFilter{Root: h.root.ID})
}

// eachCase lists the root case and its descendants.
func (h *history) eachCase(ctx context.Context, v store.Viewer) iter.Seq2[*state.Case, error] {
	if h.whole {
		return each(h.cases)
	}
	return store.AllCases(ctx, v, store.CaseFilter{Root: h.root.ID})
}

// eachEntry lists the entries of the journal, up to the last one at the time when the root case was read.
func (h *history) eachEntry(ctx context.Context, v store.Viewer) iter.Seq2[*store.Entry, error] {
	if h.whole {
		return each(h.entries)
	}
	return store.AllEntries(ctx, v, store.JournalFilter{Root: h.root.ID, Until: h.root.LastSeq})
}

func each[T any](rows []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
