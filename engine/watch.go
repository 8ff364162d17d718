package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// watchers are those who wait for something to happen to a root case. A signal says that something did, not what: so a
// slow watcher never holds anybody up. Who waits for the end of a case gets no signal before, and the case with it.
type watchers struct {
	mu     sync.Mutex
	by     map[workitem.CaseID]map[chan struct{}]bool
	all    map[chan struct{}]bool
	ends   map[workitem.CaseID][]chan *store.Case
	fails  map[workitem.CaseID][]chan struct{} // those who want to know of incidents
	closed bool
}

func (w *watchers) init() {
	w.by = make(map[workitem.CaseID]map[chan struct{}]bool)
	w.all = make(map[chan struct{}]bool)
	w.ends = make(map[workitem.CaseID][]chan *store.Case)
	w.fails = make(map[workitem.CaseID][]chan struct{})
}

// join returns a channel that is signaled at every change of the root case, or of any if root is zero; leave it when done.
func (w *watchers) join(root workitem.CaseID) (signal chan struct{}, leave func()) {
	signal = make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(signal)
		return signal, func() {}
	}
	set := w.all
	if !root.IsZero() {
		if w.by[root] == nil {
			w.by[root] = make(map[chan struct{}]bool)
		}
		set = w.by[root]
	}
	set[signal] = true
	return signal, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(set, signal)
		if !root.IsZero() && len(set) == 0 {
			delete(w.by, root)
		}
	}
}

// joinEnd returns a channel that gets the root case once it has ended; leave it when done.
func (w *watchers) joinEnd(root workitem.CaseID) chan *store.Case {
	end := make(chan *store.Case, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(end)
	} else {
		w.ends[root] = append(w.ends[root], end)
	}
	return end
}

func (w *watchers) leaveEnd(root workitem.CaseID, end chan *store.Case) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, there := w.ends[root]
	if !there {
		return // it has ended, or the engine is closed
	}
	list = slices.DeleteFunc(list, func(c chan *store.Case) bool { return c == end })
	if w.ends[root] = list; len(list) == 0 {
		delete(w.ends, root)
	}
}

