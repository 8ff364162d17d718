package storetest

import (
	"context"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func load(w *World) {
	rng := rand.New(rand.NewPCG(5, 6))
	compare := func(b *Batch, root workitem.CaseID) {
		want := b.trees[root]
		got, err := b.Tx.Load(context.Background(), root)
		require.NoError(w.T, err)
		EqualTrees(w.T, want, got)
		b.trees[root] = got // the history continues with what was loaded
	}
	for i := range 60 {
		w.Update(func(b *Batch) {
			b.Random(rng)
			b.Random(rng)
			for _, root := range b.known() {
				if b.trees[root] != nil {
					compare(b, root)
				}
			}
		})
		w.Update(func(b *Batch) {
			for root := range b.trees {
				compare(b, root)
			}
		})
		if i%10 == 9 {
			w.Check()
			w.Update(func(b *Batch) {
				for _, root := range w.Want.Roots {
					got, err := b.Tx.Load(context.Background(), root)
					require.NoError(w.T, err)
					EqualTrees(w.T, w.Want.Trees[root], got)
				}
			})
		}
	}
	w.Update(func(b *Batch) {
		_, err := b.Tx.Load(context.Background(), b.ids.NewCaseID(b.Now()))
		require.ErrorIs(w.T, err, store.ErrNotFound)
	})
}

func children(w *World) {
	var root workitem.CaseID
	var kids []workitem.CaseID
	check := func() {
		w.T.Helper()
		w.Update(func(b *Batch) {
			tree, err := b.Tx.Load(context.Background(), root)
			require.NoError(w.T, err)
			EqualTrees(w.T, w.Want.Trees[root], tree)
			_, err = b.Tx.Load(context.Background(), kids[0])
			require.ErrorIs(w.T, err, store.ErrNotFound, "a child case is no root case")
		})
		w.View(func(ctx context.Context, r store.Reader) {
			tree, err := r.Tree(ctx, root)
			require.NoError(w.T, err)
			require.Equal(w.T, kids, tree.Case(root).Children)
			EqualTrees(w.T, w.Want.Trees[root], tree)
		})
	}
	w.Update(func(b *Batch) { root, kids = b.StartIssue() })
	w.Update(func(b *Batch) { b.Claim(root, kids[1]) })
	check()
	// One child is in the tables, the other one in memory only.
	w.Update(func(b *Batch) { b.Complete(root, kids[1], `"written"`, false) })
	w.Update(func(b *Batch) {
		tree, err := b.Tx.Load(context.Background(), root)
		require.NoError(w.T, err)
		EqualTrees(w.T, w.Want.Trees[root], tree)
	})
	w.Update(func(b *Batch) {
		now := b.Now()
		third := &state.Case{ID: b.ids.NewCaseID(now), Root: root, Parent: root, ParentTask: "articles", Generation: 1,
			Number: 3}
		b.do(root, "case new", b.openArticle(third, `{}`)...)
		kids = append(kids, third.ID)
	})
	w.Update(func(b *Batch) { b.Cancel(root, kids[0], nil) })
	w.Crash()
	check()
}

func generations(w *World) {
	var id workitem.CaseID
	w.Update(func(b *Batch) { id = b.Start(`0`) })
	for i := range 12 {
		w.Update(func(b *Batch) { b.Claim(id, id) })
		w.Update(func(b *Batch) { b.Complete(id, id, `"done"`, true) })
		if i%3 == 2 {
			w.Check()
		}
	}
	w.Crash()
	w.Update(func(b *Batch) {
		tree, err := b.Tx.Load(context.Background(), id)
		require.NoError(w.T, err)
		require.LessOrEqual(w.T, tree.Case(id).Items.Len(), 2, "one item of each task")
	})
	w.Check()
	w.View(func(ctx context.Context, r store.Reader) {
		rows, err := r.Items(ctx, store.ItemFilter{Case: id})
		require.NoError(w.T, err)
		require.Len(w.T, rows, 13)
	})
}

func find(w *World) {
	var root workitem.CaseID
	check := func(root workitem.CaseID, find func([16]byte) (workitem.CaseID, error)) {
		w.T.Helper()
		for id, c := range w.Want.Cases {
			got, err := find(id)
			require.NoError(w.T, err)
			require.Equal(w.T, c.Root, got)
		}
		for id, it := range w.Want.Items {
			got, err := find(id)
			require.NoError(w.T, err)
			require.Equal(w.T, w.Want.Cases[it.Case].Root, got)
		}
		for id, j := range w.Want.Jobs {
			got, err := find(id)
			require.NoError(w.T, err)
			require.Equal(w.T, j.Root, got)
		}
		_, err := find([16]byte{1, 2, 3})
		require.ErrorIs(w.T, err, store.ErrNotFound)
	}
	inTx := func(b *Batch) {
		check(root, func(id [16]byte) (workitem.CaseID, error) { return b.Tx.Root(context.Background(), id) })
		for id, it := range w.Want.Items {
			row, err := b.Tx.Item(context.Background(), id)
			require.NoError(w.T, err)
			require.Equal(w.T, asJSON(w.T, it), asJSON(w.T, row.Item))
			require.Equal(w.T, w.Want.Cases[it.Case].Root, row.Root)
			require.Equal(w.T, "article", row.Workflow)
		}
		_, err := b.Tx.Item(context.Background(), workitem.ID{1})
		require.ErrorIs(w.T, err, store.ErrNotFound)
	}
	w.Update(func(b *Batch) {
		var kids []workitem.CaseID
		root, kids = b.StartIssue()
		for _, id := range append(kids, root) {
			got, err := b.Tx.Root(context.Background(), id)
			require.NoError(w.T, err)
			require.Equal(w.T, root, got)
		}
		_, it, _ := b.live(root, kids[1])
		row, err := b.Tx.Item(context.Background(), it.ID)
		require.NoError(w.T, err)
		require.Equal(w.T, root, row.Root)
	})
	w.Update(func(b *Batch) { b.Start(`1`) })
	w.Update(inTx)
	w.View(func(ctx context.Context, r store.Reader) {
		check(root, func(id [16]byte) (workitem.CaseID, error) { return r.Root(ctx, id) })
	})
	w.Update(inTx)
	w.Crash()
	w.Update(inTx)
}

func definitions(w *World) {
	check := func() {
		w.T.Helper()
		w.View(func(ctx context.Context, r store.Reader) {
			defs, err := r.Definitions(ctx)
			require.NoError(w.T, err)
			require.Equal(w.T, Definitions(), defs)
		})
	}
	check()
	require.NoError(w.T, w.Store.Register(context.Background(), Definitions()))
	check()
	w.Reopen()
	check()
	err := w.Store.Update(context.Background(), func(tx store.Tx) error {
		id := w.ids.NewCaseID(w.Now())
		tree := state.NewTree()
		tree.Root = id
		tree.Begin()
		opened := &state.CaseOpened{Case: &state.Case{ID: id, Root: id, Workflow: "stranger", Fingerprint: "?",
			Net: article}}
		require.NoError(w.T, tree.Apply(opened))
		return tx.Append(context.Background(), &store.Entry{Root: id, Changes: []state.Change{opened}}, tree)
	})
	require.ErrorIs(w.T, err, store.ErrNotFound)
	bad := &store.Definition{Name: "bad", Fingerprint: "bad", Net: &net.Definition{Name: "bad"}}
	require.Error(w.T, w.Store.Register(context.Background(), []*store.Definition{bad}))
	check()
}
