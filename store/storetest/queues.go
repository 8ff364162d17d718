package storetest

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

func queues(w *World) {
	check := func() {
		w.T.Helper()
		want := w.Want.queues()
		most := 0
		for _, c := range want {
			most = max(most, c.N)
		}
		w.View(func(ctx context.Context, r store.Reader) {
			got, whole, err := r.Queues(ctx, 1_000_000)
			require.NoError(w.T, err)
			require.True(w.T, whole)
			require.ElementsMatch(w.T, want, got)
			if most < 2 {
				return
			}
			got, whole, err = r.Queues(ctx, 1)
			require.NoError(w.T, err)
			require.False(w.T, whole)
			require.ElementsMatch(w.T, names(want), names(got), "every queue is there, however little of it is counted")
			require.False(w.T, slices.ContainsFunc(got, func(c store.QueueCount) bool { return c.N > 1 }))
		})
	}
	check() // none at all
	w.history()
	check()
	require.Greater(w.T, len(names(w.Want.queues())), 1)
	w.Crash()
	check()
}

// names are the queues that have items, and those that have jobs, each once. The jobs of the queue without a name are left out: the first that are
// looked at may be timers.
func names(counts []store.QueueCount) (all [][2]string) {
	for _, c := range counts {
		if name := [2]string{c.Queue, c.What}; !slices.Contains(all, name) && name != [2]string{"", "job"} {
			all = append(all, name)
		}
	}
	return all
}

// queues is what a store should count.
func (m *Model) queues() (list []store.QueueCount) {
	add := func(c store.QueueCount) {
		i := slices.IndexFunc(list, func(o store.QueueCount) bool { return o.Queue == c.Queue && o.What == c.What && o.State == c.State })
		if i < 0 {
			i, list = len(list), append(list, c)
		}
		if list[i].N++; c.Oldest.Before(list[i].Oldest) {
			list[i].Oldest = c.Oldest
		}
	}
	for _, it := range m.Items {
		if it.State.Live() {
			add(store.QueueCount{Queue: it.Queue, What: "item", State: it.State.String(), Oldest: it.Created})
		}
	}
	for _, j := range m.Jobs {
		if j.State.Live() && (j.Kind == state.JobRun || j.Kind == state.JobCall) {
			add(store.QueueCount{Queue: j.Queue, What: "job", State: j.State.String(), Oldest: j.Created})
		}
	}
	return list
}
