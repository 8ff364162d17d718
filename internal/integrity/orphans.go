package integrity

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// orphans finds what the tables hold and the journal does not know, as a removal that forgets half of a case would
// leave behind, and counts that do not add up.
func (c *checker) orphans(ctx context.Context, r store.Reader) {
	want := make(map[store.Count]int64)
	for _, h := range c.order {
		workflows := make(map[[16]byte]string)
		h.tree.Each(func(k *store.Case) {
			workflows[k.ID] = k.Workflow
			want[store.Count{What: "case", Workflow: k.Workflow, State: k.State.String()}]++
		})
		for _, it := range h.items {
			want[store.Count{What: "item", Workflow: workflows[it.Case], Task: it.Task, State: it.State.String()}]++
		}
		for _, j := range h.jobs {
			want[store.Count{What: "job", Workflow: workflows[j.Case], Task: j.Task, State: j.State.String()}]++
		}
	}
	counts, err := r.Counts(ctx)
	if err != nil {
		c.breach("I8: the counts cannot be read: %w", err)
		return
	}
	for _, got := range counts {
		n := got.N
		got.N = 0
		if n != want[got] {
			c.breach("I8: there are %d of %+v in the tables, and %d in the journal", n, got, want[got])
		}
		delete(want, got)
	}
	for kind, n := range want {
		c.breach("I8: there are none of %+v in the tables, and %d in the journal", kind, n)
	}
	c.orphanRows(ctx, r)
}

// orphanRows looks for rows of cases that the journal does not have.
func (c *checker) orphanRows(ctx context.Context, r store.Reader) {
	known := make(map[workitem.CaseID]bool)
	for _, h := range c.order {
		h.tree.Each(func(k *store.Case) { known[k.ID] = true })
	}
	look := func(what string, id fmt.Stringer, of workitem.CaseID) string {
		if !known[of] {
			c.breach("I8: %s %s is in the tables, and its case %s is not in the journal", what, id, of)
		}
		return id.String()
	}
	err := errors.Join(
		pages(func(p store.Page) ([]*store.Case, error) { return r.Cases(ctx, store.CaseFilter{Page: p}) },
			func(k *store.Case) string { return look("case", k.ID, k.ID) }),
		pages(func(p store.Page) ([]*store.ItemRow, error) { return r.Items(ctx, store.ItemFilter{Page: p}) },
			func(it *store.ItemRow) string { return look("item", it.ID, it.Item.Case) }),
		pages(func(p store.Page) ([]*store.Job, error) { return r.Jobs(ctx, store.JobFilter{Page: p}) },
			func(j *store.Job) string { return look("job", j.ID, j.Case) }),
		pages(func(p store.Page) ([]*workitem.Step, error) { return r.Steps(ctx, store.StepFilter{Page: p}) },
			func(s *workitem.Step) string { return look("step", s.ID, s.Case) }),
		pages(func(p store.Page) ([]*store.Message, error) { return r.Messages(ctx, store.MessageFilter{Page: p}) },
			func(m *store.Message) string { return look("event", m.ID, m.Case) }),
	)
	if err != nil {
		c.breach("I8: the tables cannot be listed: %w", err)
	}
}

// pages reads all rows, page by page; look returns the id of each.
func pages[T any](read func(store.Page) ([]T, error), look func(T) string) error {
	page := store.Page{Limit: store.DefaultLimit}
	for {
		rows, err := read(page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			page.After = look(row)
		}
		if len(rows) < page.Limit {
			return nil
		}
	}
}
