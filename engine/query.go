package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// View runs f on one consistent state of everything that was acknowledged before the call. f must not call the engine, which
// may have to wait for the view to end.
func (e *Engine) View(ctx context.Context, f func(store.Reader) error) error {
	if f == nil {
		return errors.New("View: there is no function to call: it is nil")
	}
	if err := notNested(ctx); err != nil {
		return err
	}
	err := e.store.View(ctx, f)
	if err != nil && errors.Is(err, fs.ErrClosed) && e.isClosing() {
		return e.over()
	}
	return e.lose(err)
}

func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// Case returns a case of any state. The error wraps [ErrNotFound] if there is none.
func (e *Engine) Case(ctx context.Context, id workitem.CaseID) (*store.Case, error) {
	tree, err := e.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	return tree.Case(id), nil
}

// Tree returns the whole tree that a case belongs to, as it is now. It is the caller's own.
func (e *Engine) Tree(ctx context.Context, id workitem.CaseID) (*store.Tree, error) {
	var tree *store.Tree
	err := e.View(ctx, func(r store.Reader) error {
		root, err := r.Root(ctx, id)
		if err != nil {
			return err
		}
		tree, err = r.Tree(ctx, root)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	return tree, nil
}

// Item returns a work item of any state. The error wraps [ErrNotFound] if there is none.
func (e *Engine) Item(ctx context.Context, id workitem.ID) (*store.ItemRow, error) {
	for row, err := range e.Items(ctx, store.ItemFilter{ID: id}) {
		return row, err
	}
	return nil, fmt.Errorf("work item %s: %w", id, ErrNotFound)
}

// Cases lists the cases that match, page by page: in the order of their creation, or the newest first.
func (e *Engine) Cases(ctx context.Context, f store.CaseFilter) iter.Seq2[*store.Case, error] {
	return pages(ctx, e, &f.Page, func(r store.Reader) ([]*store.Case, error) { return r.Cases(ctx, f) },
		func(c *store.Case) string { return c.ID.String() })
}

// Items lists the work items that match, page by page: in the order of their creation, or the newest first; those of one
// queue by priority, the highest first, and oldest first where that is the same.
func (e *Engine) Items(ctx context.Context, f store.ItemFilter) iter.Seq2[*store.ItemRow, error] {
	return pages(ctx, e, &f.Page, func(r store.Reader) ([]*store.ItemRow, error) { return r.Items(ctx, f) },
		func(it *store.ItemRow) string { return it.ID.String() })
}

// Jobs lists the jobs that match, page by page: in the order of their creation, or the newest first.
func (e *Engine) Jobs(ctx context.Context, f store.JobFilter) iter.Seq2[*store.Job, error] {
	return pages(ctx, e, &f.Page, func(r store.Reader) ([]*store.Job, error) { return r.Jobs(ctx, f) },
		func(j *store.Job) string { return j.ID.String() })
}

// Journal lists journal entries, oldest first.
func (e *Engine) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[*store.Entry, error] {
	first := f
	return func(yield func(*store.Entry, error) bool) {
		total := first.Limit
		if total == 0 {
			total = -1
		}
		f = first
		f.Limit = store.DefaultLimit
		for entries, err := range pageSeq(ctx, e, func(r store.Reader) ([]*store.Entry, error) {
			return r.Journal(ctx, f)
		}) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, entry := range entries {
				if total == 0 || !yield(entry, nil) {
					return
				}
				f.After = entry.Seq
				total--
			}
			if len(entries) < store.DefaultLimit {
				return
			}
		}
	}
}

// Counts counts cases, items and jobs by workflow, task and state.
func (e *Engine) Counts(ctx context.Context) ([]store.Count, error) {
	var counts []store.Count
	err := e.View(ctx, func(r store.Reader) (err error) {
		counts, err = r.Counts(ctx)
		return err
	})
	return counts, err
}

// rootOf finds the root case of an item, a case or a job.
func (e *Engine) rootOf(ctx context.Context, id [16]byte) (workitem.CaseID, error) {
	if root, ok := e.index.get(id); ok {
		return root, nil
	}
	var root workitem.CaseID
	err := e.View(ctx, func(r store.Reader) (err error) {
		root, err = r.Root(ctx, id)
		return err
	})
	return root, err
}

// pages lists rows one page after the other. A limit in the filter bounds the whole listing.
func pages[T any](
	ctx context.Context, e *Engine, page *store.Page, read func(store.Reader) ([]T, error), key func(T) string,
) iter.Seq2[T, error] {
	first := *page
	return func(yield func(T, error) bool) {
		left := first.Limit
		if left == 0 {
			left = -1
		}
		*page = first // the caller may range over the rows again
		page.Limit = store.DefaultLimit
		if left > 0 {
			page.Limit = min(left, store.DefaultLimit)
		}
		for rows, err := range pageSeq(ctx, e, read) {
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
			if len(rows) < page.Limit || left == 0 {
				return
			}
		}
	}
}

// pageSeq reads pages until the caller has enough.
func pageSeq[T any](ctx context.Context, e *Engine, read func(store.Reader) ([]T, error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for {
			var rows []T
			err := e.View(ctx, func(r store.Reader) (err error) {
				rows, err = read(r)
				return err
			})
			if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
				err = fmt.Errorf("query: %w", err)
			}
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}
}
