package notify

import (
	"context"
	"iter"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Look reads what a caller waits for, in a state that has everything committed before the call. Done ends the wait with what was
// read, and so does an error.
type Look[T any] func(ctx context.Context) (value T, done bool, err error)

// Until waits for something of one root case, and returns what look read last. It looks first at once, and then after every
// change of the case.
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

// Wait waits until a case has ended, or until look ends the wait, and returns the case. A root case is looked at once, and again
// after each incident: a job of it was given up, so its end may not come. It is returned also if it is removed as it ends. The end
// of a child case is found by looking after every change of its root case. A look that finds out no more than that the id is that of a root
// case which goes on returns no case.
func (n *Notifier) Wait(ctx context.Context, id workitem.CaseID, look Look[*state.Case]) (*state.Case, error) {
	s := n.subscribeEnd(id)
	defer n.unsubscribeEnd(id, s)
	for {
		c, done, err := look(ctx)
		select {
		case ended, open := <-s.news:
			switch {
			case ended != nil: // it may have been removed before look could see it
				return ended, nil
			case open && !done && err == nil: // an incident, which look may not have seen
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
		case ended, open := <-s.news:
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

// Follow yields the journal entries of a root case, or of all if root is zero, that come after a position: what read lists after
// it, and then, after each change, what read lists after the last entry. It ends after an error of read, with the context, and
// when the Notifier is closed.
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
