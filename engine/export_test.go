package engine

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/engine/internal/mailbox"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// CheckRecalled compares the steps that the writer remembers with those of the store. It returns how many it compared.
func CheckRecalled(ctx context.Context, e *Engine) (n int, err error) {
	return n, e.submit(ctx, &request{run: func(tx *Tx) error {
		for root, c := range e.trees {
			_, j := c.tree.Job(c.steps.job)
			steps, known := host{tx}.CachedSteps(root, c.steps.job)
			if !known || j == nil {
				continue
			}
			owner := [16]byte(j.ID)
			if j.Kind == state.JobRun {
				owner = j.Item
			}
			stored, err := tx.s.Steps(tx.ctx, owner)
			if err != nil {
				return err
			}
			stored = slices.DeleteFunc(stored, func(s *workitem.Step) bool { return s.Job != j.ID })
			if len(steps) != len(stored) {
				return fmt.Errorf("job %s: %d steps are remembered, and %d stored", j.ID, len(steps), len(stored))
			}
			for i, s := range steps {
				if !reflect.DeepEqual(s, stored[i]) {
					return fmt.Errorf("job %s: step %q is remembered as %+v, and stored as %+v", j.ID, s.Name, s, stored[i])
				}
				n++
			}
		}
		return nil
	}})
}

// Cached says how many root cases are in memory, and how many steps are remembered.
func Cached(ctx context.Context, e *Engine) (cases, steps int, err error) {
	err = e.submit(ctx, &request{reads: true, run: func(*Tx) error {
		cases, steps = len(e.trees), e.cachedSteps
		return nil
	}})
	return cases, steps, err
}

// InboxBatch is how many commands of other processes are read at a time.
const InboxBatch = mailbox.PageSize

// Inbox returns a function that looks into the inbox of an engine as it does now and then, for a store that hides it.
func Inbox(e *Engine, w store.Watcher) (look func() error) {
	p := e.newPoller(w)
	return func() error { return p.Poll(e.ctx) }
}

// Together has the writer find all that the functions ask for in its queue at once, in this order: each function sends one command
// and returns its outcome.
func Together(ctx context.Context, e *Engine, ask ...func() error) []error {
	held, release := make(chan struct{}), make(chan struct{})
	errs := make([]error, len(ask))
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.submit(ctx, &request{reads: true, once: true, run: func(*Tx) error { // the last of its batch
			close(held)
			<-release
			return nil
		}})
	})
	<-held
	for i, f := range ask {
		all.Go(func() { errs[i] = f() })
		for e.queue.len() <= i {
			runtime.Gosched()
		}
	}
	close(release)
	all.Wait()
	return errs
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) - q.taken
}

// Observe has f called with the events of each command that is committed from now on, by the writer.
func Observe(ctx context.Context, e *Engine, f func(root workitem.CaseID, events []state.Change)) error {
	return e.submit(ctx, &request{run: func(*Tx) error {
		e.observers = append(e.observers, observerFunc(f))
		return nil
	}})
}

type observerFunc func(root workitem.CaseID, events []state.Change)

// Committed implements observer.
func (f observerFunc) Committed(tree *state.Tree, events []state.Change) { f(tree.Root, events) }
