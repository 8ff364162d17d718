package selection

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// acts reports whether the action can be executed on a work item. The work of bulk actions is left out.
func (c *Choice) acts(it *store.ItemRow) bool {
	_, can := workitem.Next(it.State, c.Do)
	return can && it.Workflow != bulk.Name
}

// items selects the work items that the list shows, and on which the action can be executed.
func (c *Choice) items(ctx context.Context, v store.Viewer, filter url.Values) iter.Seq2[match, error] {
	q := query.Of(filter, c.Now)
	f, of, search := q.Items(), q.Case(), q.Search()
	q.Only(q.Names()...)
	err := q.Err()
	if err == nil {
		f.States, err = bulk.ItemStates(c.Do, f.States)
	}
	if err == nil {
		err = v.View(ctx, func(r store.Reader) (err error) {
			f.Root, f.Case, err = query.Within(ctx, r, of)
			return err
		})
	}
	if err != nil {
		return failing(err)
	}
	f.Page, search.Spent = store.Page{Limit: store.DefaultLimit}, new(store.SearchSpent)
	return func(yield func(match, error) bool) {
		for {
			found, err := store.SearchItems(ctx, v, f, search, c.Mask.Item)
			for _, it := range found {
				f.After = it.ID.String()
				m := match{id: f.After, item: it.Item}
				if c.acts(it) {
					m.target = m.id
				}
				if !yield(m, nil) {
					return
				}
			}
			if cut := (*store.CutError)(nil); errors.As(err, &cut) {
				err = fmt.Errorf("the payloads of only %d items were searched, and %w", cut.Rows, ErrTooLarge)
			}
			if err != nil {
				yield(match{}, err)
			}
			if err != nil || len(found) < f.Limit {
				return
			}
		}
	}
}
