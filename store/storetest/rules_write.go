package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var errUndo = errors.New("undo")

func durable(w *World) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		w.Update(func(b *Batch) {
			for range 1 + rng.IntN(5) {
				b.Random(rng)
			}
		})
		switch i % 20 {
		case 7:
			w.Reopen()
		case 13:
			w.Crash()
		case 17:
			w.Check()
		}
	}
	w.Check()
	w.Crash()
	w.Check()
	w.Reopen()
	w.Check()
}

func allOrNothing(w *World) {
	var first workitem.CaseID
	w.Update(func(b *Batch) { first = b.Start(`1`) })
	for _, wait := range []bool{false, true} {
		if wait {
			w.Check() // has the tables written
		}
		err := w.TryUpdate(func(b *Batch) error {
			b.Claim(first, first)
			b.Start(`2`)
			b.Key = "undone"
			b.StartIssue()
			return errUndo
		})
		require.ErrorIs(w.T, err, errUndo)
		w.Check()
	}
	require.Panics(w.T, func() {
		_ = w.Store.Update(context.Background(), func(tx store.Tx) error {
			b := &Batch{World: w, Tx: tx}
			b.Start(`3`)
			panic("the function's own fault")
		})
	})
	clear(w.trees)
	w.Check()
	w.Update(func(b *Batch) {
		b.Claim(first, first)
		b.Complete(first, first, `"text"`, false)
	})
	w.Check()
	w.Crash()
	w.Check()

	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	err := w.Store.Update(canceled, func(store.Tx) error {
		require.Fail(w.T, "an update whose context has ended must not begin")
		return nil
	})
	require.ErrorIs(w.T, err, context.Canceled)
}

func chained(w *World) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		w.Update(func(b *Batch) { b.Random(rng) })
		w.Update(func(b *Batch) { b.Random(rng); b.Random(rng); b.Random(rng) })
	}
	w.Crash()
	w.Update(func(b *Batch) { b.Random(rng) })
	newest := make(map[workitem.CaseID]int64)
	before := int64(0)
	for _, e := range w.Want.Entries {
		require.Greater(w.T, e.Seq, before, "position")
		before = e.Seq
		require.Equal(w.T, newest[e.Root], e.Prev, "the entry before entry %d", e.Seq)
		newest[e.Root] = e.Seq
	}
	w.View(func(ctx context.Context, r store.Reader) {
		for root, seq := range newest {
			tree, err := r.Tree(ctx, root)
			require.NoError(w.T, err)
			require.Equal(w.T, seq, tree.Case(root).LastSeq)
		}
	})
}

