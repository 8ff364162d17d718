package integrity

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// orphans reports orphaned rows, such as an incomplete removal of a case would leave.
func (c *checker) orphans(audit store.Audit) {
	for _, s := range audit.Orphans {
		if s.What == "journal entry" {
			c.breach("I7", "case %s is in the journal (entry %s) and not in the tables", s.Case, s.ID)
			continue
		}
		c.breach("I8", "%s %s is in the tables, and its case %s is not", s.What, s.ID, s.Case)
	}
	if c.report.Entries != audit.Entries {
		c.breach("J1", "the journal has %d entries, and the chains of the cases lead to %d of them",
			audit.Entries, c.report.Entries)
	}
}

// count adds the expected counts of a family.
func (c *checker) count(f *family) {
	workflows := make(map[workitem.CaseID]string)
	f.tree.Each(func(k *state.Case) {
		workflows[k.ID] = k.Workflow
		c.counts[store.Count{What: "case", Workflow: k.Workflow, State: k.State.String()}]++
		c.ended.AddCase(k, 1)
	})
	for _, it := range f.items {
		c.counts[store.Count{What: "item", Workflow: workflows[it.Case], Task: it.Task, State: it.State.String()}]++
		c.ended.AddItem(workflows[it.Case], it, 1)
	}
	for _, j := range f.jobs {
		c.counts[store.Count{What: "job", Workflow: workflows[j.Case], Task: j.Task, State: j.State.String()}]++
	}
}

// compareCounts compares the counts in the tables with the expected ones, of existing and of ended items and cases.
func (c *checker) compareCounts(ctx context.Context, r store.Counter) error {
	counts, err := r.Counts(ctx)
	if err != nil {
		return err
	}
	for _, got := range counts {
		n := got.N
		got.N = 0
		compareCount(c, "", c.counts, got, n)
	}
	for _, cases := range []bool{false, true} {
		ended, err := r.Ended(ctx, store.RateFilter{Hourly: true, Cases: cases})
		if err != nil {
			return err
		}
		for _, got := range ended {
			n := got.N
			got.N = 0
			compareCount(c, " that ended", c.ended, got, n)
		}
	}
	compareRest(c, "", c.counts)
	compareRest(c, " that ended", c.ended)
	return nil
}

// compareCount compares one count with the expected one of its kind, and removes that.
func compareCount[K store.Count | store.Ended](c *checker, what string, counted map[K]int64, kind K, n int64) {
	if n != counted[kind] {
		c.breach("I8", "there are %d%s of %+v by the counts of the tables, and %d by the journal", n, what, kind, counted[kind])
	}
	delete(counted, kind)
}

// compareRest reports expected counts that are not in the tables.
func compareRest[K store.Count | store.Ended](c *checker, what string, counted map[K]int64) {
	for kind, n := range counted {
		c.breach("I8", "there are none%s of %+v by the counts of the tables, and %d by the journal", what, kind, n)
	}
}
