package commit

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
// all requests behind it, for some milliseconds. It is a copy of what the store has, and may be dropped at any time.
type stepCache struct {
	job   workitem.JobID
	seq   int64            // the entry of the tree's journal up to which it has everything; 0 if nothing is remembered
	steps []*workitem.Step // all of the job, in the order of their ids
}

// maxCachedSteps bounds how many steps are remembered, of all trees together: some megabytes, beside the trees themselves.
const maxCachedSteps = 20_000

// cacheSteps begins to remember, with what the claim of a job has read and done, which is the last of its entry. If the claim is
// not committed, the tree leaves memory with all that is remembered of it.
func (t *trees) cacheSteps(u *TreeWrite, job workitem.JobID, steps []*workitem.Step) {
	c := t.byRoot[u.Tree.Root]
	if c == nil {
		return
	}
	t.dropSteps(c)
	c.steps = stepCache{job: job, seq: u.entry.Seq, steps: slices.Clip(slices.Clone(steps))}
	t.steps += len(steps)
	t.trimSteps(c)
}

// updateSteps takes in what a transaction did to the steps of the job. What is there already is there in the same state.
func (t *trees) updateSteps(c *cached, u *TreeWrite) {
	for entry := range u.entries() {
		t.applySteps(c, entry)
	}
	t.trimSteps(c)
}

func (t *trees) applySteps(c *cached, entry *store.Entry) {
	r := &c.steps
	if r.seq == 0 || entry.Seq <= r.seq {
		return
	}
	if entry.Prev != r.seq {
		t.dropSteps(c)
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
				t.steps += len(r.steps) - before
				t.dropSteps(c)
				return
			}
		}
	}
	t.steps += len(r.steps) - before
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

func (t *trees) dropSteps(c *cached) {
	t.steps -= len(c.steps.steps)
	c.steps = stepCache{}
}

// trimSteps keeps what is remembered within its size: it looks at some trees, wherever the map begins, and has them forget.
func (t *trees) trimSteps(newest *cached) {
	seen := 0
	for _, c := range t.byRoot {
		if t.steps <= maxCachedSteps || seen == 64 {
			break
		}
		seen++
		if c != newest {
			t.dropSteps(c)
		}
	}
	if t.steps > maxCachedSteps {
		t.dropSteps(newest)
	}
}

// stepsOf lists the steps of a job of a tree, if they are remembered.
func (t *trees) stepsOf(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool) {
	c := t.byRoot[root]
	if c == nil || c.steps.job != job || c.steps.seq == 0 || c.steps.seq != c.tree.Case(root).LastSeq {
		return nil, false
	}
	return slices.Clone(c.steps.steps), true
}

// longSleep is from when on a sleeping case leaves memory at once, and not only when others need the room.
const longSleep = time.Minute

// sleepsLong reports whether a command has left a case to nothing but time: all its jobs sleep, and none is due for a while.
// One that waits for a change may get it a moment later, so it stays. Only small cases are looked at.
func sleepsLong(u *TreeWrite) bool {
	root := u.Tree.Case(u.Tree.Root)
	suspended := func(e state.Change) bool {
		m, ok := e.(*state.JobMoved)
		return ok && m.To == state.JobWaiting
	}
	if u.Tree.Len() != 1 || root.Jobs.Len() > 8 || root.Steps.Len() > 8 || !slices.ContainsFunc(u.changes(), suspended) {
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