func load(w *World) {
	rng := rand.New(rand.NewPCG(5, 6))
	compare := func(b *Batch, root workitem.CaseID) {
		want := b.trees[root]
		got, err := b.Tx.Load(context.Background(), root)
		require.NoError(w.T, err)
		EqualTrees(w.T, want, got)
		b.trees[root] = got // the history goes on with what was loaded
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
		third := &store.Case{ID: b.ids.NewCaseID(now), Root: root, Parent: root, ParentTask: "articles", Generation: 1,
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

func keys(w *World) {
	ctx := context.Background()
	var id workitem.CaseID
	answered := func(tx store.Tx, key string) *store.Entry {
		w.T.Helper()
		e, err := tx.Answered(ctx, key)
		require.NoError(w.T, err)
		require.Equal(w.T, "start article", e.Command)
		require.Equal(w.T, id, e.Root)
		require.Equal(w.T, key, e.Key)
		require.JSONEq(w.T, `{"told": "so"}`, string(e.Answer))
		require.Len(w.T, e.Events, 4)
		return e
	}
	w.Update(func(b *Batch) {
		_, err := b.Tx.Answered(ctx, "order 66")
		require.ErrorIs(w.T, err, store.ErrNotFound)
		b.Key, b.Answer = "order 66", json.RawMessage(`{"told": "so"}`)
		id = b.Start(`1`)
		answered(b.Tx, "order 66") // also within the transaction
	})
	w.Update(func(b *Batch) { answered(b.Tx, "order 66") })
	w.Crash()
	w.Update(func(b *Batch) {
		answered(b.Tx, "order 66")
		_, err := b.Tx.Answered(ctx, "ORDER 66")
		require.ErrorIs(w.T, err, store.ErrNotFound, "keys are compared byte by byte")
	})
	err := w.TryUpdate(func(b *Batch) error { // an undone command leaves its key free
		b.Key = "free"
		b.Start(`2`)
		return errUndo
	})
	require.ErrorIs(w.T, err, errUndo)
	w.Update(func(b *Batch) {
		b.Key = "free"
		b.Start(`3`)
		tree := b.tree(id)
		tree.Begin()
		err := b.Tx.Append(ctx, &store.Entry{Root: id, Command: "again", Key: "order 66"}, tree)
		require.ErrorIs(w.T, err, store.ErrConflict)
		tree.Rollback()
		tree.Begin()
		err = b.Tx.Append(ctx, &store.Entry{Root: id, Command: "again", Key: "free"}, tree)
		require.ErrorIs(w.T, err, store.ErrConflict)
		tree.Rollback()
	})
	w.Check()
}

// Poster is an Opener that lets another process leave a command for the one that owns the database.
type Poster interface {
	Post(ctx context.Context, command json.RawMessage) (store.Answer, error)
}

func requests(w *World) {
	ctx := context.Background()
	w.Update(func(b *Batch) {
		list, err := b.Tx.Requests(ctx, 0, 10)
		require.NoError(w.T, err)
		require.Empty(w.T, list)
		require.ErrorIs(w.T, b.Tx.Reply(ctx, 7, store.Answer{}), store.ErrNotFound)
	})
	p, ok := w.Opener.(Poster)
	if !ok {
		return
	}
	type result struct {
		answer store.Answer
		err    error
	}
	posts := make(chan result)
	post := func(command string) {
		a, err := p.Post(ctx, json.RawMessage(command))
		posts <- result{a, err}
	}
	go post(`{"do":"ünïcode"}`)
	first := w.await(1)[0]
	require.JSONEq(w.T, `{"do":"ünïcode"}`, string(first.Command))
	require.False(w.T, first.At.IsZero())
	go post(`2`)
	both := w.await(2)
	require.Equal(w.T, first.ID, both[0].ID, "the oldest first")
	w.Update(func(b *Batch) {
		list, err := b.Tx.Requests(ctx, first.ID, 10)
		require.NoError(w.T, err)
		require.Equal(w.T, both[1:], list, "those behind the one that is named")
	})

	err := w.TryUpdate(func(b *Batch) error {
		require.NoError(w.T, b.Tx.Reply(ctx, first.ID, store.Answer{Code: "lost"}))
		return errUndo
	})
	require.ErrorIs(w.T, err, errUndo)
	w.Update(func(b *Batch) {
		list, err := b.Tx.Requests(ctx, 0, 1)
		require.NoError(w.T, err)
		require.Len(w.T, list, 1)
		require.Equal(w.T, first.ID, list[0].ID, "an undone reply leaves the request")
		require.NoError(w.T, b.Tx.Reply(ctx, first.ID, store.Answer{Result: json.RawMessage(`{"id": 1}`)}))
		list, err = b.Tx.Requests(ctx, 0, 10)
		require.NoError(w.T, err)
		require.Len(w.T, list, 1)
		require.Equal(w.T, both[1].ID, list[0].ID, "an answered request is not handed out again")
	})
	got := <-posts
	require.NoError(w.T, got.err)
	require.Equal(w.T, store.Answer{Result: json.RawMessage(`{"id": 1}`)}, got.answer)
	w.Update(func(b *Batch) {
		require.NoError(w.T, b.Tx.Reply(ctx, both[1].ID, store.Answer{Code: "not-found", Error: "no such case"}))
	})
	got = <-posts
	require.NoError(w.T, got.err)
	require.Equal(w.T, store.Answer{Code: "not-found", Error: "no such case"}, got.answer)
	takenBack(w, p)
}

// takenBack checks that a request is gone when the one who left it no longer waits.
func takenBack(w *World, p Poster) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := p.Post(ctx, json.RawMessage(`3`))
		done <- err
	}()
	w.await(1)
	cancel()
	require.ErrorIs(w.T, <-done, context.Canceled)
	w.Update(func(b *Batch) {
		list, err := b.Tx.Requests(context.Background(), 0, 10)
		require.NoError(w.T, err)
		require.Empty(w.T, list)
	})
}

// await asks until there are so many requests, as an idle engine would.
func (w *World) await(n int) []store.Request {
	w.T.Helper()
	watcher, _ := w.Store.(store.Watcher)
	for {
		if watcher != nil {
			changed, err := watcher.Changed(context.Background())
			require.NoError(w.T, err)
			if !changed {
				continue
			}
		}
		var list []store.Request
		w.Update(func(b *Batch) {
			var err error
			list, err = b.Tx.Requests(context.Background(), 0, 10)
			require.NoError(w.T, err)
		})
		if len(list) >= n {
			return list
		}
	}
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
		tree := store.NewTree()
		tree.Root = id
		tree.Begin()
		opened := &store.CaseOpened{Case: &store.Case{ID: id, Root: id, Workflow: "stranger", Fingerprint: "?",
			Net: article}}
		require.NoError(w.T, tree.Apply(opened))
		return tx.Append(context.Background(), &store.Entry{Root: id, Events: []store.Event{opened}}, tree)
	})
	require.ErrorIs(w.T, err, store.ErrNotFound)
	bad := &store.Definition{Name: "bad", Fingerprint: "bad", Net: &net.Definition{Name: "bad"}}
	require.Error(w.T, w.Store.Register(context.Background(), []*store.Definition{bad}))
	check()
}

