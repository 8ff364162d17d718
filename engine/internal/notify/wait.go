package notify

import (
	"context"
	"iter"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Look reads the state that a caller waits for; it must see everything committed before the call. done or an error ends
// the wait.
type Look[T any] func(ctx context.Context) (value T, done bool, err error)

// Until calls look, and again after every change of the root case, until look ends the wait. It returns the result of
// the last call.
func Until[T any](ctx context.Context, n *Notifier, root workitem.CaseID, look Look[T]) (none T, err error) {
	changed, unsubscribe := n.subscribe(root)
	defer unsubscribe()
	for {
		value, done, err := look(ctx)
		if done || err != nil {
			return value, err
		}
		select {
		case _, open := <-changed:
			if !open {
				return none, n.reason()
			}
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// Wait waits until a case has ended, or until look ends the wait, and returns the case.
//
// For a root case, look is called once, and again after each incident: the attempts of a job are used up, so the case
// may never end by itself. The end itself is sent with the case, so it is returned even if the same commit removes it.
// For a child case, look is called after every change of its root case. look may return no case if it knows only that
// the id is that of a root case which has not ended.
func (n *Notifier) Wait(ctx context.Context, id workitem.CaseID, look Look[*state.Case]) (*state.Case, error) {
	s := n.subscribeEnd(id)
	defer n.unsubscribeEnd(id, s)
	for {
		c, done, err := look(ctx)
		select {
		case ended, open := <-s.ended:
			switch {
			case ended != nil: // it may have been removed before look could see it
				return ended, nil
			case open && !done && err == nil: // an incident that may be newer than what look has read
				continue
			}
		default:
		}
		if done || err != nil {
			return c, err
		}
		if c != nil && !c.Parent.IsZero() {
			return Until(ctx, n, c.Root, look)
		}
		select {
		case ended, open := <-s.ended:
			switch {
			case !open:
				return nil, n.reason()
			case ended != nil:
				return ended, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Follow yields the journal entries of a root case after a position, or those of all cases if root is zero: first the
// existing ones, then new ones after each change. It ends after an error of read, with the context, and when the
// Notifier is closed.
func (n *Notifier) Follow(
	ctx context.Context, root workitem.CaseID, after int64, read func(after int64) iter.Seq2[*store.Entry, error],
) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		changed, unsubscribe := n.subscribe(root)
		defer unsubscribe()
		for after := after; ; {
			for entry, err := range read(after) {
				if !yield(entry, err) || err != nil {
					return
				}
				after = entry.Seq
			}
			select {
			case _, open := <-changed:
				if !open {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
