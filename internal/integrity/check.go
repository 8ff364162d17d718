// Package integrity proves that a database is what it says it is: every case is rebuilt from its journal alone, the
// rules that every case must keep are checked on the way, and the result is compared with the tables.
//
// The rules, with the numbers that they have in the reference of this field:
//
//	I1   no condition ever holds less than no token
//	I2   a task was enabled as often as its generation says, one after the other
//	I3   at most one activation of a task is active at a time
//	I4   an activation ends once
//	I5   nothing of an ended activation is live
//	I6   tokens are consumed where they were, and produced by completed tasks only
//	I7   the journal yields the stored state
//	I8   the tables hold nothing that the journal does not know, and count what they hold
//	I9   nothing of an ended case changes
//	I10  a started item has a started task, and every case above it has begun
//	S1   a step waits only for a live job, and a job waits only for a step
//	S2   a name is recorded once for a job
//	S3   a child case that a step runs is live only while the step waits
//	S4   an event is taken once, by one step
package integrity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Check reports every breach that it finds in the store; nil means that there is none.
func Check(ctx context.Context, s interface {
	View(ctx context.Context, f func(store.Reader) error) error
}) error {
	var breaches []error
	err := s.View(ctx, func(r store.Reader) error {
		c := &checker{trees: make(map[workitem.CaseID]*history)}
		if err := c.replay(ctx, r); err != nil {
			return err
		}
		for _, h := range c.order {
			c.compare(ctx, r, h)
		}
		c.orphans(ctx, r)
		breaches = c.breaches
		return nil
	})
	return errors.Join(append(breaches, err)...)
}

// history is what the journal says of one root case.
type history struct {
	tree  *store.Tree
	last  int64
	items map[workitem.ID]*workitem.Item
	jobs  map[workitem.JobID]*store.Job

	steps    map[workitem.StepID]*workitem.Step
	messages map[workitem.MessageID]*store.Message
}

type checker struct {
	trees    map[workitem.CaseID]*history
	order    []*history
	breaches []error
}

func (c *checker) breach(format string, args ...any) {
	c.breaches = append(c.breaches, fmt.Errorf(format, args...))
}

// replay applies every entry of the journal.
func (c *checker) replay(ctx context.Context, r store.Reader) error {
	filter := store.JournalFilter{Limit: store.DefaultLimit}
	for {
		entries, err := r.Journal(ctx, filter)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Seq <= filter.After {
				c.breach("journal entry %d comes after %d", e.Seq, filter.After)
			}
			filter.After = e.Seq
			c.entry(e)
		}
		if len(entries) < filter.Limit {
			return nil
		}
	}
}

func (c *checker) entry(e *store.Entry) {
	h := c.trees[e.Root]
	if h == nil {
		h = &history{tree: store.NewTree(), items: make(map[workitem.ID]*workitem.Item), jobs: make(map[workitem.JobID]*store.Job),
			steps: make(map[workitem.StepID]*workitem.Step), messages: make(map[workitem.MessageID]*store.Message)}
		h.tree.Root = e.Root
		c.trees[e.Root] = h
		c.order = append(c.order, h)
	}
	if e.Prev != h.last {
		c.breach("journal entry %d of case %s follows %d, and says %d", e.Seq, e.Root, h.last, e.Prev)
	}
	h.last = e.Seq
	h.tree.Begin()
	for _, event := range e.Events {
		c.rules(h, e, event)
		if err := h.tree.Apply(event); err != nil {
			c.breach("I1: journal entry %d: %w", e.Seq, err)
		}
	}
	d := h.tree.End(e.Seq)
	if d.Removed { // a database that is read beside its owner may still show the journal of a case that is gone
		delete(c.trees, e.Root)
		c.order = slices.DeleteFunc(c.order, func(other *history) bool { return other == h })
		return
	}
	for _, it := range d.Items {
		h.items[it.ID] = it
	}
	for _, j := range d.Jobs {
		h.jobs[j.ID] = j
	}
	for _, s := range d.Steps {
		h.steps[s.ID] = s
	}
	for _, m := range d.Messages {
		h.messages[m.ID] = m
	}
	h.tree.Each(func(k *store.Case) { c.state(e, h.tree, k) })
}
