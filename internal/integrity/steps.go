package integrity

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// waits checks what must hold of steps between two commands.
func (c *checker) waits(e *store.Entry, tree *store.Tree, k *store.Case) {
	waiting := make(map[workitem.JobID]bool)
	for s := range k.Steps.All() {
		waiting[s.Job] = true
		if k.Job(s.Job) == nil {
			c.breach("S1: journal entry %d: step %q of case %s waits, and its job %s has ended", e.Seq, s.Name, k.ID, s.Job)
		}
	}
	for j := range k.Jobs.All() {
		if j.State == store.JobWaiting && !waiting[j.ID] {
			c.breach("S1: journal entry %d: job %s of case %s waits for nothing", e.Seq, j.ID, k.ID)
		}
	}
	if k.Caller.IsZero() || k.State.Final() {
		return
	}
	parent := tree.Case(k.Parent)
	for s := range parent.Steps.All() {
		if s.Child == k.ID {
			return
		}
	}
	c.breach("S3: journal entry %d: case %s is live, and no step of case %s waits for it", e.Seq, k.ID, k.Parent)
}

// compareSteps holds the stored steps against those of the journal.
func (c *checker) compareSteps(ctx context.Context, r store.Reader, h *history) {
	type name struct {
		job  workitem.JobID
		name string
		run  int
	}
	seen := 0
	named := make(map[name]bool)
	filter := store.StepFilter{Root: h.tree.Root}
	for {
		rows, err := r.Steps(ctx, filter)
		if err != nil {
			c.breach("I7: steps of case %s: %w", h.tree.Root, err)
			return
		}
		for _, got := range rows {
			seen++
			want := h.steps[got.ID]
			if want == nil || got.State != want.State || got.Attempt != want.Attempt || !got.Due.Equal(want.Due) ||
				string(got.Result) != string(want.Result) || got.Failure.String() != want.Failure.String() {
				c.breach("I7: step %s is %+v in the tables, and %+v in the journal", got.ID, got, want)
			}
			key := name{got.Job, got.Name, got.Run}
			if named[key] {
				c.breach("S2: job %s recorded two steps %q in run %d", got.Job, got.Name, got.Run)
			}
			named[key] = true
			filter.After = got.ID.String()
		}
		if len(rows) < store.DefaultLimit {
			break
		}
	}
	if seen != len(h.steps) {
		c.breach("I7: case %s has %d steps in the tables, and %d in the journal", h.tree.Root, seen, len(h.steps))
	}
}

// compareMessages holds the stored events against those of the journal.
func (c *checker) compareMessages(ctx context.Context, r store.Reader, h *history) {
	seen := 0
	filter := store.MessageFilter{Root: h.tree.Root}
	for {
		rows, err := r.Messages(ctx, filter)
		if err != nil {
			c.breach("I7: events of case %s: %w", h.tree.Root, err)
			return
		}
		for _, got := range rows {
			seen++
			want := h.messages[got.ID]
			if want == nil || got.Step != want.Step || string(got.Value) != string(want.Value) {
				c.breach("I7: event %s is %+v in the tables, and %+v in the journal", got.ID, got, want)
			}
			if want != nil && !want.Step.IsZero() && h.steps[want.Step] == nil {
				c.breach("S4: event %s was taken by step %s, which is not there", got.ID, want.Step)
			}
			filter.After = got.ID.String()
		}
		if len(rows) < store.DefaultLimit {
			break
		}
	}
	if seen != len(h.messages) {
		c.breach("I7: case %s has %d events in the tables, and %d in the journal", h.tree.Root, seen, len(h.messages))
	}
}
