package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func backlog(w *World) {
	check := func() {
		w.T.Helper()
		times := []time.Time{{}, w.Now()}
		for _, j := range w.Want.Jobs {
			times = append(times, j.Due)
		}
		w.View(func(ctx context.Context, r store.Reader) {
			for _, now := range times {
				got, err := r.Backlog(ctx, now)
				require.NoError(w.T, err)
				require.Equal(w.T, w.Want.backlog(now), got)
			}
		})
	}
	check() // none at all
	w.history()
	check()
	require.True(w.T, slices.ContainsFunc(w.Want.backlog(w.Now()), func(q store.QueueBacklog) bool { return q.Due > 0 && q.Queue != "" }), "something is due")
	w.Crash()
	check()
}

// backlog is what a store should count.
func (m *Model) backlog(now time.Time) []store.QueueBacklog {
	list := []store.QueueBacklog{}
	of := func(name string, created time.Time) *store.QueueBacklog {
		i, known := slices.BinarySearchFunc(list, name, func(q store.QueueBacklog, name string) int { return cmp.Compare(q.Queue, name) })
		if !known {
			list = slices.Insert(list, i, store.QueueBacklog{Queue: name, Oldest: created})
		}
		if q := &list[i]; created.Before(q.Oldest) {
			q.Oldest = created
		}
		return &list[i]
	}
	for _, it := range m.Items {
		if !it.State.Live() {
			continue
		}
		q := of(it.Queue, it.Created)
		q.Items++
		if it.State == workitem.Started {
			q.Started++
		}
	}
	for _, j := range m.Jobs {
		if !j.State.Live() {
			continue
		}
		q := of(j.Queue, j.Created)
		q.Jobs++
		if j.State == state.JobRunning {
			q.Running++
		}
		if j.State == state.JobPending && (j.Kind == state.JobRun || j.Kind == state.JobCall) && !j.Due.After(now) {
			if q.Due++; q.Since.IsZero() || j.Due.Before(q.Since) {
				q.Since = j.Due
			}
		}
	}
	return list
}
