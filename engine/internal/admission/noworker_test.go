package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// slots of a limit of four.
func slots(n int64) workitem.Take { return workitem.Take{Limit: "slots", N: n} }

// freeWorker has a job enter for which a worker is free again.
func (w *world) freeWorker(n int) {
	w.mu.Lock()
	w.noWorker = 0
	w.ready = append(w.ready, n)
	w.mu.Unlock()
	w.turn()
}

// A job that has room and no worker does not keep the room from later ones that have a worker, once. When it has a worker, it is before them.
func TestAJobWithoutWorkerIsPassed(t *testing.T) {
	w := newWorld(t, limit.Resource("slots", 4))
	w.enter(1, slots(4))
	w.enter(2, slots(3))
	w.enter(3, slots(4))
	w.enter(4, slots(4))
	w.noWorker = 2
	w.end(1, false)
	require.True(t, w.isBegun(3), "it has a worker, and the slots are free")
	require.False(t, w.isBegun(4))
	w.freeWorker(2)
	require.False(t, w.isBegun(2))
	w.noWorker = 2
	w.end(3, false)
	require.False(t, w.isBegun(4), "the job has waited twice, so that the line waits for it")
	w.freeWorker(2)
	require.True(t, w.isBegun(2))
	w.end(2, false)
	require.True(t, w.isBegun(4))
}

// Only jobs that have a worker pass, and only as many as have room, in their order.
func TestJobsPassInTheirOrder(t *testing.T) {
	w := newWorld(t, limit.Resource("slots", 4))
	w.enter(1, slots(4))
	for n := 2; n < 6; n++ {
		w.enter(n, slots(2))
	}
	w.noWorker = 2
	w.end(1, false)
	require.True(t, w.isBegun(3))
	require.True(t, w.isBegun(4))
	require.False(t, w.isBegun(5))
	w.end(3, false)
	require.True(t, w.isBegun(5), "the room of a job without worker")
	w.end(4, false)
	w.freeWorker(2)
	require.True(t, w.isBegun(2))
}
