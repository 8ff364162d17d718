package commit

import (
	"bytes"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// stepCache has the steps of the job of a tree that was claimed last, so that a function that waits briefly for an
// event continues without a query. Reading and decoding a thousand steps would block the writer, and all requests
// behind it, for milliseconds. The cache is a copy of what the store has, and may be dropped at any time.
type stepCache struct {
	job   workitem.JobID
	seq   int64            // the last entry of the tree that it includes; 0 if it is empty
	steps []*workitem.Step // all steps of the job, in the order of their ids
}

// maxCachedSteps bounds the number of cached steps of all trees: some megabytes, besides the trees themselves.
const maxCachedSteps = 20_000

// cacheSteps starts to cache the steps of a job, with those that its claim has read. If the claim is not committed, the
// tree is evicted together with its cache.
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

// updateSteps applies a transaction to the cached steps. Entries that the cache includes already are skipped; after a
// gap, since another engine has written in between, the cache is dropped.
func (t *trees) updateSteps(c *cached, u *TreeWrite) {
	for entry := range u.entries() {
		t.applySteps(c, entry)
	}
	t.trimSteps(c)
}

func (t *trees) applySteps(c *cached, entry *store.Entry) {
	r := &c.steps
	// The claim with whose steps the cache was filled is such an entry.
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
		// A job that has ended is not claimed again, so its steps are not needed.
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

// Ids increase, so a new step is nearly always the last.
func (r *stepCache) put(s *workitem.Step) {
	if i, ok := r.find(s.ID); ok {
		r.steps[i] = s
	} else {
		r.steps = slices.Insert(r.steps, i, s)
	}
}

// The total over all trees counts only what is cached, and is corrected by each change of a cache.
func (t *trees) dropSteps(c *cached) {
	t.steps -= len(c.steps.steps)
	c.steps = stepCache{}
}

// trimSteps bounds the number of cached steps. It drops those of up to 64 trees in the random order of the map, and in
// the end those of the newest.
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

// stepsOf returns the steps of a job of a tree, if they are cached and current.
// The position is compared with that of the tree: after a commit of another engine, the tree was read again and is
// newer than the cache. The result is a copy, as its caller may replace elements.
func (t *trees) stepsOf(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool) {
	c := t.byRoot[root]
	if c == nil || c.steps.job != job || c.steps.seq == 0 || c.steps.seq != c.tree.Case(root).LastSeq {
		return nil, false
	}
	return slices.Clone(c.steps.steps), true
}

// longSleep is the time from which on a sleeping case is evicted at once, and not only when the cache is full.
const longSleep = time.Minute

// sleepsLong reports whether a command has left a case that only waits for time: all its jobs sleep, and none is due
// within longSleep. A case that waits for an event stays in memory, since the event may come at any moment. Only small
// cases are examined, so that the check is cheap.
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
