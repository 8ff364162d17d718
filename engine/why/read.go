package why

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Here is what the process that asks can do for cases, and shows of them. The zero value is a process that only reads, and shows all.
type Here struct {
	// Definition finds what the engine was opened with, by fingerprint; nil for one that it lacks. A nil function means
	// that this is not known.
	Definition func(fingerprint string) *workflow.Definition
	// Workers says how many jobs of a queue run at a time, here. A nil function means that this is not known.
	Workers func(queue string) int
	// Running says how many jobs of a queue run at the moment, here. A nil function means that this is not known.
	Running func(queue string) int
	// Full is how many jobs run at a time in all queues, here, if as many do at the moment; 0 if there is room for more. A nil function means that
	// this is not known.
	Full func() int
	// Limits lists the limits that a job waits for, which is due, or a step of it, by its name; nothing if it does not wait for one. A
	// nil function means that this is not known.
	Limits func(job workitem.JobID, step string) []Limit
	// Gathered says how many jobs wait to be done together with a job, which is due, and when they begin at the latest; 0 if it waits for
	// none. A nil function means that this is not known.
	Gathered func(job workitem.JobID) (there int, due time.Time)
	// Fair is the place of a job, which is due, in a queue that takes turns between keys; false if it has none here. A nil function means that
	// this is not known.
	Fair func(job workitem.JobID) (Fair, bool)
	// Failing says since when the store fails as a job of this engine, which is due, is to begin; zero if that is not so. A nil
	// function means that this is not known.
	Failing func(job workitem.JobID) time.Time
	// Shown is what is shown of a business key, whose kind is "key" and whose name is that of its workflow, or of the key of a limit, whose
	// kind is "limit" and whose name is that of the limit. A nil function shows them as they are.
	Shown func(kind, name, text string) string
}

// shown is what is shown of a key.
func (h *Here) shown(kind, name, key string) string {
	if h.Shown == nil || key == "" {
		return key
	}
	return h.Shown(kind, name, key)
}

// Input is what an answer is made of.
type Input struct {
	Here
	Tree *state.Tree
	Case workitem.CaseID
	Now  time.Time

	Paused map[string]store.QueueValue // what is set of queues, as that they are paused
	Set    map[string]store.LimitValue // the limits as they are defined and set, by name
	Takes  map[string]store.TakesValue // what functions take of limits, by the fingerprint of their definition
	Rows   store.LimitView             // what engines share of the limits that the tree takes of, and holds
	Due    map[string][]*state.Job     // of each queue in which a job of the tree is due: those that are, of all cases
	Open   map[string][]*store.ItemRow // of each queue in which an item of the tree waits: those that do, of all cases

	Hours   map[string]workflow.Hours               // in which functions may begin, by the fingerprint of their definition
	Batches map[string]map[string]workflow.Batching // in which items are done together, by the fingerprint of their definition and the task

	Before []*state.Case // if the root case waits for its turn: those with its key that go on and were started before it, oldest first
}

// Read reads the state of a case and explains it. The error wraps [store.ErrNotFound] if there is no such case.
func Read(ctx context.Context, r store.Reader, id workitem.CaseID, now time.Time, here Here) (*Answer, error) {
	root, err := r.Root(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", printable.ID(id), err)
	}
	tree, err := r.Tree(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", printable.ID(id), err)
	}
	if tree.Case(id) == nil {
		return nil, fmt.Errorf("case %s: %w", id, store.ErrNotFound)
	}
	return ReadOf(ctx, r, tree, id, now, here)
}

// ReadOf is [Read] for a caller that has the tree of the case already: the one that the reader has now. The case is in it.
func ReadOf(ctx context.Context, r store.Reader, tree *state.Tree, id workitem.CaseID, now time.Time, here Here) (*Answer, error) {
	in := Input{Here: here, Tree: tree, Case: id, Now: now,
		Due: make(map[string][]*state.Job), Open: make(map[string][]*store.ItemRow)}
	if err := in.readQueues(ctx, r); err != nil {
		return nil, err
	}
	if err := in.readSettings(ctx, r); err != nil {
		return nil, err
	}
	if err := in.readRows(ctx, r); err != nil {
		return nil, err
	}
	var err error
	if in.Hours, in.Batches, err = readConditions(ctx, r); err != nil {
		return nil, err
	}
	if in.Before, err = before(ctx, r, tree.Case(tree.Root)); err != nil {
		return nil, err
	}
	answer := Explain(in)
	answer.DeadLetter, err = deadLetterOf(ctx, r, tree.Case(id))
	return answer, err
}

// deadLetterOf finds the note about the dead letter of a root case that has failed in the last entry of its journal: the letter is
// started in the transaction of the failure, after those of its work items.
func deadLetterOf(ctx context.Context, r store.Reader, c *state.Case) (letter string, err error) {
	if c.State != state.CaseFailed || !c.Parent.IsZero() {
		return "", nil
	}
	last, err := r.Journal(ctx, store.JournalFilter{Root: c.Root, After: c.LastSeq - 1, Limit: 1})
	if err != nil {
		return "", fmt.Errorf("journal of case %s: %w", c.ID, err)
	}
	for _, e := range last {
		for _, change := range e.Changes {
			if n, ok := change.(*state.Noted); ok && n.Code == state.NoteDeadLetter {
				letter = n.Text
			}
		}
	}
	return letter, nil
}

// maxBefore is how many cases are read that others wait for.
const maxBefore = 10_000

// before lists the cases that a root case waits for, if it waits for its turn.
func before(ctx context.Context, r store.Finder, c *state.Case) (list []*state.Case, err error) {
	if c.Turn() == nil {
		return nil, nil
	}
	all, err := r.Cases(ctx, store.CaseFilter{Workflow: c.Workflow, Key: c.Key, RootOnly: true,
		States: []state.CaseState{state.CaseStarted}, Page: store.Page{Limit: maxBefore}})
	for _, other := range all {
		if other.HoldsKey() && bytes.Compare(other.ID[:], c.ID[:]) < 0 {
			list = append(list, other)
		}
	}
	return list, err
}

// readQueues reads who else waits in the queues that work of the tree waits in.
func (in *Input) readQueues(ctx context.Context, r store.Finder) (err error) {
	pending := []state.JobState{state.JobPending}
	fresh := []workitem.State{workitem.Initialized}
	in.Tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			if _, read := in.Due[j.Queue]; read || err != nil || !byWorker(j) || j.State != state.JobPending || j.Due.After(in.Now) {
				continue
			}
			in.Due[j.Queue], err = r.Jobs(ctx, store.JobFilter{Queue: &j.Queue, States: pending, Due: in.Now})
		}
		for it := range c.Items.All() {
			if _, read := in.Open[it.Queue]; read || err != nil || it.State != workitem.Initialized || hasRun(c, it) {
				continue
			}
			in.Open[it.Queue], err = r.Items(ctx, store.ItemFilter{Queue: &it.Queue, States: fresh})
		}
	})
	return err
}

// byWorker reports whether a job is done by a worker, and not by the engine itself.
func byWorker(j *state.Job) bool { return j.Kind == state.JobRun || j.Kind == state.JobCall }

// hasRun reports whether an item is done by a job.
func hasRun(c *state.Case, it *workitem.Item) bool {
	for _, j := range c.Jobs.Of(it.ID) {
		if j.Kind == state.JobRun {
			return true
		}
	}
	return false
}
