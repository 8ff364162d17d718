package source

import (
	"context"
	"iter"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Pause is the interval at which a Backend without a [Watcher] is polled.
const Pause = 500 * time.Millisecond

// maxPolls is how many streams read a store that is polled at the same time. It has four readers for all requests: without
// this limit, a thousand clients that begin with the first entry of the journal would keep pages waiting until they fail.
const maxPolls = 2

// polled is the Viewer of the streams of a store.
type polled struct {
	store.Viewer
	slots chan struct{} // has an element for each stream that reads
}

func newPolled(v store.Viewer) polled { return polled{v, make(chan struct{}, maxPolls)} }

// View waits until fewer than maxPolls streams read.
func (p polled) View(ctx context.Context, f func(store.Reader) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	return p.Viewer.View(ctx, f)
}

// Follow yields the journal entries of a root case after a position, or those of all cases if root is zero, and then
// each new one until the context ends. The clock is for polling a Backend that is no [Watcher].
func Follow(ctx context.Context, b Backend, clock retry.Clock, root workitem.CaseID, after int64) iter.Seq2[*store.Entry, error] {
	if w, ok := b.(Watcher); ok {
		return w.Watch(ctx, root, after)
	}
	v := store.Viewer(b)
	if r, ok := b.(*reading); ok {
		v = r.streams
	}
	return func(yield func(*store.Entry, error) bool) {
		for ctx.Err() == nil {
			for e, err := range store.AllEntries(ctx, v, store.JournalFilter{Root: root, After: after, Settled: root.IsZero()}) {
				if !yield(e, err) || err != nil {
					return
				}
				after = e.Seq
			}
			retry.Sleep(ctx, clock, Pause)
		}
	}
}
