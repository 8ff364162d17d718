package storetest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// World drives a store with small histories made of events, and keeps what the store should hold: a shadow of every
// tree and the newest value of every case, item and job, folded from the same events by [state.Tree.Apply].
type World struct {
	T      testing.TB
	Opener store.Opener
	Store  store.Store

	ids   *workitem.Generator
	clock time.Time
	trees map[workitem.CaseID]*state.Tree // what the engine would hold
	Want  *Model

	Acknowledged []*store.Entry // every entry that this World wrote, also those that were removed since
}

// NewWorld opens a store, registers the definitions, and closes the store when the test ends.
func NewWorld(t testing.TB, o store.Opener, seed uint64) *World {
	t.Helper()
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	w := &World{T: t, Opener: o, ids: workitem.NewGenerator(rand.NewChaCha8(key)), clock: epoch,
		trees: make(map[workitem.CaseID]*state.Tree), Want: newModel()}
	w.Open()
	t.Cleanup(func() { _ = w.Store.Close() })
	return w
}

// Resume has the model hold what the journal holds, for a database that another process has written.
func (w *World) Resume() {
	w.T.Helper()
	w.Want = newModel()
	w.View(func(ctx context.Context, r store.Reader) {
		entries, err := r.Journal(ctx, store.JournalFilter{Limit: 1 << 20})
		require.NoError(w.T, err)
		for _, e := range entries {
			plain := withoutState(*e)
			w.Want.take(w.T, &plain)
			if e.At.After(w.clock) {
				w.clock = e.At
			}
		}
	})
}

// Open opens the store. What the engine would hold in memory is forgotten.
func (w *World) Open() {
	w.T.Helper()
	s, err := w.Opener.Open(context.Background(), store.Options{Now: func() time.Time { return w.clock }})
	require.NoError(w.T, err)
	w.Store = s
	clear(w.trees)
	require.NoError(w.T, s.Register(context.Background(), Definitions()))
}

// Reopen closes the store in good order and opens it again.
func (w *World) Reopen() {
	w.T.Helper()
	require.NoError(w.T, w.Store.Close())
	w.Open()
}

// Crash leaves the store as a killed process would, and opens it again.
func (w *World) Crash() {
	w.T.Helper()
	k, ok := w.Store.(store.Killer)
	require.True(w.T, ok, "the store cannot be killed")
	require.NoError(w.T, k.Kill())
	w.Open()
}

// Now moves the clock on by a second.
func (w *World) Now() time.Time {
	w.clock = w.clock.Add(time.Second)
	return w.clock
}

// Update runs f, which appends commands, in one transaction of the store.
func (w *World) Update(f func(*Batch)) {
	w.T.Helper()
	require.NoError(w.T, w.TryUpdate(func(b *Batch) error {
		f(b)
		return nil
	}))
}

// TryUpdate is like Update for an f that may fail. The model takes what was acknowledged.
func (w *World) TryUpdate(f func(*Batch) error) error {
	w.T.Helper()
	var b *Batch
	err := w.Store.Update(context.Background(), func(tx store.Tx) error {
		b = &Batch{World: w, Tx: tx}
		return cmp.Or(f(b), b.failed)
	})
	if b == nil {
		return err
	}
	if err != nil {
		for _, e := range b.entries {
			delete(w.trees, e.Root)
		}
		return err
	}
	for _, e := range b.entries {
		w.Want.take(w.T, e)
	}
	w.Acknowledged = append(w.Acknowledged, b.entries...)
	return nil
}

// View runs a query.
func (w *World) View(f func(ctx context.Context, r store.Reader)) {
	w.T.Helper()
	require.NoError(w.T, w.Store.View(context.Background(), func(r store.Reader) error {
		f(context.Background(), r)
		return nil
	}))
}
