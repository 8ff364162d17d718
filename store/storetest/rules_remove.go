package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// ended makes a root case that has ended: an article that was written and reviewed.
func (b *Batch) ended(key string) workitem.CaseID {
	b.T.Helper()
	b.Key = key
	id := b.Start(`22`)
	for range 2 {
		b.Claim(id, id)
		b.Complete(id, id, `"done"`, false)
	}
	return id
}

func remove(w *World) {
	var written, fresh, kept workitem.CaseID
	w.Update(func(b *Batch) { written, kept = b.ended("written"), b.ended("kept") })
	w.Check() // has the tables written
	w.Update(func(b *Batch) {
		fresh = b.ended("fresh")
		b.Remove(fresh)
		b.mustBeGone(fresh, "fresh")
	})
	item, job := w.Want.of(written)
	w.Update(func(b *Batch) {
		b.Remove(written)
		b.mustBeGone(written, "written", item, job)
		b.ended("fresh") // a key lives as long as its case
		b.ended("written")
	})
	w.Update(func(b *Batch) { b.mustBeGone(written, "", item, job) })
	w.Crash() // before any table was written
	w.Update(func(b *Batch) { b.mustBeGone(written, "", item, job) })
	w.Check()
	w.Crash() // after that
	w.Check()
	w.Reopen()
	w.Check()
	w.View(func(ctx context.Context, r store.Reader) {
		_, err := r.Tree(ctx, written)
		require.ErrorIs(w.T, err, store.ErrNotFound)
		_, err = r.Tree(ctx, kept)
		require.NoError(w.T, err)
		entries, err := r.Journal(ctx, store.JournalFilter{Root: written})
		require.NoError(w.T, err)
		require.Empty(w.T, entries)
		_, err = r.Answered(ctx, "kept")
		require.NoError(w.T, err)
	})
	w.Update(func(b *Batch) { b.Remove(kept) })
	w.View(func(ctx context.Context, r store.Reader) {
		_, err := r.Answered(ctx, "kept")
		require.ErrorIs(w.T, err, store.ErrNotFound)
	})
}

// mustBeGone checks that a transaction finds nothing of a root case; a key that is given is free.
func (b *Batch) mustBeGone(root workitem.CaseID, key string, ids ...[]byte) {
	b.T.Helper()
	ctx := context.Background()
	_, err := b.Tx.Load(ctx, root)
	require.ErrorIs(b.T, err, store.ErrNotFound)
	_, err = b.Tx.Root(ctx, root)
	require.ErrorIs(b.T, err, store.ErrNotFound)
	for _, id := range ids {
		_, err = b.Tx.Root(ctx, [16]byte(id))
		require.ErrorIs(b.T, err, store.ErrNotFound)
		_, err = b.Tx.Item(ctx, workitem.ID(id))
		require.ErrorIs(b.T, err, store.ErrNotFound)
	}
	if key != "" {
		_, err = b.Tx.Answered(ctx, key)
		require.ErrorIs(b.T, err, store.ErrNotFound)
	}
}

// of returns the ids of some item and some job of a case.
func (m *Model) of(id workitem.CaseID) (item, job []byte) {
	for _, it := range m.Items {
		if it.Case == id {
			item = it.ID[:]
		}
	}
	for _, j := range m.Jobs {
		if j.Case == id {
			job = j.ID[:]
		}
	}
	return item, job
}

func removeUndone(w *World) {
	var id, root workitem.CaseID
	var kids []workitem.CaseID
	w.Update(func(b *Batch) {
		id = b.ended("key")
		root, kids = b.StartIssue()
		for _, kid := range kids {
			b.Cancel(root, kid, nil)
		}
		b.Cancel(root, root, nil)
	})
	w.Update(func(b *Batch) {
		err := b.Tx.Savepoint(context.Background(), func() error {
			entries := len(b.entries)
			b.Remove(id)
			b.entries, b.removed = b.entries[:entries], nil
			return errUndo
		})
		require.ErrorIs(w.T, err, errUndo)
		_, err = b.Tx.Load(context.Background(), id)
		require.NoError(w.T, err)
		_, err = b.Tx.Answered(context.Background(), "key")
		require.NoError(w.T, err)
	})
	w.Check()
	require.ErrorIs(w.T, w.TryUpdate(func(b *Batch) error {
		b.Remove(id)
		b.Remove(root)
		return errUndo
	}), errUndo)
	w.Check()
	w.Update(func(b *Batch) { b.Remove(root) }) // its child cases go with it
	w.Check()
	require.NotContains(w.T, w.Want.Cases, kids[0])
	w.Crash()
	w.Check()
}

func removable(w *World) {
	w.history()
	w.Update(func(b *Batch) {
		for range 4 {
			b.ended("")
		}
		// A job that is left behind holds a case back until it ends. The incident of one that failed is such a job.
		for i, to := range []state.JobState{state.JobPending, state.JobFailed, state.JobDone} {
			id := b.ended("")
			now := b.Now()
			job := &state.Job{ID: b.ids.NewJobID(now), Case: id, Root: id, Kind: state.JobCall, Name: "tell",
				Input: json.RawMessage(`1`), Detached: true, State: state.JobPending, Due: now, Created: now}
			events := []state.Change{&state.JobOpened{Job: job}}
			if i > 0 {
				events = append(events, &state.JobMoved{Case: id, Job: job.ID, To: to, Due: now, At: now})
			}
			b.do(id, "tell", events...)
		}
	})
	held := make(map[workitem.CaseID]bool)
	for _, j := range w.Want.Jobs {
		held[j.Root] = held[j.Root] || j.State.Live()
	}
	var want []*state.Case
	for _, c := range byID(w.Want.Cases) {
		if !c.KeepUntil.IsZero() && !held[c.ID] {
			want = append(want, c)
		}
	}
	slices.SortStableFunc(want, func(a, b *state.Case) int {
		return cmp.Or(a.KeepUntil.Compare(b.KeepUntil), strings.Compare(a.ID.String(), b.ID.String()))
	})
	require.Greater(w.T, len(want), 4)
	until := want[len(want)-2].KeepUntil
	want = want[:len(want)-1]
	for _, desc := range []bool{false, true} {
		w.View(func(ctx context.Context, r store.Reader) {
			got := paged(w, 2, func(p store.Page) ([]*state.Case, error) {
				return r.Cases(ctx, store.CaseFilter{Page: p, Removable: until})
			}, desc, func(c *state.Case) string { return c.ID.String() })
			require.Equal(w.T, ids(want, desc, func(c *state.Case) string { return c.ID.String() }), got)
			none, err := r.Cases(ctx, store.CaseFilter{Removable: epoch.Add(-time.Hour)})
			require.NoError(w.T, err)
			require.Empty(w.T, none)
		})
	}
}
