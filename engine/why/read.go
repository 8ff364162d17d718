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

// Here is what the process that asks can do for cases, and what it may show. The zero value is a process that only
// reads, and shows everything.
type Here struct {
	// Definition returns the definition with a fingerprint; nil if this process does not have it. If the function is
	// nil, it is not known what the process has.
	Definition func(fingerprint string) *workflow.Definition
	// Others reports whether another engine has the definition with a fingerprint. If the function is nil, there is no other
	// engine.
	Others func(fingerprint string) bool
	// Known reports whether an open engine has the definition with a fingerprint, for a process without an engine: it does not
	// say what this process can do. If the function is nil, that is not known.
	Known func(fingerprint string) bool
	// Opened is when the first of the engines was opened that Definition or Known is about; zero if that is not known.
	Opened time.Time
	// Workers returns how many jobs of a queue can run at a time here. If the function is nil, that is not known.
	Workers func(queue string) int
	// Running returns how many jobs of a queue run here now. If the function is nil, that is not known.
	Running func(queue string) int
	// Full returns the bound of running jobs of all queues here if it is reached; 0 if it is not. If the function is
	// nil, that is not known.
	Full func() int
	// Limits returns the limits that a due job, or the step of it with that name, waits for; nothing if it does not
	// wait for one. If the function is nil, that is not known.
	Limits func(job workitem.JobID, step string) []Limit
	// Elsewhere reports whether another engine has a due job. If the function is nil, there is no other engine.
	Elsewhere func(job workitem.JobID) bool
	// Gathered returns how many jobs are in the line of the batch of a due job, and the latest time at which they
	// start; 0 if it is in none. If the function is nil, that is not known.
	Gathered func(job workitem.JobID) (there int, due time.Time)
	// Fair returns the position of a due job in a fair queue; false if it has none here. If the function is nil, that
	// is not known.
	Fair func(job workitem.JobID) (Fair, bool)
	// KeyPaused returns the key of a due job that waits because that key of its queue is paused; false if it does not.
	// If the function is nil, that is not known.
	KeyPaused func(queue string, job workitem.JobID) (key string, paused bool)
	// Failing returns since when the store fails when this engine tries to start a due job; zero if it does not fail.
	// If the function is nil, that is not known.
	Failing func(job workitem.JobID) time.Time
	// Shown masks a key: a business key, with the kind "key" and the name of its workflow, the key of a limit, with the
	// kind "limit" and the name of the limit, or a key of a queue, with the kind "queue" and the name of the queue. A nil
	// function shows keys as they are.
	Shown func(kind, name, text string) string
}

// shown masks a key by Shown.
func (h *Here) shown(kind, name, key string) string {
	if h.Shown == nil || key == "" {
		return key
	}
	return h.Shown(kind, name, key)
}

// Input is the state from which an answer is computed.
type Input struct {
	Here
	Tree *state.Tree
	Case workitem.CaseID
	Now  time.Time

	Paused map[string]store.QueueValue // the settings of queues, by name
	Set    map[string]store.LimitValue // the limits as they are defined and set, by name
	Takes  map[string]store.TakesValue // what functions need of limits, by the fingerprint of their definition
	Rows   store.LimitView             // the rows of the limits that the tree needs or holds, if engines share them
	Due    map[string][]*state.Job     // the due jobs of all cases, for each queue with a due job of the tree
	Open   map[string][]*store.ItemRow // the open items of all cases, for each queue with an open item of the tree

	Hours   map[string]workflow.Hours               // the time windows of functions, by the fingerprint of their definition
	Batches map[string]map[string]workflow.Batching // the batches, by the fingerprint of their definition and the task

	// Named are the fingerprints of the definitions of a name that were registered, for each workflow of which a case of the tree
	// starts others. If it is nil, they are not known.
	Named map[string][]string

	Before []*state.Case // if the root case waits for its turn: the live cases with its key that were started before it, oldest first
}

// Read reads the state of a case and explains it. The error wraps [store.ErrNotFound] if there is no such case.
func Read(ctx context.Context, r store.Reader, id workitem.CaseID, now time.Time, here Here) (*Answer, error) {
	root, err := store.RootOfCase(ctx, r, id)
	if err != nil {
		return nil, err
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

// ReadOf is like [Read] for a caller that already has the tree of the case, which must be the current one of the reader.
func ReadOf(ctx context.Context, r store.Reader, tree *state.Tree, id workitem.CaseID, now time.Time, here Here) (*Answer, error) {
	here, err := here.WithFleet(ctx, r)
	if err != nil {
		return nil, err
	}
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
	if in.Hours, in.Batches, err = readConditions(ctx, r); err != nil {
		return nil, err
	}
	if in.Before, err = before(ctx, r, tree.Case(tree.Root)); err != nil {
		return nil, err
	}
	if err := in.readNamed(ctx, r); err != nil {
		return nil, err
	}
	answer := Explain(in)
	if answer.DeadLetter, err = deadLetterOf(ctx, r, tree.Case(id)); err != nil {
		return nil, err
	}
	answer.RestartedAs, err = store.SuccessorOf(ctx, r, tree.Case(id))
	return answer, err
}

// deadLetterOf returns the note about the dead letter of a failed root case from the last entry of its journal: the
// letter was started in the transaction of the failure, after those of its work items.
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

// maxBefore bounds the cases that are read of those before a queued case.
const maxBefore = 10_000

// before returns the cases that a root case waits for, if it waits for its turn.
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

// readQueues reads the other work in the queues in which work of the tree waits.
func (in *Input) readQueues(ctx context.Context, r store.Finder) (err error) {
	pending := []state.JobState{state.JobPending}
	fresh := []workitem.State{workitem.Initialized}
	in.Tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			if _, read := in.Due[j.Queue]; read || err != nil || !byWorker(j) || !needsWorker(j) || j.Due.After(in.Now) {
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

// needsWorker reports whether a job starts, or goes on after a sleep or between two attempts of a step, once it is due.
func needsWorker(j *state.Job) bool {
	return j.State == state.JobPending || j.State == state.JobWaiting && !j.Due.IsZero()
}

// byWorker reports whether a worker runs a job, and not the engine itself.
func byWorker(j *state.Job) bool { return j.Kind == state.JobRun || j.Kind == state.JobCall }

// hasRun reports whether an item is run by a job.
func hasRun(c *state.Case, it *workitem.Item) bool {
	for _, j := range c.Jobs.Of(it.ID) {
		if j.Kind == state.JobRun {
			return true
		}
	}
	return false
}
