// Package integrity proves that a database is what it says it is: every case is rebuilt from its journal alone, the rules
// that every case must keep are checked on the way, and the result is compared with the tables.
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

	"github.com/tasq-dev/tasq/net"
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

// rules checks what an event may do, before it is applied.
func (c *checker) rules(h *history, e *store.Entry, event store.Event) {
	switch event := event.(type) {
	case *store.TaskMoved:
		k := h.tree.Case(event.Case)
		if k == nil {
			c.breach("journal entry %d moves a task of case %s, which is not there", e.Seq, event.Case)
			return
		}
		if k.State.Final() {
			c.breach("I9: journal entry %d moves task %s of case %s, which is %s",
				e.Seq, k.Net.TaskName(event.Task), k.ID, k.State)
		}
		c.taskMove(e, k, event)
	case *store.Produced:
		if k := h.tree.Case(event.Case); k != nil && k.Tasks[event.Task].State != store.TaskCompleted {
			c.breach("I6: journal entry %d: task %s of case %s produces tokens, and is %s",
				e.Seq, k.Net.TaskName(event.Task), k.ID, k.Tasks[event.Task].State)
		}
	case *store.ItemMoved:
		if it := h.items[event.Item]; it != nil && it.State.Final() {
			c.breach("I9: journal entry %d moves item %s, which is %s", e.Seq, it.ID, it.State)
		}
	}
}

// taskMove checks one change of a task's state.
func (c *checker) taskMove(e *store.Entry, k *store.Case, m *store.TaskMoved) {
	task, name := k.Tasks[m.Task], k.Net.TaskName(m.Task)
	if m.To == store.TaskEnabled {
		if m.Generation != task.Generation+1 {
			c.breach("I2: journal entry %d: task %s of case %s is enabled as %d after %d",
				e.Seq, name, k.ID, m.Generation, task.Generation)
		}
		if task.State.Active() {
			c.breach("I3: journal entry %d: task %s of case %s is enabled while it is %s", e.Seq, name, k.ID, task.State)
		}
		return
	}
	if m.Generation != task.Generation {
		c.breach("I4: journal entry %d: activation %d of task %s of case %s moves during %d",
			e.Seq, m.Generation, name, k.ID, task.Generation)
	}
	from := map[store.TaskState][]store.TaskState{
		store.TaskStarted:   {store.TaskEnabled},
		store.TaskDisabled:  {store.TaskEnabled},
		store.TaskCompleted: {store.TaskStarted},
		store.TaskFailed:    {store.TaskStarted},
		store.TaskCanceled:  {store.TaskEnabled, store.TaskStarted},
	}[m.To]
	if !slices.Contains(from, task.State) {
		c.breach("I4: journal entry %d: task %s of case %s goes from %s to %s", e.Seq, name, k.ID, task.State, m.To)
	}
	if m.To == store.TaskStarted {
		want := k.Net.Consumes(nil, m.Task, k.Marking)
		if !slices.Equal(want, m.Consumed) {
			c.breach("I6: journal entry %d: task %s of case %s consumes %v instead of %v", e.Seq, name, k.ID, m.Consumed, want)
		}
	}
}

// state checks what must hold of a case between two commands.
func (c *checker) state(e *store.Entry, tree *store.Tree, k *store.Case) {
	for it := range k.Items.All() {
		t, ok := k.Net.TaskByName(it.Task)
		if !ok {
			c.breach("journal entry %d: item %s belongs to no task", e.Seq, it.ID)
			continue
		}
		task := k.Tasks[t]
		live := it.State.Live()
		if live && (it.Generation != task.Generation || !task.State.Active() || k.State.Final()) {
			c.breach("I5: journal entry %d: item %s (%s) of case %s is %s, its task is %s in activation %d, its case %s",
				e.Seq, it.Label(), it.ID, k.ID, it.State, task.State, task.Generation, k.State)
		}
		if it.State == workitem.Started && (task.State != store.TaskStarted || !k.Begun) {
			c.breach("I10: journal entry %d: item %s of case %s is started, its task is %s", e.Seq, it.Label(), k.ID, task.State)
		}
	}
	for j := range k.Jobs.All() {
		if k.State.Final() && !j.Detached {
			c.breach("I5: journal entry %d: job %s of case %s is %s, and the case is %s", e.Seq, j.ID, k.ID, j.State, k.State)
		}
		if it := k.Item(j.Item); it != nil && it.State.Final() {
			c.breach("I5: journal entry %d: job %s is %s, and its item %s is %s", e.Seq, j.ID, j.State, it.Label(), it.State)
		}
	}
	c.waits(e, tree, k)
	if k.Parent.IsZero() || !k.Caller.IsZero() {
		return
	}
	parent := tree.Case(k.Parent)
	t, _ := parent.Net.TaskByName(k.ParentTask)
	if k.State == store.CaseStarted && (!parent.Tasks[t].State.Active() || parent.Tasks[t].Generation != k.Generation) {
		c.breach("I5: journal entry %d: case %s is started, and its task %s is %s in activation %d",
			e.Seq, k.ID, k.ParentTask, parent.Tasks[t].State, parent.Tasks[t].Generation)
	}
	if k.Begun && !parent.Begun {
		c.breach("I10: journal entry %d: case %s has begun, and the case above it has not", e.Seq, k.ID)
	}
}

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

// pageSize is how many rows are read at a time: many, since each page of a case's rows costs as much as the case is large.
const pageSize = 10_000

func (c *checker) compareItems(ctx context.Context, r store.Reader, h *history) {
	seen := 0
	filter := store.ItemFilter{Root: h.tree.Root, Page: store.Page{Limit: pageSize}}
	for {
		rows, err := r.Items(ctx, filter)
		if err != nil {
			c.breach("I7: items of case %s: %w", h.tree.Root, err)
			return
		}
		for _, got := range rows {
			seen++
			want := h.items[got.ID]
			if want == nil || got.State != want.State || got.Attempt != want.Attempt || got.Successor != want.Successor ||
				string(got.Output) != string(want.Output) || got.Failure.String() != want.Failure.String() {
				c.breach("I7: item %s is %+v in the tables, and %+v in the journal", got.ID, got.Item, want)
			}
			filter.After = got.ID.String()
		}
		if len(rows) < pageSize {
			break
		}
	}
	if seen != len(h.items) {
		c.breach("I7: case %s has %d items in the tables, and %d in the journal", h.tree.Root, seen, len(h.items))
	}
}

func (c *checker) compareJobs(ctx context.Context, r store.Reader, h *history) {
	seen := 0
	filter := store.JobFilter{Root: h.tree.Root, Page: store.Page{Limit: pageSize}}
	for {
		rows, err := r.Jobs(ctx, filter)
		if err != nil {
			c.breach("I7: jobs of case %s: %w", h.tree.Root, err)
			return
		}
		for _, got := range rows {
			seen++
			want := h.jobs[got.ID]
			if want == nil || got.State != want.State || got.Fence != want.Fence || !got.Due.Equal(want.Due) {
				c.breach("I7: job %s is %+v in the tables, and %+v in the journal", got.ID, got, want)
			}
			filter.After = got.ID.String()
		}
		if len(rows) < pageSize {
			break
		}
	}
	if seen != len(h.jobs) {
		c.breach("I7: case %s has %d jobs in the tables, and %d in the journal", h.tree.Root, seen, len(h.jobs))
	}
}
