package admission_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Of several keys the one that admits first is taken, those with room take turns, and what is given back goes to the key it came from.
func TestAnyOfSeveralKeys(t *testing.T) {
	w := newWorld(t, limit.Resource("slots", 1), limit.Rate("rate", 2, time.Minute, limit.SlidingWindow))
	both := []workitem.Take{{Limit: "slots", Any: []string{"a", "b", "c"}, N: 1}, {Limit: "rate", Any: []string{"a", "b", "c"}, N: 1}}
	of := func(n int) string {
		key, _ := w.ticket[n].KeyOf("slots")
		rate, _ := w.ticket[n].KeyOf("rate")
		require.Equal(t, key, rate, "takes with the same keys are taken of the same one")
		return key
	}
	for n := range 6 {
		w.enter(n, both...)
	}
	require.Len(t, w.begun, 3)
	require.ElementsMatch(t, []string{"a", "b", "c"}, []string{of(0), of(1), of(2)})
	second := of(1)
	w.end(1, false)
	require.Equal(t, second, of(3), "the one that is free, in the order of the queue")
	w.end(3, false)
	require.Len(t, w.begun, 4, "the rate of that key is used up")
	first := of(0)
	w.end(0, false)
	require.Equal(t, first, of(4))
	w.end(4, false)
	require.Len(t, w.begun, 5)
	w.clock.Set(w.clock.Now().Add(time.Minute))
	require.Len(t, w.begun, 6)
	for _, n := range []int{2, 5} {
		w.end(n, false)
	}
	for _, u := range w.gate.Usage() {
		require.Zero(t, u.Waiting)
		if u.Limit.Name == "slots" {
			require.Zero(t, u.Used)
		}
	}
}

// A key that is paused is passed over, and taken when it continues; why names the one that is the first.
func TestAPausedKeyIsPassedOver(t *testing.T) {
	rate := limit.Rate("rate", 1, time.Minute, limit.SlidingWindow)
	w := newWorld(t, rate)
	any := workitem.Take{Limit: "rate", Any: []string{"a", "b"}, N: 1}
	paused := rate
	paused.N = 0
	w.gate.Change(rate, map[string]limit.Limit{"a": paused})
	for n := range 3 {
		w.enter(n, any)
	}
	require.Len(t, w.begun, 1)
	key, _ := w.ticket[0].KeyOf("rate")
	require.Equal(t, "b", key)
	waits := w.gate.Why(w.ticket[2].Job, "")
	require.Len(t, waits, 1)
	require.Equal(t, "b", waits[0].Key)
	require.Equal(t, []string{"a", "b"}, waits[0].Any)
	require.Equal(t, time.Minute, waits[0].Wait)
	require.Equal(t, 1, waits[0].Ahead)
	require.Equal(t, 2, w.gate.Usage()[0].Waiting, "each waits once")
	w.mu.Lock()
	w.gate.Change(rate, nil)
	w.mu.Unlock()
	w.turn()
	require.Len(t, w.begun, 2)
	key, _ = w.ticket[1].KeyOf("rate")
	require.Equal(t, "a", key)
}

// A large request of any key lets others pass to the key that it does not take.
func TestTicketAdmittedByAnotherKeyBlocksNoLine(t *testing.T) {
	w := newWorld(t, limit.Resource("slots", 3))
	of := func(key string, n int64) workitem.Take { return workitem.Take{Limit: "slots", Key: key, N: n} }
	w.enter(1, of("a", 3))
	w.enter(2, of("b", 2))
	w.enter(3, workitem.Take{Limit: "slots", Any: []string{"a", "b"}, N: 3})
	w.enter(4, of("b", 1))
	require.Len(t, w.begun, 2, "it goes first in both")
	w.end(1, false)
	require.Contains(t, w.begun, 3)
	require.Contains(t, w.begun, 4)
}

// Two keys get room at once, and the first ticket, of a pool, takes one of them. The room of the other is for the next
// ticket there, whichever of the two the pool takes.
func TestRoomOfAKeyThatAPoolDoesNotTakeIsUsed(t *testing.T) {
	taken := make(map[string]bool)
	for turns := range 2 {
		w := newWorld(t, limit.Resource("slots", 1))
		of := func(any ...string) workitem.Take { return workitem.Take{Limit: "slots", Any: any, N: 1} }
		for n := range turns {
			w.enter(n, of("c", "d"))
		}
		w.enter(2, of("a"))
		w.enter(3, of("b"))
		w.enter(4, of("a", "b"))
		w.enter(5, of("a"))
		w.enter(6, of("b"))
		w.mu.Lock()
		for n := 2; n <= 3; n++ {
			w.gate.Release(w.ticket[n], false)
			w.ended[n] = true
		}
		w.mu.Unlock()
		w.turn()
		require.Contains(t, w.begun, 4)
		require.Len(t, w.begun, turns+4, "the pool, and the first of the other key")
		taken[w.keys[4]] = true
	}
	require.Len(t, taken, 2, "the pool takes each key in one of the two runs")
}

// However the pools overlap, releases make no more ready than there is room for, and each waiting ticket is admitted in the end.
func TestRandomPools(t *testing.T) {
	for seed := range 100 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		keys := []string{"a", "b", "c", "d"}
		w := newWorld(t, limit.Resource("slots", 2), limit.Resource("other", 3))
		var running []int
		jobs := 0
		for step := 0; step < 200 || len(w.begun) < jobs; step++ {
			require.Less(t, step, 2000, "seed %d: %d of %d were admitted", seed, len(w.begun), jobs)
			if step < 200 && r.IntN(2) == 0 {
				jobs++
				from := r.IntN(3)
				any := keys[from : from+2+r.IntN(3-from)]
				takes := []workitem.Take{{Limit: "slots", Any: any, N: 1 + r.Int64N(2)}}
				if r.IntN(2) == 0 {
					takes = append(takes, workitem.Take{Limit: "other", Any: any, N: 1 + r.Int64N(3)})
				}
				w.enter(jobs, takes...)
			} else if len(running) > 0 {
				i := r.IntN(len(running))
				w.end(running[i], false)
			}
			running = running[:0]
			held := make(map[string]int64)
			for n := range w.begun {
				if w.ended[n] {
					continue
				}
				running = append(running, n)
				for _, p := range w.ticket[n].Takes {
					key, _ := w.ticket[n].KeyOf(p.Limit)
					require.Equal(t, w.keys[n], key)
					held[p.Limit+key] += p.N
				}
			}
			slices.Sort(running)
			for _, key := range keys {
				require.LessOrEqual(t, held["slots"+key], int64(2))
				require.LessOrEqual(t, held["other"+key], int64(3))
			}
		}
	}
}
