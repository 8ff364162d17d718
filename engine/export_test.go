package engine

import (
	"context"
	"runtime"
	"sync"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/mailbox"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// CheckRecalled compares the steps that the writer remembers with those of the store. It returns how many it compared.
func CheckRecalled(ctx context.Context, e *Engine) (n int, err error) {
	return e.writer.CheckSteps(ctx)
}

// Cached says how many root cases are in memory, and how many steps are remembered.
func Cached(ctx context.Context, e *Engine) (cases, steps int, err error) {
	return e.writer.InMemory(ctx)
}

// InboxBatch is how many commands of other processes are read at a time.
const InboxBatch = mailbox.PageSize

// Inbox returns a function that looks into the inbox of an engine as it does now and then, for a store that hides it.
func Inbox(e *Engine, w mailbox.Watcher) (look func() error) {
	p := e.newPoller(w)
	return func() error { return p.Poll(e.ctx) }
}

// together is the key of the contexts of [Together], by which its requests are distinguished from those of the engine itself.
type together struct{}

// Together has the writer find all that the functions ask for in its queue at once, in this order: each function sends one command
// with the context that it gets, and returns its outcome.
func Together(ctx context.Context, e *Engine, ask ...func(context.Context) error) []error {
	marked := context.WithValue(ctx, together{}, true)
	held, release := make(chan struct{}), make(chan struct{})
	errs := make([]error, len(ask))
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.writer.Submit(ctx, &commit.Request{Reads: true, Once: true, Run: func(*commit.Tx) error { // the last of its batch
			close(held)
			<-release
			return nil
		}})
	})
	<-held
	for i, f := range ask {
		all.Go(func() { errs[i] = f(marked) })
		for e.writer.Queued(together{}) <= i {
			runtime.Gosched()
		}
	}
	close(release)
	all.Wait()
	return errs
}

// Observe has f called with the events of each command that is committed from now on, by the writer.
func Observe(ctx context.Context, e *Engine, f func(root workitem.CaseID, events []state.Change)) error {
	return e.writer.Submit(ctx, &commit.Request{Run: func(*commit.Tx) error {
		e.writer.Observe(observerFunc(f))
		return nil
	}})
}

type observerFunc func(root workitem.CaseID, events []state.Change)

// Committed implements commit.Observer.
func (f observerFunc) Committed(tree *state.Tree, events []state.Change) { f(tree.Root, events) }
