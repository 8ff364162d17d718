package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// freed is a business key that a case holds until it has completed, and no longer.
const freed = "freed"

// StartKeyed opens a root case of the article workflow with a unique business key.
func (b *Batch) StartKeyed(key string) workitem.CaseID {
	b.T.Helper()
	id := b.ids.NewCaseID(b.Now())
	t := state.NewTree()
	t.Root = id
	b.trees[id] = t
	b.do(id, "start article", b.openArticle(&state.Case{ID: id, Root: id, Number: 1, Key: key, Unique: true}, "1")...)
	return id
}

// holds checks which root cases hold the business key of an article.
func (b *Batch) holds(key string, want ...workitem.CaseID) {
	b.T.Helper()
	ctx := context.Background()
	for _, other := range []struct{ workflow, key string }{{"article", key + "?"}, {"issue", key}} {
		found, err := b.Tx.KeyHolders(ctx, other.workflow, other.key)
		require.NoError(b.T, err)
		require.Empty(b.T, found, "%+v", other)
	}
	found, err := b.Tx.KeyHolders(ctx, "article", key)
	require.NoError(b.T, err)
	require.ElementsMatch(b.T, want, found)
}

func keyHolders(w *World) {
	var first, second workitem.CaseID
	w.Update(func(b *Batch) {
		b.holds("K")
		first = b.StartKeyed("K")
		b.holds("K", first)
		other := b.Start(`1`) // its key is not unique
		b.holds(b.tree(other).Case(other).Key)
	})
	for range 2 {
		w.Update(func(b *Batch) { b.holds("K", first) })
		w.Check() // has the tables written
		w.Update(func(b *Batch) { b.holds("K", first) })
		w.Crash()
	}
	w.Update(func(b *Batch) {
		b.Cancel(first, first, nil)
		b.holds("K")
		second = b.StartKeyed("K")
		b.holds("K", second)
	})
	w.Update(func(b *Batch) { b.holds("K", second) }) // before the tables are written
	w.Crash()
	w.Update(func(b *Batch) {
		b.holds("K", second)
		for range 2 {
			b.Claim(second, second)
			b.Complete(second, second, `"done"`, false)
		}
		b.holds("K", second) // one that has completed holds it, too
	})
	w.Check()
	require.ErrorIs(w.T, w.TryUpdate(func(b *Batch) error {
		b.Remove(second)
		b.holds("K")
		return errUndo
	}), errUndo)
	w.Update(func(b *Batch) { b.holds("K", second) })
	w.Update(func(b *Batch) { b.Remove(second) })
	w.Update(func(b *Batch) { b.holds("K") })
	w.Crash()
	w.Update(func(b *Batch) { b.holds("K") })

	w.Update(func(b *Batch) { first = b.StartKeyed(freed) })
	w.Check()
	w.Update(func(b *Batch) {
		second = b.StartKeyed(freed) // it waits until the first has ended
		b.holds(freed, first, second)
		for range 2 {
			b.Claim(first, first)
			b.Complete(first, first, `"done"`, false)
		}
		b.holds(freed, second)
	})
	for range 2 {
		w.Update(func(b *Batch) { b.holds(freed, second) })
		w.Check()
		w.Crash()
	}
}

// started checks which root articles with a business key are found that were created after a time.
func (b *Batch) started(key string, after time.Time, want ...workitem.CaseID) {
	b.T.Helper()
	for _, other := range []struct{ workflow, key string }{{"article", key + "?"}, {"issue", key}} {
		all, err := b.Tx.KeyStarts(context.Background(), other.workflow, other.key, after)
		require.NoError(b.T, err)
		require.Empty(b.T, all, "%+v", other)
	}
	all, err := b.Tx.KeyStarts(context.Background(), "article", key, after)
	require.NoError(b.T, err)
	var got []workitem.CaseID
	for i, s := range all {
		require.True(b.T, s.At.After(after))
		require.True(b.T, i == 0 || !s.At.Before(all[i-1].At), "oldest first")
		got = append(got, s.Case)
	}
	require.ElementsMatch(b.T, want, got)
}

func keyStarts(w *World) {
	var first, second, third workitem.CaseID
	var at time.Time
	before := w.Now().Add(-time.Second)
	w.Update(func(b *Batch) {
		first = b.StartKeyed("K")
		at = b.tree(first).Case(first).Created
		b.started("K", before, first)
		b.started("K", at)
		b.started("K", at.Add(-time.Microsecond), first)
	})
	w.Update(func(b *Batch) {
		b.Cancel(first, first, nil)
		second = b.StartKeyed("K")
		b.started("K", before, first, second)
	})
	for range 2 {
		w.Update(func(b *Batch) {
			b.started("K", before, first, second)
			b.started("K", at, second)
		})
		w.Check() // has the tables written
		w.Update(func(b *Batch) { b.started("K", at, second) })
		w.Crash()
	}
	w.Update(func(b *Batch) { third = b.StartKeyed("K") })
	w.Update(func(b *Batch) {
		b.started("K", before, first, second, third)
		b.Remove(first)
		b.started("K", before, second, third)
	})
	require.ErrorIs(w.T, w.TryUpdate(func(b *Batch) error {
		b.started("K", before, second, third, b.StartKeyed("K"))
		return errUndo
	}), errUndo)
	w.Update(func(b *Batch) { b.started("K", before, second, third) })
	w.Crash()
	w.Update(func(b *Batch) { b.started("K", before, second, third) })

	var fourth workitem.CaseID
	w.Update(func(b *Batch) { fourth = b.StartKeyed("K") })
	w.Update(func(b *Batch) { b.Cancel(fourth, fourth, nil) })
	w.Update(func(b *Batch) { b.Remove(fourth) }) // before the tables are written
	w.Update(func(b *Batch) { b.started("K", before, second, third) })
}
