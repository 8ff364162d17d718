package storetest

import (
	"context"
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// Poster is an Opener that lets another process leave a command for the one that owns the database.
type Poster interface {
	Post(ctx context.Context, command json.RawMessage) (store.Answer, error)
}

func requests(w *World) {
	ctx, cancel := context.WithCancel(context.Background())
	w.T.Cleanup(cancel) // what was posted waits no longer
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
	posts := make(chan result, 2)
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
