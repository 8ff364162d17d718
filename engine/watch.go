package engine

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/notify"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A wait looks at the current state, and again after each commit that may have changed it. The look goes through the
// writer, and the caller is subscribed before it, so no commit is missed between the two:
//
//	subscribe ─ look: not yet ─ sleep ─ commit of this root case ─ look: ended ─ return
//	          └ a commit at this time wakes the caller at once, and the next look sees it

// look turns a query of the writer into a [notify.Look]. The writer answers it after all commands that were
// acknowledged before.
func look[T any](e *Engine, query func(*commit.Tx) (value T, done bool, err error)) notify.Look[T] {
	type seen struct {
		value T
		done  bool
	}
	return func(ctx context.Context) (T, bool, error) {
		now, err := commit.Query(ctx, e.writer, &commit.Request{Reads: true}, func(tx *commit.Tx) (s seen, err error) {
			s.value, s.done, err = query(tx)
			return s, err
		})
		return now.value, now.done, err
	}
}

// Wait waits until a case has ended, and returns it with its output or failure. This includes a root case that is
// removed at its end (builder.Keep of 0).
//
// A case that is cached in memory as running is not read from the store, although another engine may just have ended
// it: that engine notifies this one, which otherwise notices the change at its next Tick.
func (e *Engine) Wait(ctx context.Context, id workitem.CaseID) (*state.Case, error) {
	if err := e.writer.NotNested(ctx); err != nil {
		return nil, err
	}
	return e.notifier.Wait(ctx, id, func(ctx context.Context) (*state.Case, bool, error) {
		if e.writer.IsLive(id) { // the end is still to come and will be notified: that saves a request, and a round trip to a server
			return nil, false, ctx.Err()
		}
		return e.lookAtCase(ctx, id)
	})
}

// lookAtCase returns a case, and whether it has ended.
func (e *Engine) lookAtCase(ctx context.Context, id workitem.CaseID) (*state.Case, bool, error) {
	return look(e, func(tx *commit.Tx) (*state.Case, bool, error) {
		c, err := tx.Case(id)
		return c, err == nil && c.State.Final(), err
	})(ctx)
}

// WaitItem waits until a work item has reached a final state, and returns it. An item that was replaced by a fresh
// attempt is final.
func (e *Engine) WaitItem(ctx context.Context, item workitem.ID) (*workitem.Item, error) {
	root, err := e.rootOf(ctx, item)
	if err != nil {
		return nil, fmt.Errorf("work item %s: %w", printable.ID(item), err)
	}
	return notify.Until(ctx, e.notifier, root, look(e, func(tx *commit.Tx) (*workitem.Item, bool, error) {
		row, err := tx.Store().Item(tx.Context(), item)
		if err != nil {
			return nil, false, fmt.Errorf("work item %s: %w", item, err)
		}
		return row.Item, row.State.Final(), nil
	}))
}

// Watch follows the journal of a root case, or of all cases if root is zero: it yields every entry after the given
// position, and then each new one, until the context ends or the engine closes. If the engine stops because of an
// error, the error says why. A slow reader misses nothing and does not delay others. The error wraps ErrNotFound if
// there is no such root case.
//
// A program that stores the position of the last entry can continue there after a restart. Entries of one root case
// come in the order of their positions. If all cases are watched, an entry is held back while another engine may still
// commit one with a lower position: positions are assigned before commits, and a program that has stored 8 would never
// receive 7.
func (e *Engine) Watch(ctx context.Context, root workitem.CaseID, after int64) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		if err := e.checkRoot(ctx, root); err != nil {
			yield(nil, err)
			return
		}
		for entry, err := range e.notifier.Follow(ctx, root, after, func(after int64) iter.Seq2[*store.Entry, error] {
			return store.AllEntries(ctx, e, store.JournalFilter{Root: root, After: after, Settled: root.IsZero()})
		}) {
			if !yield(entry, err) || err != nil {
				return
			}
		}
		if ctx.Err() == nil && e.lost.Load() != nil {
			yield(nil, e.closedError())
		}
	}
}

// checkRoot returns an error for an id of anything but a root case, whose journal would never have an entry; zero is
// all cases.
func (e *Engine) checkRoot(ctx context.Context, id workitem.CaseID) error {
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

// Drain waits until the engine is idle: no command is queued, and no job is due or running. Jobs that are due later do
// not count. The error wraps ErrRunaway if a case loops while the engine's clock does not advance, and names the tasks
// of the loop. It wraps ErrClosed if the engine is closed.
func (e *Engine) Drain(ctx context.Context) error {
	// An engine that is idle at one moment may have work at the next: the end of a job opens another one that is due at
	// once. So idleness is checked twice, with a check for due work in between.
	for {
		select {
		case <-e.closing: // nothing starts any more, so due work stays due
			return e.closedError()
		default:
		}
		e.dispatch.Dispatch()
		select {
		case <-e.active.idle():
		case <-ctx.Done():
			return fmt.Errorf("drain: %w", ctx.Err())
		}
		if due, ok := e.dispatch.NextDue(); !ok || due.After(e.now()) {
			select {
			case <-e.active.idle():
				return e.dispatch.Runaway()
			default:
			}
		}
	}
}

// NextDue returns when the next job is due; false if no job is pending that this engine would run.
func (e *Engine) NextDue() (time.Time, bool) { return e.dispatch.NextDue() }
