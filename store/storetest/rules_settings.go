package storetest

import (
	"context"
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

func settings(w *World) {
	ctx := context.Background()
	set := func(b *Batch, name, value string) {
		var raw json.RawMessage
		if value != "" {
			raw = json.RawMessage(value)
		}
		require.NoError(w.T, b.Tx.Set(ctx, name, raw))
	}
	kept := func(b *Batch, name, value string) {
		raw, err := b.Tx.Setting(ctx, name)
		require.NoError(w.T, err)
		require.Equal(w.T, value, string(raw))
	}
	list := func() (all []string) {
		w.View(func(ctx context.Context, r store.Reader) {
			found, err := r.Settings(ctx)
			require.NoError(w.T, err)
			for _, s := range found {
				all = append(all, s.Name+"="+string(s.Value))
			}
		})
		return all
	}
	require.Empty(w.T, list())
	w.Update(func(b *Batch) {
		set(b, "limit/ü", `{"n":1}`)
		set(b, "limit/a", `1`)
		set(b, "limit/a", `2`)
		set(b, "gone", `3`)
		require.ErrorIs(w.T, b.Tx.Savepoint(ctx, func() error {
			set(b, "undone", `1`)
			return errUndo
		}), errUndo)
		kept(b, "limit/a", `2`)
		kept(b, "undone", "")
	})
	require.Equal(w.T, []string{"gone=3", "limit/a=2", `limit/ü={"n":1}`}, list())
	require.ErrorIs(w.T, w.TryUpdate(func(b *Batch) error {
		set(b, "limit/a", `7`)
		return errUndo
	}), errUndo)
	w.Update(func(b *Batch) {
		kept(b, "gone", `3`)
		set(b, "gone", "")
		kept(b, "gone", "")
		kept(b, "limit/a", `2`)
	})
	w.Crash()
	require.Equal(w.T, []string{"limit/a=2", `limit/ü={"n":1}`}, list())
}
