package admission_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	takeA = workitem.Take{Limit: "a", N: 1}
	takeB = workitem.Take{Limit: "b", N: 1}
)

// Of two limits that are always in use, one has room when the other has none. A job that needs both begins after as many
// ends as it has limits, and one more of each.
func TestAJobOfTwoLimitsIsNotStarved(t *testing.T) {
	w := newWorld(t, limit.Resource("a", 1), limit.Resource("b", 1))
	w.enter(1, takeA)
	w.enter(2, takeB)
	w.enter(3, takeA, takeB)
	for n := 4; n < 40; n += 2 {
		w.enter(n, takeA)
		w.enter(n+1, takeB)
	}
	for ends := 0; !w.isBegun(3); ends++ {
		require.Less(t, ends, 5, "running: %v", w.running())
		w.end(w.running()[0], false)
	}
}

// While a job has a reservation, later jobs wait for it, and their waits say so.
func TestAReservationIsAJobThatGoesFirst(t *testing.T) {
	w := newWorld(t, limit.Resource("a", 1), limit.Resource("b", 1))
	w.late()
	w.enter(10, takeA)
	require.False(t, w.isBegun(10), "it is reserved for 3")
	require.False(t, w.gate.Try(ticket(11, takeA)), "nor does a step get it")
	waits := w.gate.Why(w.ticket[10].Job, "")
	require.Len(t, waits, 1)
	require.Zero(t, waits[0].Wait)
	require.Equal(t, 1, waits[0].Ahead)
	waits = w.gate.Why(w.ticket[3].Job, "")
	require.Len(t, waits, 1)
	require.Equal(t, "b", waits[0].Limit.Name)
	w.enter(0, takeA)
	require.True(t, w.isBegun(0), "an earlier job does not see it")
	w.end(0, false)
	require.False(t, w.isBegun(10))

	w.mu.Lock()
	w.gate.Leave(w.ticket[3].Job)
	w.mu.Unlock()
	w.turn()
	require.True(t, w.isBegun(10), "the end of the wait ends the reservation")
}

// Nothing is reserved for a job that waits for a limit which is paused.
func TestNothingIsReservedDuringAPause(t *testing.T) {
	w := newWorld(t, limit.Resource("a", 1), limit.Resource("b", 1))
	w.late()
	w.enter(10, takeA)
	require.False(t, w.isBegun(10))
	w.mu.Lock()
	w.gate.Change(limit.Resource("b", 0), nil)
	w.mu.Unlock()
	w.turn()
	require.True(t, w.isBegun(10))
}

// Slots are not reserved while a job waits for a rate; the rate is reserved while it waits for slots.
func TestSlotsAreNotReservedForARate(t *testing.T) {
	w := newWorld(t, limit.Resource("a", 1), limit.Rate("day", 1, 24*time.Hour, limit.SlidingWindow))
	day := workitem.Take{Limit: "day", N: 1}
	w.enter(1, takeA)
	w.enter(2, day)
	w.enter(3, takeA, day)
	next := 4
	for range 4 {
		for n := range 6 { // a later job of each limit always waits, so a is in use at all times
			w.enter(next, []workitem.Take{takeA, day}[n%2])
			next++
		}
		for range 2 {
			w.end(w.running()[0], false)
			require.True(t, w.isBegun(3) || len(w.holders("a")) == 1, "a is idle")
		}
		w.clock.Set(w.clock.Now().Add(24 * time.Hour))
		w.turn()
		w.end(w.holders("a")[0], false)
	}
	require.True(t, w.isBegun(3))
}

// A ready job that gets no worker loses its reservations, so that it does not block others.
func TestAReservationLapses(t *testing.T) {
	w := newWorld(t, limit.Resource("a", 1), limit.Resource("b", 1))
	w.late()
	w.enter(10, takeA)
	w.noWorker = 3
	w.end(w.holders("b")[0], false)
	require.True(t, w.isBegun(10), "3 is ready, and has no worker")
}

// Random histories: jobs of random limits come all the time, each time the job that has run longest ends, and each job
// begins after a number of ends that depends only on the jobs before it and on the slots.
func TestNoJobIsStarved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		names := []string{"a", "b", "c"}
		var limits []limit.Limit
		slots := int64(0)
		for _, name := range names {
			limits = append(limits, limit.Resource(name, rapid.Int64Range(1, 3).Draw(r, name)))
			slots += limits[len(limits)-1].N
		}
		w := newWorld(t, limits...)
		ends, since, before := 0, make(map[int]int), make(map[int]int)
		for n := range 60 {
			var takes []workitem.Take
			for i, l := range limits {
				if rapid.IntRange(0, 2).Draw(r, "takes") == 0 || i == len(limits)-1 && takes == nil {
					takes = append(takes, workitem.Take{Limit: l.Name, N: rapid.Int64Range(1, l.N).Draw(r, "n")})
				}
			}
			since[n], before[n] = ends, len(w.ticket)-len(w.begun)
			w.enter(n, takes...)
			for _, l := range limits {
				require.LessOrEqual(r, w.usedOf(l.Name), l.N)
			}
			for range rapid.IntRange(0, 2).Draw(r, "ends") {
				if running := w.running(); len(running) > 0 && len(w.ticket)-len(w.begun) > 4 {
					w.end(running[0], false)
					ends++
				}
			}
			for m := range w.ticket {
				if !w.isBegun(m) {
					most := (before[m] + 1) * int(slots) * (len(limits) + 2)
					require.LessOrEqual(r, ends-since[m], most, "job %d of %v", m, w.ticket[m].Takes)
				}
			}
		}
		for len(w.running()) > 0 {
			w.end(w.running()[0], false)
		}
		require.Len(r, w.begun, len(w.ticket), "all begin in the end")
	})
}

// late makes job 3, which needs a and b, wait for b with a reservation of a, which is free.
func (w *world) late() {
	w.enter(1, takeA)
	w.enter(2, takeB)
	w.enter(3, takeA, takeB)
	w.enter(4, takeA)
	w.enter(5, takeB)
	w.end(1, false) // 3 finds no room in b, and 4 begins
	w.end(2, false) // 3 finds no room in a, and 5 begins
	w.end(4, false) // 3 is late
	require.False(w.t, w.isBegun(3))
}

func (w *world) isBegun(n int) bool { return !w.begun[n].IsZero() }

// running returns the jobs that have begun and not ended, in the order in which they began.
func (w *world) running() (list []int) {
	for n := range w.begun {
		if !w.ended[n] {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return w.order[a] - w.order[b] })
	return list
}

// holders returns the running jobs that take of a limit.
func (w *world) holders(name string) (list []int) {
	for _, n := range w.running() {
		if slices.ContainsFunc(w.ticket[n].Takes, func(t workitem.Take) bool { return t.Limit == name }) {
			list = append(list, n)
		}
	}
	return list
}

func (w *world) usedOf(name string) (used int64) {
	for _, n := range w.holders(name) {
		for _, t := range w.ticket[n].Takes {
			if t.Limit == name {
				used += t.N
			}
		}
	}
	return used
}