// Committed implements observer: it signals what a command changed.
func (w *watchers) Committed(tree *store.Tree, events []store.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, set := range []map[chan struct{}]bool{w.by[tree.Root], w.all} {
		for c := range set {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	if !tree.Ended() {
		w.noteIncidents(tree.Root, events)
		return
	}
	for _, c := range w.ends[tree.Root] {
		c <- tree.Case(tree.Root)
	}
	delete(w.ends, tree.Root)
}

// close ends every wait.
func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, set := range w.by {
		for c := range set {
			close(c)
		}
	}
	for c := range w.all {
		close(c)
	}
	for _, list := range w.ends {
		for _, c := range list {
			close(c)
		}
	}
	w.by, w.all, w.ends = nil, nil, nil
}

// Wait waits until a case has ended, and returns it with its output or failure; a root case also if it is removed as it ends.
func (e *Engine) Wait(ctx context.Context, id workitem.CaseID) (*store.Case, error) {
	c, _, err := e.wait(ctx, id, nil, nil)
	return c, err
}

// wait returns a case that has not ended, too: if look finds an item at the first look at it, or when wake is signaled. Both may
// be nil. It returns what look found.
func (e *Engine) wait(
	ctx context.Context, id workitem.CaseID, wake <-chan struct{}, look func(*Tx) workitem.ID,
) (c *store.Case, found workitem.ID, err error) {
	end := e.watch.joinEnd(id)
	defer e.watch.leaveEnd(id, end)
	type seen struct {
		c     *store.Case
		found workitem.ID
	}
	now, err := submitFor(ctx, e, &request{reads: true}, func(tx *Tx) (s seen, err error) {
		if s.c, err = tx.Case(tx.ctx, id); err == nil && look != nil && !s.c.State.Final() {
			s.found = look(tx)
		}
		return s, err
	})
	select {
	case ended := <-end: // perhaps removed, too, before the look at it
		if ended != nil {
			return ended, found, nil
		}
	default:
	}
	if err != nil || now.c.State.Final() || !now.found.IsZero() {
		return now.c, now.found, err
	}
	if !now.c.Parent.IsZero() {
		c, err = e.waitForChild(ctx, now.c)
		return c, found, err
	}
	select {
	case c := <-end:
		if c == nil {
			return nil, found, e.over()
		}
		return c, found, nil
	case <-wake:
		return now.c, found, nil
	case <-ctx.Done():
		return nil, found, ctx.Err()
	}
}

// waitForChild waits for the end of a child case, which nobody announces.
func (e *Engine) waitForChild(ctx context.Context, c *store.Case) (*store.Case, error) {
	id := c.ID
	return until(ctx, e, c.Root, func(tx *Tx) (*store.Case, bool, error) {
		c, err := tx.Case(tx.ctx, id)
		return c, err == nil && c.State.Final(), err
	})
}

// WaitItem waits until a work item has reached a final state, and returns it. An item that was replaced by a fresh attempt is
// final.
func (e *Engine) WaitItem(ctx context.Context, item workitem.ID) (*workitem.Item, error) {
	root, err := e.rootOf(ctx, item)
	if err != nil {
		return nil, fmt.Errorf("work item %s: %w", item, err)
	}
	return until(ctx, e, root, func(tx *Tx) (*workitem.Item, bool, error) {
		row, err := tx.s.Item(tx.ctx, item)
		if err != nil {
			return nil, false, fmt.Errorf("work item %s: %w", item, err)
		}
		return row.Item, row.State.Final(), nil
	})
}

// until waits for something of one root case to be as it should be. It is looked at by the writer, which sees all that was
// acknowledged, once and then after every change.
func until[T any](
	ctx context.Context, e *Engine, root workitem.CaseID, look func(*Tx) (it T, over bool, err error),
) (none T, err error) {
	type seen struct {
		it   T
		over bool
	}
	signal, leave := e.watch.join(root)
	defer leave()
	for {
		now, err := submitFor(ctx, e, &request{reads: true}, func(tx *Tx) (s seen, err error) {
			s.it, s.over, err = look(tx)
			return s, err
		})
		if now.over || err != nil {
			return now.it, err
		}
		select {
		case _, open := <-signal:
			if !open {
				return none, e.over()
			}
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// Watch follows the journal of a root case, or of all cases if root is zero: every entry after the given position, and
// then each new one, until the context ends or the engine closes; if the engine stops by itself, the error says why. A slow
// reader misses nothing and holds no other up. The error wraps [ErrNotFound] if there is no such root case.
func (e *Engine) Watch(ctx context.Context, root workitem.CaseID, after int64) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		signal, leave := e.watch.join(root)
		defer leave()
		if err := e.mustBeRoot(ctx, root); err != nil {
			yield(nil, err)
			return
		}
		for {
			for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{Root: root, After: after}) {
				if !yield(entry, err) || err != nil {
					return
				}
				after = entry.Seq
			}
			select {
			case _, open := <-signal:
				if !open {
					if e.lost.Load() != nil {
						yield(nil, e.over())
					}
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// mustBeRoot refuses the id of anything but a root case, whose journal would never have an entry; zero stands for all.
func (e *Engine) mustBeRoot(ctx context.Context, id workitem.CaseID) error {
	if id.IsZero() {
		return nil
	}
	for c, err := range store.AllCases(ctx, e, store.CaseFilter{ID: id}) {
		if err == nil && !c.Parent.IsZero() {
			err = fmt.Errorf("case %s is a child case; watch its root case %s: %w", id, c.Root, ErrNotFound)
		}
		return err
	}
	return fmt.Errorf("case %s: %w", id, ErrNotFound)
}

// Drain waits until nothing is under way: no command is queued, and no job is due or running. What is due later stays. The error
// wraps [ErrRunaway] if a case goes round and round while the engine's clock stands still, and names the tasks of the loop.
func (e *Engine) Drain(ctx context.Context) error {
	for {
		e.sched.turn()
		if e.lost.Load() != nil {
			return e.over()
		}
		select {
		case <-e.active.quiet():
		case <-ctx.Done():
			return fmt.Errorf("drain: %w", ctx.Err())
		}
		if due, ok := e.sched.nextDue(); !ok || due.After(e.now()) {
			select {
			case <-e.active.quiet():
				return e.sched.spun()
			default:
			}
		}
	}
}

// NextDue says when the next job is due; false if none is pending that this engine would do.
func (e *Engine) NextDue() (time.Time, bool) { return e.sched.nextDue() }
