package integrity

import (
	"context"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// compare holds the stored state against the rebuilt one.
func (c *checker) compare(ctx context.Context, r store.Reader, h *history) {
	root := h.tree.Root
	stored, err := r.Tree(ctx, root)
	if err != nil {
		c.breach("I7: case %s is in the journal, and cannot be read: %w", root, err)
		return
	}
	if stored.Len() != h.tree.Len() {
		c.breach("I7: tree of case %s has %d cases in the tables and %d in the journal", root, stored.Len(), h.tree.Len())
	}
	h.tree.Each(func(want *store.Case) {
		got := stored.Case(want.ID)
		if got == nil {
			c.breach("I7: case %s is missing from the tables", want.ID)
			return
		}
		c.compareCase(got, want)
	})
	c.compareItems(ctx, r, h)
	c.compareJobs(ctx, r, h)
	c.compareSteps(ctx, r, h)
	c.compareMessages(ctx, r, h)
}

func (c *checker) compareCase(got, want *store.Case) {
	if got.State != want.State || got.Begun != want.Begun || !slices.Equal(got.Marking, want.Marking) {
		c.breach("I7: case %s is %s with %s in the tables, and %s with %s in the journal",
			want.ID, got.State, marking(got), want.State, marking(want))
	}
	for t := range want.Tasks {
		g, w := got.Tasks[t], want.Tasks[t]
		if g.State != w.State || g.Generation != w.Generation || g.Created != w.Created || string(g.Output) != string(w.Output) {
			c.breach("I7: task %s of case %s is %+v in the tables, and %+v in the journal",
				want.Net.TaskName(net.TaskID(t)), want.ID, g, w)
		}
	}
	if string(got.Output) != string(want.Output) || got.Failure.String() != want.Failure.String() {
		c.breach("I7: case %s ended with %s %s in the tables, and with %s %s in the journal",
			want.ID, got.Output, got.Failure, want.Output, want.Failure)
	}
}

func marking(c *store.Case) string {
	s := "{"
	for p, n := range c.Marking {
		if n > 0 {
			s += fmt.Sprintf(" %s:%d", c.Net.ConditionName(net.ConditionID(p)), n)
		}
	}
	return s + " }"
}

// pageSize is how many rows are read at a time: many, since each page of a case's rows costs as much as the case is
// large.
const pageSize = 10_000

// compareAll holds the rows of one table against what the journal yields, page by page; same reports whether a row is
// as it should be.
func compareAll[K comparable, V any](
	c *checker, h *history, what string, journal map[K]*V, read func(store.Page) ([]*V, error), id func(*V) (K, string),
	same func(got, want *V) bool,
) {
	seen := 0
	page := store.Page{Limit: pageSize}
	for {
		rows, err := read(page)
		if err != nil {
			c.breach("I7: %ss of case %s: %w", what, h.tree.Root, err)
			return
		}
		for _, got := range rows {
			seen++
			var key K
			key, page.After = id(got)
			if want := journal[key]; want == nil || !same(got, want) {
				c.breach("I7: %s %s is %+v in the tables, and %+v in the journal", what, page.After, got, want)
			}
		}
		if len(rows) < pageSize {
			break
		}
	}
	if seen != len(journal) {
		c.breach("I7: case %s has %d %ss in the tables, and %d in the journal", h.tree.Root, seen, what, len(journal))
	}
}

func (c *checker) compareItems(ctx context.Context, r store.Reader, h *history) {
	compareAll(c, h, "item", h.items, func(page store.Page) (items []*workitem.Item, err error) {
		rows, err := r.Items(ctx, store.ItemFilter{Root: h.tree.Root, Page: page})
		for _, row := range rows {
			items = append(items, row.Item)
		}
		return items, err
	}, func(it *workitem.Item) (workitem.ID, string) {
		return it.ID, it.ID.String()
	}, func(got, want *workitem.Item) bool {
		return got.State == want.State && got.Attempt == want.Attempt && got.Successor == want.Successor &&
			string(got.Output) == string(want.Output) && got.Failure.String() == want.Failure.String()
	})
}

func (c *checker) compareJobs(ctx context.Context, r store.Reader, h *history) {
	compareAll(c, h, "job", h.jobs, func(page store.Page) ([]*store.Job, error) {
		return r.Jobs(ctx, store.JobFilter{Root: h.tree.Root, Page: page})
	}, func(j *store.Job) (workitem.JobID, string) { return j.ID, j.ID.String() }, func(got, want *store.Job) bool {
		return got.State == want.State && got.Fence == want.Fence && got.Due.Equal(want.Due)
	})
}

// compareSteps also looks for names that a run of a job recorded twice.
func (c *checker) compareSteps(ctx context.Context, r store.Reader, h *history) {
	type name struct {
		job  workitem.JobID
		name string
		run  int
	}
	named := make(map[name]bool)
	compareAll(c, h, "step", h.steps, func(page store.Page) ([]*workitem.Step, error) {
		return r.Steps(ctx, store.StepFilter{Root: h.tree.Root, Page: page})
	}, func(s *workitem.Step) (workitem.StepID, string) {
		return s.ID, s.ID.String()
	}, func(got, want *workitem.Step) bool {
		return got.State == want.State && got.Attempt == want.Attempt && got.Due.Equal(want.Due) &&
			string(got.Result) == string(want.Result) && got.Failure.String() == want.Failure.String()
	})
	for _, s := range h.steps {
		key := name{s.Job, s.Name, s.Run}
		if named[key] {
			c.breach("S2: job %s recorded two steps %q in run %d", s.Job, s.Name, s.Run)
		}
		named[key] = true
	}
}

// compareMessages also looks for events that were taken by a step that is not there.
func (c *checker) compareMessages(ctx context.Context, r store.Reader, h *history) {
	compareAll(c, h, "event", h.messages, func(page store.Page) ([]*store.Message, error) {
		return r.Messages(ctx, store.MessageFilter{Root: h.tree.Root, Page: page})
	}, func(m *store.Message) (workitem.MessageID, string) {
		return m.ID, m.ID.String()
	}, func(got, want *store.Message) bool {
		return got.Step == want.Step && string(got.Value) == string(want.Value)
	})
	for _, m := range h.messages {
		if !m.Step.IsZero() && h.steps[m.Step] == nil {
			c.breach("S4: event %s was taken by step %s, which is not there", m.ID, m.Step)
		}
	}
}
