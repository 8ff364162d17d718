package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Viewer provides consistent snapshots: a Store and an engine implement it. The functions of this package that list rows read
// each page in a view of its own, so a long listing keeps no view open. A limit in the filter applies to the whole listing.
type Viewer interface {
	View(ctx context.Context, f func(Reader) error) error
}

// ViewerOf returns a Viewer whose views are all the given one, so that functions that read pages in views of their own
// see one snapshot. It must not be used after the view has ended.
func ViewerOf(r Reader) Viewer { return oneView{r} }

type oneView struct{ r Reader }

// View implements Viewer.
func (v oneView) View(_ context.Context, f func(Reader) error) error { return f(v.r) }

// AllCases lists the cases that match, in the order of their creation, or the newest first.
func AllCases(ctx context.Context, v Viewer, f CaseFilter) iter.Seq2[*state.Case, error] {
	return pages(ctx, v, &f.Page, func(r Reader) ([]*state.Case, error) { return r.Cases(ctx, f) },
		func(c *state.Case) string { return c.ID.String() })
}

// AllItems lists the work items that match, in the order of their creation, or the newest first; those of one queue by
// priority, the highest first, and oldest first where that is the same.
func AllItems(ctx context.Context, v Viewer, f ItemFilter) iter.Seq2[*ItemRow, error] {
	return pages(ctx, v, &f.Page, func(r Reader) ([]*ItemRow, error) { return r.Items(ctx, f) },
		func(it *ItemRow) string { return it.ID.String() })
}

// AllJobs lists the jobs that match, in the order of their creation, or the newest first.
func AllJobs(ctx context.Context, v Viewer, f JobFilter) iter.Seq2[*state.Job, error] {
	return pages(ctx, v, &f.Page, func(r Reader) ([]*state.Job, error) { return r.Jobs(ctx, f) },
		func(j *state.Job) string { return j.ID.String() })
}

// Newest is the position of the newest entry of the journal that matches; 0 if there is none. Of those that are Settled, no other one
// can appear before it.
func Newest(ctx context.Context, v Viewer, f JournalFilter) (seq int64, err error) {
	f.Desc, f.Limit = true, 1
	err = v.View(ctx, func(r Reader) error {
		found, err := r.Journal(ctx, f)
		if len(found) > 0 {
			seq = found[0].Seq
		}
		return err
	})
	return seq, err
}

// AllEntries lists the entries of the journal that match, oldest first, or the newest first.
func AllEntries(ctx context.Context, v Viewer, f JournalFilter) iter.Seq2[*Entry, error] {
	first := f
	return func(yield func(*Entry, error) bool) {
		left := first.Limit
		if left == 0 {
			// No limit: it counts down from -1, and is never 0.
			left = -1
		}
		f = first // the caller may range over the entries again
		f.Limit = DefaultLimit
		for entries, err := range read(ctx, v, func(r Reader) ([]*Entry, error) { return r.Journal(ctx, f) }) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, entry := range entries {
				if left == 0 || !yield(entry, nil) {
					return
				}
				f.After = entry.Seq
				left--
			}
			if len(entries) < DefaultLimit {
				return
			}
		}
	}
}

// RootOfCase returns the root case of a case. The error names the case; it wraps [ErrNotFound] if there is none with the id.
func RootOfCase(ctx context.Context, r interface {
	Root(ctx context.Context, id [16]byte) (workitem.CaseID, error)
}, id workitem.CaseID) (workitem.CaseID, error) {
	root, err := r.Root(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound) && !id.IsZero():
		return root, fmt.Errorf("case %s: %w", id, ErrNotFound)
	case err != nil:
		return root, fmt.Errorf("case %s: %w", printable.ID(id), err)
	}
	return root, nil
}

// TreeOf returns the current tree that a case belongs to. The caller may change it. The error wraps ErrNotFound if there is no
// such case.
func TreeOf(ctx context.Context, v Viewer, id workitem.CaseID) (*state.Tree, error) {
	var tree *state.Tree
	err := v.View(ctx, func(r Reader) error {
		root, err := RootOfCase(ctx, r, id)
		if err != nil {
			return err
		}
		if tree, err = r.Tree(ctx, root); err == nil && tree.Case(id) == nil { // the id of a work item has a root, too
			err = ErrNotFound
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

// pages lists rows one page after the other.
func pages[T any](
	ctx context.Context, v Viewer, page *Page, query func(Reader) ([]T, error), key func(T) string,
) iter.Seq2[T, error] {
	first := *page
	return func(yield func(T, error) bool) {
		left := first.Limit
		if left == 0 {
			left = -1
		}
		*page = first // the caller may range over the rows again
		page.Limit = DefaultLimit
		// A listing of ten rows does not read a thousand.
		if left > 0 {
			page.Limit = min(left, DefaultLimit)
		}
		for rows, err := range read(ctx, v, query) {
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, row := range rows {
				if left == 0 || !yield(row, nil) {
					return
				}
				page.After = key(row)
				left--
			}
			// A page that is not full is the last. If the number of rows is a multiple of the page, one empty page
			// follows.
			if len(rows) < page.Limit || left == 0 {
				return
			}
		}
	}
}

// read reads pages until the caller has enough.
// A page is one view: a view that stays open keeps a snapshot, and with it the log of SQLite or the dead rows of
// PostgreSQL, for as long as the caller takes for its rows. Rows that are created meanwhile may be listed or not.
func read[T any](ctx context.Context, v Viewer, query func(Reader) ([]T, error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for {
			var rows []T
			err := v.View(ctx, func(r Reader) (err error) {
				rows, err = query(r)
				return err
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				err = fmt.Errorf("query: %w", err)
			}
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}
}
