package storetest

import (
	"bytes"
	"context"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// StartAfter opens a root case of the article workflow as a restart of another.
func (b *Batch) StartAfter(other workitem.CaseID) workitem.CaseID {
	b.T.Helper()
	id := b.ids.NewCaseID(b.Now())
	t := state.NewTree()
	t.Root = id
	b.trees[id] = t
	b.do(id, "restart "+other.String(), b.openArticle(&state.Case{ID: id, Root: id, Number: 1, Predecessor: other}, "1")...)
	return id
}

// followed checks which root cases restart a case.
func (b *Batch) followed(id workitem.CaseID, want ...workitem.CaseID) {
	b.T.Helper()
	all, err := b.Tx.Successors(context.Background(), id)
	require.NoError(b.T, err)
	require.Equal(b.T, want, all)
	require.True(b.T, slices.IsSortedFunc(all, func(a, b workitem.CaseID) int { return bytes.Compare(a[:], b[:]) }), "oldest first")
}

func successors(w *World) {
	var first, second, third, other workitem.CaseID
	w.Update(func(b *Batch) {
		first, other = b.Start(`1`), b.Start(`1`)
		b.followed(first)
	})
	w.Check() // has the tables written
	w.Update(func(b *Batch) {
		second = b.StartAfter(first)
		b.followed(first, second)
		b.followed(other)
	})
	for range 2 {
		w.Update(func(b *Batch) { b.followed(first, second) }) // before the tables are written, at first
		w.Check()
		w.Crash()
	}
	w.Update(func(b *Batch) { third = b.StartAfter(first) })
	w.Update(func(b *Batch) {
		b.Cancel(second, second, nil) // it has ended, and is there
		b.followed(first, second, third)
		b.followed(second)
	})
	require.ErrorIs(w.T, w.TryUpdate(func(b *Batch) error {
		fourth := b.StartAfter(first)
		b.Remove(second)
		b.followed(first, third, fourth)
		return errUndo
	}), errUndo)
	w.Update(func(b *Batch) { b.followed(first, second, third) })
	w.followedBy(first, workitem.CaseID{}) // it has not ended
	w.Update(func(b *Batch) { b.Cancel(first, first, nil) })
	w.followedBy(first, third)
	w.Update(func(b *Batch) { b.Cancel(third, third, nil) })
	w.Update(func(b *Batch) { b.Remove(third) })
	w.followedBy(first, second)
	w.Update(func(b *Batch) { third = b.StartAfter(first) })
	w.followedBy(first, third)
	w.Update(func(b *Batch) { b.Remove(second) })
	w.Update(func(b *Batch) { b.followed(first, third) })
	w.Crash()
	w.Update(func(b *Batch) { b.followed(first, third) })
	w.followedBy(first, third)
}

// followedBy checks which case readers see as the newest restart of a case; zero is none.
func (w *World) followedBy(id, want workitem.CaseID) {
	w.T.Helper()
	w.View(func(ctx context.Context, r store.Reader) {
		t, err := r.Tree(ctx, id)
		require.NoError(w.T, err)
		newest, err := store.SuccessorOf(ctx, r, t.Case(id))
		require.NoError(w.T, err)
		require.Equal(w.T, want, newest)
	})
}
