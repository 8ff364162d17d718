package integrity

import (
	"context"

	"github.com/tasq-dev/tasq/store"
)

// orphans finds what the tables hold and the journal does not know, as a removal that forgets half of a case would leave
// behind, and counts that do not add up.
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

func (c *checker) orphanRows(ctx context.Context, r store.Reader) {
	cases := store.CaseFilter{}
	for {
		rows, err := r.Cases(ctx, cases)
		if err != nil {
			c.breach("I8: the cases cannot be listed: %w", err)
			return
		}
		for _, k := range rows {
			cases.After = k.ID.String()
			if h := c.trees[k.Root]; h == nil || h.tree.Case(k.ID) == nil {
				c.breach("I8: case %s is in the tables, and not in the journal", k.ID)
			}
		}
		if len(rows) < store.DefaultLimit {
			break
		}
	}
	jobs := store.JobFilter{}
	for {
		rows, err := r.Jobs(ctx, jobs)
		if err != nil {
			c.breach("I8: the jobs cannot be listed: %w", err)
			return
		}
		for _, j := range rows {
			jobs.After = j.ID.String()
			if h := c.trees[j.Root]; h == nil || h.jobs[j.ID] == nil {
				c.breach("I8: job %s is in the tables, and not in the journal", j.ID)
			}
		}
		if len(rows) < store.DefaultLimit {
			break
		}
	}
}
