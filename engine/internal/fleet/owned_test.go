package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/fleet"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A job that the engine owns and does not know is scheduled after it was found twice, once; one that it knows, or that has changed in between, is not.
func TestAnOwnedJobThatIsUnknownIsScheduled(t *testing.T) {
	w := &world{news: []store.News{{Next: 10 * time.Second}}}
	for i := range byte(3) {
		w.overdue = append(w.overdue, &state.Job{ID: workitem.JobID{i}, State: state.JobPending})
	}
	unknown, changes := w.overdue[1], w.overdue[2]
	w.unknown = []*state.Job{unknown, changes}
	run(t, w, func(*fleet.Member) {
		w.await(time.Minute)
		require.Len(t, w.asked, 1, "not with each heartbeat")
		require.Empty(t, w.adopted, "it may be on its way to a worker")
		changed := *changes
		changed.Fence++
		w.overdue[2], w.unknown = &changed, []*state.Job{unknown, &changed}
		w.await(time.Minute)
		require.Equal(t, []*state.Job{unknown}, w.adopted)
		require.WithinRange(t, w.asked[1], time.Now().Add(-20*time.Second), time.Now().Add(-10*time.Second), "what is just due is not compared")
		w.await(time.Minute)
		require.Equal(t, []*state.Job{unknown, &changed}, w.adopted)
		w.await(time.Hour)
		require.Len(t, w.adopted, 2, "a job that stays unknown is not scheduled again and again")
		again := *unknown
		again.Due = again.Due.Add(time.Second)
		w.overdue[1], w.unknown = &again, []*state.Job{&again}
		w.await(2 * time.Minute)
		require.Equal(t, []*state.Job{unknown, &changed, &again}, w.adopted, "it was postponed since")
	})
}