func payloads(w *World) {
	large := `{"text":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`
	script := `{"text":"Grüße, 世界, שלום, 🚀, \u0000 \" \\ ' ; --","list":[1.50, null, {}]}`
	for _, payload := range []string{large, script, `null`, `""`, `[ 1 ,  2 ]`} {
		w.Update(func(b *Batch) {
			id := b.Start(payload)
			b.Claim(id, id)
			b.Fail(id, id, &workitem.Failure{Code: "dépassé", Message: "‹世界›\n\x00 \"'",
				Details: json.RawMessage(payload)})
			b.Claim(id, id)
			b.Complete(id, id, payload, false)
		})
	}
	for _, years := range []int{-100, -56, 100, 5000} {
		w.clock = epoch.AddDate(years, 0, 0)
		w.Update(func(b *Batch) { b.StartIssue() })
	}
	w.Check()
	w.Crash()
	w.Check()
}

func readOnly(w *World) {
	w.Update(func(b *Batch) { b.Start(`1`); b.StartIssue() })
	require.NoError(w.T, w.Store.Close())
	s, err := w.Opener.Open(context.Background(), store.Options{ReadOnly: true})
	require.NoError(w.T, err)
	w.Store = s
	w.Check()
	called := false
	err = s.Update(context.Background(), func(store.Tx) error { called = true; return nil })
	require.ErrorIs(w.T, err, store.ErrReadOnly)
	require.False(w.T, called)
	require.ErrorIs(w.T, s.Register(context.Background(), Definitions()), store.ErrReadOnly)
	require.NoError(w.T, s.Idle(context.Background()))
	w.Reopen()
	w.Update(func(b *Batch) { b.Start(`2`) })
	w.Check()
}

func closed(w *World) {
	w.Update(func(b *Batch) { b.Start(`1`) })
	require.NoError(w.T, w.Store.Idle(context.Background()))
	require.NoError(w.T, w.Store.Close())
	require.NoError(w.T, w.Store.Close())
	ctx := context.Background()
	require.Error(w.T, w.Store.Update(ctx, func(store.Tx) error { return nil }))
	require.Error(w.T, w.Store.View(ctx, func(store.Reader) error { return nil }))
	require.Error(w.T, w.Store.Register(ctx, nil))
	require.Error(w.T, w.Store.Idle(ctx))
	w.Open()
	w.Check()

	var kept store.Tx
	w.Update(func(b *Batch) { kept = b.Tx })
	_, err := kept.Load(ctx, w.Want.Roots[0])
	require.Error(w.T, err, "a transaction is over when its function has returned")
	require.Error(w.T, kept.Append(ctx, &store.Entry{}, store.NewTree()))
}
