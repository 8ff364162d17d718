package storetest

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

func limits(w *World) {
	ctx := context.Background()
	a, b, c := store.LimitKey{Limit: "ü"}, store.LimitKey{Limit: "mail", Key: "ada"}, store.LimitKey{Limit: "mail", Key: "bob"}
	read := func(keys ...store.LimitKey) store.LimitView {
		view, err := w.Store.ReadLimits(ctx, keys)
		require.NoError(w.T, err)
		require.Contains(w.T, view.Live, view.Self)
		require.Len(w.T, view.Rows, len(keys))
		for i, key := range keys {
			require.Equal(w.T, key, view.Rows[i].LimitKey)
		}
		return view
	}
	write := func(rows []store.LimitRow, now int64) []store.LimitKey {
		written, err := w.Store.WriteLimits(ctx, rows, now)
		require.NoError(w.T, err)
		return written
	}
	view := read(a, b, c)
	for i := range view.Rows {
		require.Zero(w.T, view.Rows[i].Version)
		view.Rows[i].State, view.Rows[i].Until = []byte(fmt.Sprint(i+1)), 1000
	}
	require.ElementsMatch(w.T, []store.LimitKey{a, c}, write([]store.LimitRow{view.Rows[0], view.Rows[2]}, 500))
	states := func(keys ...store.LimitKey) (all []string) {
		for _, row := range read(keys...).Rows {
			all = append(all, string(row.State))
		}
		return all
	}
	require.Equal(w.T, []string{"1", "", "3"}, states(a, b, c))

	w.Crash()
	view = read(c, a)
	require.Equal(w.T, "3", string(view.Rows[0].State))
	require.NotZero(w.T, view.Rows[0].Version)
	require.EqualValues(w.T, 1000, view.Rows[0].Until)
	row := view.Rows[0]
	row.State, row.Until = []byte("33"), 3000
	require.Equal(w.T, []store.LimitKey{c}, write([]store.LimitRow{row}, 600))
	if w.shared() {
		row.State = []byte("44")
		require.Empty(w.T, write([]store.LimitRow{row}, 600), "it was written since it was read")
	}
	require.Equal(w.T, []string{"1", "33"}, states(a, c))

	require.Len(w.T, write(read(b).Rows, 2000), 1) // a says no more than none does
	require.Equal(w.T, []string{"", "33"}, states(a, c))

	view = read(a, b, c)
	for i, state := range []string{`"of 1"`, `"of 1 and 2"`, `"of 2"`} {
		view.Rows[i].State, view.Rows[i].Until = []byte(state), store.Lasting
	}
	view.Rows[0].Until = 5000
	require.Len(w.T, write(view.Rows, 2000), 3)
	listed := func(f store.LimitFilter) (keys []store.LimitKey) {
		var view store.LimitView
		w.View(func(ctx context.Context, r store.Reader) {
			var err error
			view, err = r.LimitRows(ctx, f)
			require.NoError(w.T, err)
		})
		require.NotEmpty(w.T, view.Live)
		for _, row := range view.Rows {
			require.Equal(w.T, read(row.LimitKey).Rows[0], row)
			keys = append(keys, row.LimitKey)
		}
		return keys
	}
	require.Empty(w.T, listed(store.LimitFilter{}))
	require.Equal(w.T, []store.LimitKey{c, a}, listed(store.LimitFilter{Keys: []store.LimitKey{a, c, {Limit: "mail"}}}))
	require.Equal(w.T, []store.LimitKey{b}, listed(store.LimitFilter{Text: "of 1"}), "a does not last")
	require.Equal(w.T, []store.LimitKey{b, c}, listed(store.LimitFilter{Text: "2", Keys: []store.LimitKey{b}}))
}

// shared reports whether several engines can have the store open.
func (w *World) shared() bool {
	f, ok := w.Store.(store.Fleet)
	return ok && f.Shared()
}
