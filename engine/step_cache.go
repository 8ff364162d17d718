package engine

import (
	"bytes"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// stepCache is what the writer remembers of the steps of the job of a tree that was claimed last. A function that waits for an
// change a moment later goes on without a query: reading and decoding a thousand steps would hold up the writer, and
// everybody behind it, for some milliseconds. It is a copy of what the store has, and may be dropped at any time.
type stepCache struct {
	job   workitem.JobID
	seq   int64            // the entry of the tree's journal up to which it has everything; 0 if nothing is remembered
	steps []*workitem.Step // all of the job, in the order of their ids
}

// maxCachedSteps bounds how many steps are remembered, of all trees together: some megabytes, beside the trees themselves.
const maxCachedSteps = 20_000

// cacheSteps begins to remember, with what the claim of a job has read. The claim is not committed yet; if it never is, the
// tree leaves memory with all that is remembered of it.
func (e *Engine) cacheSteps(tx *Tx, n entry, steps []*workitem.Step) {
	for _, u := range tx.writes {
		if c := e.trees[u.tree.Root]; c != nil && u.tree.Root == n.root {
			e.dropSteps(c)
			c.steps = stepCache{job: n.job, seq: u.entry.Prev, steps: slices.Clip(slices.Clone(steps))}
			e.cachedSteps += len(steps)
			e.updateSteps(c, u)
		}
	}
}

// updateSteps takes in what a transaction did to the steps of the job. What is there already is there in the same state.
func (e *Engine) updateSteps(c *cached, u *treeWrite) {
	for entry := range u.entries() {
		e.applySteps(c, entry)
	}
	e.trimSteps(c)
}

func (e *Engine) applySteps(c *cached, entry *store.Entry) {
	r := &c.steps
	if r.seq == 0 || entry.Seq <= r.seq {
		return
	}
	if entry.Prev != r.seq {
		e.dropSteps(c)
		return
	}
	r.seq = entry.Seq
	before := len(r.steps)
	for _, change := range entry.Changes {
		switch change := change.(type) {
		case *state.StepOpened:
			if change.Step.Job == r.job {
				r.put(change.Step)
			}
		case *state.StepMoved:
			if i, ok := r.find(change.Step); ok && change.Job == r.job {
				r.steps[i] = change.Move(r.steps[i])
			}
		case *state.JobMoved:
			if change.Job == r.job && !change.To.Live() {
				e.cachedSteps += len(r.steps) - before
				e.dropSteps(c)
				return
			}
		}
	}
	e.cachedSteps += len(r.steps) - before
}

func (r *stepCache) find(id workitem.StepID) (int, bool) {
	return slices.BinarySearchFunc(r.steps, id, func(s *workitem.Step, id workitem.StepID) int {
		return bytes.Compare(s.ID[:], id[:])
	})
}

func (r *stepCache) put(s *workitem.Step) {
	if i, ok := r.find(s.ID); ok {
		r.steps[i] = s
	} else {
		r.steps = slices.Insert(r.steps, i, s)
	}
}

func (e *Engine) dropSteps(c *cached) {
	e.cachedSteps -= len(c.steps.steps)
	c.steps = stepCache{}
}

// trimSteps keeps what is remembered within its size: it looks at some trees, wherever the map begins, and has them forget.
func (e *Engine) trimSteps(newest *cached) {
	seen := 0
	for _, c := range e.trees {
		if e.cachedSteps <= maxCachedSteps || seen == 64 {
			break
		}
		seen++
		if c != newest {
			e.dropSteps(c)
		}
	}
	if e.cachedSteps > maxCachedSteps {
		e.dropSteps(newest)
	}
}

// CachedSteps implements [kernel.Host].
func (h host) CachedSteps(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool) {
	c := h.tx.e.trees[root]
	if c == nil || c.steps.job != job || c.steps.seq == 0 || c.steps.seq != c.tree.Case(root).LastSeq {
		return nil, false
	}
	return slices.Clone(c.steps.steps), true
}

// longSleep is from when on a sleeping case leaves memory at once, and not only when others need the room.
const longSleep = time.Minute

// sleepsLong reports whether a command has left a case to nothing but time: all its jobs sleep, and none is due for a while.
// One that waits for a change may get it a moment later, so it stays. Only small cases are looked at.
func sleepsLong(u *treeWrite) bool {
	root := u.tree.Case(u.tree.Root)
	suspended := func(e state.Change) bool {
		m, ok := e.(*state.JobMoved)
		return ok && m.To == state.JobWaiting
	}
	if u.tree.Len() != 1 || root.Jobs.Len() > 8 || root.Steps.Len() > 8 || !slices.ContainsFunc(u.changes(), suspended) {
		return false
	}
	until := u.entry.At.Add(longSleep)
	for j := range root.Jobs.All() {
		if j.State != state.JobWaiting || j.Due.Before(until) {
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
