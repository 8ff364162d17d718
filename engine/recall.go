package engine

import (
	"bytes"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// recall is what the writer remembers of the steps of the job of a tree that was claimed last. A function that waits for an
// event a moment later goes on without a query: reading and decoding a thousand steps would hold up the writer, and
// everybody behind it, for some milliseconds. It is a copy of what the store has, and may be dropped at any time.
type recall struct {
	job   workitem.JobID
	seq   int64            // the entry of the tree's journal up to which it has everything; 0 if nothing is remembered
	steps []*workitem.Step // all of the job, in the order of their ids
}

// recallSteps bounds how many steps are remembered, of all trees together: some megabytes, beside the trees themselves.
const recallSteps = 20_000

// recallClaim begins to remember, with what the claim of a job has read. The claim is not committed yet; if it never is, the
// tree leaves memory with all that is remembered of it.
func (e *Engine) recallClaim(tx *Tx, n entry, steps []*workitem.Step) {
	for _, u := range tx.units {
		if c := e.trees[u.tree.Root]; c != nil && u.tree.Root == n.root {
			e.recallDrop(c)
			c.recall = recall{job: n.job, seq: u.entry.Prev, steps: slices.Clip(slices.Clone(steps))}
			e.recalled += len(steps)
			e.recallNote(c, u)
		}
	}
}

// recallNote takes in what a transaction did to the steps of the job. What is there already is there in the same state.
func (e *Engine) recallNote(c *cached, u *unit) {
	for entry := range u.entries() {
		e.recallEntry(c, entry)
	}
	e.recallTrim(c)
}

func (e *Engine) recallEntry(c *cached, entry *store.Entry) {
	r := &c.recall
	if r.seq == 0 || entry.Seq <= r.seq {
		return
	}
	if entry.Prev != r.seq {
		e.recallDrop(c)
		return
	}
	r.seq = entry.Seq
	before := len(r.steps)
	for _, event := range entry.Events {
		switch event := event.(type) {
		case *store.StepOpened:
			if event.Step.Job == r.job {
				r.put(event.Step)
			}
		case *store.StepMoved:
			if i, ok := r.find(event.Step); ok && event.Job == r.job {
				r.steps[i] = event.Move(r.steps[i])
			}
		case *store.JobMoved:
			if event.Job == r.job && !event.To.Live() {
				e.recalled += len(r.steps) - before
				e.recallDrop(c)
				return
			}
		}
	}
	e.recalled += len(r.steps) - before
}

func (r *recall) find(id workitem.StepID) (int, bool) {
	return slices.BinarySearchFunc(r.steps, id, func(s *workitem.Step, id workitem.StepID) int {
		return bytes.Compare(s.ID[:], id[:])
	})
}

func (r *recall) put(s *workitem.Step) {
	if i, ok := r.find(s.ID); ok {
		r.steps[i] = s
	} else {
		r.steps = slices.Insert(r.steps, i, s)
	}
}

func (e *Engine) recallDrop(c *cached) {
	e.recalled -= len(c.recall.steps)
	c.recall = recall{}
}

// recallTrim keeps what is remembered within its size: it looks at some trees, wherever the map begins, and has them forget.
func (e *Engine) recallTrim(newest *cached) {
	seen := 0
	for _, c := range e.trees {
		if e.recalled <= recallSteps || seen == 64 {
			break
		}
		seen++
		if c != newest {
			e.recallDrop(c)
		}
	}
	if e.recalled > recallSteps {
		e.recallDrop(newest)
	}
}

// Recalled implements [kernel.Host].
func (h host) Recalled(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool) {
	c := h.tx.e.trees[root]
	if c == nil || c.recall.job != job || c.recall.seq == 0 || c.recall.seq != c.tree.Case(root).LastSeq {
		return nil, false
	}
	return slices.Clone(c.recall.steps), true
}

// longSleep is from when on a sleeping case leaves memory at once, and not only when others need the room.
const longSleep = time.Minute

// sleepsLong reports whether a command has left a case to nothing but time: all its jobs sleep, and none is due for a while.
// One that waits for an event may get it a moment later, so it stays. Only small cases are looked at.
func sleepsLong(u *unit) bool {
	root := u.tree.Case(u.tree.Root)
	suspended := func(e store.Event) bool {
		m, ok := e.(*store.JobMoved)
		return ok && m.To == store.JobWaiting
	}
	if u.tree.Len() != 1 || root.Jobs.Len() > 8 || root.Steps.Len() > 8 || !slices.ContainsFunc(u.events(), suspended) {
		return false
	}
	until := u.entry.At.Add(longSleep)
	for j := range root.Jobs.All() {
		if j.State != store.JobWaiting || j.Due.Before(until) {
			return false
		}
	}
	for s := range root.Steps.All() {
		if s.Kind == workitem.StepEvent || s.Kind == workitem.StepCase {
			return false
		}
	}
	return true
}
