package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
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

func history(w *World) {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(5, 6))
	for range 10 {
		w.Update(func(b *Batch) { b.Random(rng); b.Random(rng) })
	}
	w.Crash()
	committed := slices.Clone(w.Want.Entries)
	w.Update(func(b *Batch) {
		for range 3 { // appended, and not committed
			b.Random(rng)
		}
		for _, until := range committed {
			tree, err := b.Tx.Load(ctx, until.Root)
			require.NoError(w.T, err)
			var want []int64
			for _, e := range committed {
				if e.Root == until.Root && e.Seq <= until.Seq {
					want = append(want, e.Seq)
				}
			}
			entries, err := b.Tx.History(ctx, tree, until.Seq)
			require.NoError(w.T, err)
			var got []int64
			for _, e := range entries {
				got = append(got, e.Seq)
			}
			require.Equal(w.T, want, got, "up to entry %d", until.Seq)
			last := entries[len(entries)-1]
			require.Equal(w.T, []any{until.Command, until.By, len(until.Changes)}, []any{last.Command, last.By, len(last.Changes)})
		}
	})
	w.Check()
}

func keys(w *World) {
	ctx := context.Background()
	var id workitem.CaseID
	answered := func(tx interface {
		Answered(ctx context.Context, key string) (*store.Entry, error)
	}, key string) {
		w.T.Helper()
		e, err := tx.Answered(ctx, key)
		require.NoError(w.T, err)
		require.Equal(w.T, "start article", e.Command)
		require.Equal(w.T, id, e.Root)
		require.Equal(w.T, key, e.Key)
		require.JSONEq(w.T, `{"total": "66"}`, string(e.Answer))
		require.Len(w.T, e.Changes, 4)
	}
	found := func() { // by a reader
		w.T.Helper()
		w.View(func(ctx context.Context, r store.Reader) {
			answered(r, "order 66")
			_, err := r.Answered(ctx, "ORDER 66")
			require.ErrorIs(w.T, err, store.ErrNotFound)
		})
	}
	w.Update(func(b *Batch) {
		_, err := b.Tx.Answered(ctx, "order 66")
		require.ErrorIs(w.T, err, store.ErrNotFound)
		b.Key, b.Answer = "order 66", json.RawMessage(`{"total": "66"}`)
		id = b.Start(`1`)
		answered(b.Tx, "order 66") // also within the transaction
	})
	w.Update(func(b *Batch) { answered(b.Tx, "order 66") })
	found()
	w.Crash()
	found()
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

func payloads(w *World) {
	large := `{"text":"` + strings.Repeat("0123456789abcdef", 1<<14) + `"}` // 256 KiB: many pages, and many packets
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
	require.Error(w.T, kept.Append(ctx, &store.Entry{}, state.NewTree()))
}
