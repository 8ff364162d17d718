package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// settingChanges sets and records in one transaction, as an engine does.
func settingChanges(w *World) {
	ctx, at, n := context.Background(), time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC), 0
	set := func(b *Batch, queue string, paused bool, by, reason string) {
		n++
		name := store.QueueSetting + queue
		before, err := b.Tx.Setting(ctx, name)
		require.NoError(w.T, err)
		d := store.Decision{At: at.Add(time.Duration(n/2) * time.Hour), By: by, Reason: reason}
		var after json.RawMessage
		if paused {
			after, err = json.Marshal(store.QueueValue{Paused: true, Decision: d})
			require.NoError(w.T, err)
		}
		require.NoError(w.T, b.Tx.Set(ctx, name, after))
		require.NoError(w.T, store.NoteSetting(ctx, b.Tx, fmt.Sprintf("%06d", n),
			store.SettingChange{Decision: d, Command: "set " + queue, Setting: name, Values: store.ValuesChanged(name, before, after)}))
	}
	list := func(f store.JournalFilter) (all []string) {
		w.View(func(ctx context.Context, r store.Reader) {
			found, err := store.BesideJournal(ctx, r, f, time.Time{}, time.UnixMicro(math.MaxInt64), store.MaxBeside)
			require.NoError(w.T, err)
			for _, e := range found {
				v := e.Setting.Values[0]
				all = append(all, fmt.Sprintf("%s %s: %s -> %s, %s", e.Setting.Setting, e.By, v.From, v.To, e.Setting.Reason))
			}
		})
		return all
	}
	require.Empty(w.T, list(store.JournalFilter{}))
	w.Update(func(b *Batch) {
		set(b, "ü", true, "ann", "spam")
		require.ErrorIs(w.T, b.Tx.Savepoint(ctx, func() error {
			set(b, "ü", false, "eve", "undone")
			return errUndo
		}), errUndo)
	})
	require.ErrorIs(w.T, w.TryUpdate(func(b *Batch) error {
		set(b, "mail", true, "eve", "undone")
		return errUndo
	}), errUndo)
	w.Update(func(b *Batch) {
		set(b, "ü", false, "bob", "")
		set(b, "mail", true, "", "")
	})
	w.Crash()
	all := []string{"queue/ü ann: open -> paused, spam", "queue/ü bob: paused -> open, ", "queue/mail : open -> paused, "}
	require.Equal(w.T, all, list(store.JournalFilter{Named: true}), "oldest first, also those without an actor")
	require.Equal(w.T, all[:1], list(store.JournalFilter{By: "ann"}))
	require.Equal(w.T, all[2:], list(store.JournalFilter{Command: "set mail"}))
	require.Equal(w.T, all[1:], list(store.JournalFilter{Since: at.Add(time.Hour)}))
}
