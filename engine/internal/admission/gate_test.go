package admission_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// world is a gate with its owner: jobs that are ready enter at once, and those that were admitted end after a while.
type world struct {
	t      *testing.T
	mu     sync.Mutex
	clock  *virtual.Clock
	gate   *admission.Gate[int]
	ready  []int
	ticket map[int]*admission.Ticket[int]
	begun  map[int]time.Time
	ended  map[int]bool
	keys   map[int]string // of the slots that a job took
	order  map[int]int    // in which jobs began

	noWorker int // a job that does not enter when it is ready; 0 for none
}

func newWorld(t *testing.T, limits ...limit.Limit) *world {
	w := &world{t: t, clock: virtual.NewClock(), ticket: make(map[int]*admission.Ticket[int]), begun: make(map[int]time.Time),
		ended: make(map[int]bool), keys: make(map[int]string), order: make(map[int]int)}
	w.gate = admission.New(admission.Options[int]{
		Lock: &w.mu, Clock: w.clock, Limits: limits, Before: func(a, b *int) bool { return *a < *b },
		Ready: func(n int) { w.ready = append(w.ready, n) }, Wake: w.turn, Free: func(n *int) bool { return *n != w.noWorker },
	})
	return w
}

func (w *world) enter(n int, takes ...workitem.Take) {
	w.mu.Lock()
	var id workitem.JobID
	id[0], id[1] = byte(n>>8), byte(n)
	w.ticket[n] = &admission.Ticket[int]{Job: id, Takes: takes, Value: n}
	w.ready = append(w.ready, n)
	w.mu.Unlock()
	w.turn()
}

func (w *world) turn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ready) > 0 {
		for len(w.ready) > 0 {
			n := w.ready[0]
			w.ready = w.ready[1:]
			w.start(n)
		}
		if w.gate.Lapse(); len(w.ready) == 0 {
			w.gate.PassOver()
		}
	}
}

// start lets a ready job enter.
func (w *world) start(n int) {
	if w.ended[n] || n != 0 && n == w.noWorker || !w.gate.Enter(w.ticket[n]) {
		return
	}
	require.NotContains(w.t, w.begun, n, "admitted twice")
	w.begun[n], w.order[n] = w.clock.Now(), len(w.order)
	w.keys[n], _ = w.ticket[n].KeyOf("slots")
	w.gate.Begin(w.ticket[n])
}

func (w *world) end(n int, failed bool) {
	w.mu.Lock()
	w.gate.Release(w.ticket[n], failed)
	w.ended[n] = true
	w.mu.Unlock()
	w.turn()
}

// Random histories: no limit is exceeded, each job is admitted once, and in the end all are, whatever they need.
func TestRandomHistoriesOfAdmission(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		slots, rate := int64(1+r.IntN(3)), int64(2+r.IntN(5))
		w := newWorld(t, limit.Resource("slots", slots), limit.Rate("rate", rate, time.Minute, limit.SlidingWindow))
		running, jobs := make(map[int]bool), 0
		check := func() {
			held := make(map[string]int64)
			for n := range w.begun {
				if !running[n] && !w.ended[n] {
					running[n] = true
				}
			}
			for n := range running {
				for _, p := range w.ticket[n].Takes {
					if p.Limit == "slots" {
						held[w.keys[n]] += p.N
					}
				}
			}
			for key, n := range held {
				require.LessOrEqual(t, n, slots, "seed %d, key %q", seed, key)
			}
		}
		for range 150 {
			switch r.IntN(4) {
			case 0, 1:
				jobs++
				var takes []workitem.Take
				if r.IntN(3) > 0 {
					takes = append(takes, workitem.Take{Limit: "rate", N: 1 + r.Int64N(rate)})
				}
				switch r.IntN(4) {
				case 0, 1:
					takes = append(takes, workitem.Take{Limit: "slots", Key: string(rune('a' + r.IntN(3))), N: 1 + r.Int64N(slots)})
				case 2:
					takes = append(takes, workitem.Take{Limit: "slots", Any: []string{"a", "b", "c"}[r.IntN(2):], N: 1 + r.Int64N(slots)})
				}
				w.enter(jobs, takes...)
			case 2:
				for n := range running {
					delete(running, n)
					w.end(n, false)
					break
				}
			case 3:
				w.clock.Set(w.clock.Now().Add(time.Duration(r.IntN(40)) * time.Second))
			}
			check()
		}
		for range 20 * jobs {
			w.clock.Set(w.clock.Now().Add(time.Minute))
			check()
			for n := range running {
				delete(running, n)
				w.end(n, false)
			}
			if len(w.begun) == jobs {
				break
			}
		}
		require.Len(t, w.begun, jobs, "seed %d: each is admitted in the end", seed)
		for _, first := range w.begun {
			var n int64
			for job, at := range w.begun {
				for _, p := range w.ticket[job].Takes {
					if p.Limit == "rate" && !at.Before(first) && at.Before(first.Add(time.Minute)) {
						n += p.N
					}
				}
			}
			require.LessOrEqual(t, n, rate, "seed %d", seed)
		}
	}
}

// Jobs that wait for a limit are admitted in the order of the queue, and a large amount is not starved by small ones.
func TestALineIsInOrder(t *testing.T) {
	w := newWorld(t, limit.Resource("s", 3))
	one := workitem.Take{Limit: "s", N: 1}
	w.enter(1, one)
	w.enter(2, one)
	w.enter(4, workitem.Take{Limit: "s", N: 3})
	w.enter(5, one)
	w.enter(3, one) // it came later, and goes before those
	require.Contains(t, w.begun, 3)
	for n := 1; n <= 3; n++ {
		require.NotContains(t, w.begun, 5)
		w.end(n, false)
	}
	require.Contains(t, w.begun, 4)
	require.NotContains(t, w.begun, 5)
	w.end(4, false)
	require.Contains(t, w.begun, 5)
}

// A limit of 0 pauses; a change while jobs wait is seen at once.
func TestALimitThatIsChanged(t *testing.T) {
	w := newWorld(t, limit.Resource("s", 1))
	for n := 1; n <= 4; n++ {
		w.enter(n, workitem.Take{Limit: "s", N: 1})
	}
	change := func(n int64) {
		w.mu.Lock()
		require.True(t, w.gate.Change(limit.Resource("s", n), nil))
		w.mu.Unlock()
		w.turn()
	}
	change(0)
	w.end(1, false)
	require.Len(t, w.begun, 1)
	change(3)
	require.Len(t, w.begun, 4)
}

// Keys that are idle are forgotten.
func TestIdleKeysAreForgotten(t *testing.T) {
	w := newWorld(t, limit.Resource("s", 1))
	for n := range 2000 {
		w.enter(n, workitem.Take{Limit: "s", Key: time.Duration(n).String(), N: 1})
		w.end(n, false)
	}
	require.Less(t, w.gate.Usage()[0].Keys, 1100)
}

// What a job took is free again, rates included, if nothing was done with it.
func TestUndoReturnsRatesToo(t *testing.T) {
	w := newWorld(t, limit.Rate("r", 1, time.Minute, limit.SlidingWindow), limit.Breaker("b", 1, time.Minute, time.Minute))
	w.enter(1, workitem.Take{Limit: "r", N: 1}, workitem.Take{Limit: "b", N: 1})
	w.enter(2, workitem.Take{Limit: "r", N: 1})
	require.Len(t, w.begun, 1)
	w.mu.Lock()
	w.gate.Undo(w.ticket[1])
	w.mu.Unlock()
	w.turn()
	require.Contains(t, w.begun, 2)
}

// What a function and its step take of one limit is admitted together: each alone would have room.
func TestTakesOfOneLimitAreAddedUp(t *testing.T) {
	w := newWorld(t, limit.Resource("s", 3), limit.Resource("pool", 1))
	one := workitem.Take{Limit: "s", N: 1}
	w.enter(1, workitem.Take{Limit: "s", N: 2})
	w.enter(2, one, one)
	require.NotContains(t, w.begun, 2)
	w.end(1, false)
	require.Contains(t, w.begun, 2)

	any := workitem.Take{Limit: "pool", Any: []string{"a"}, N: 1}
	w.ticket[3] = &admission.Ticket[int]{Job: workitem.JobID{3}, Takes: []workitem.Take{any, any}, Own: 1, Value: 3}
	require.False(t, w.gate.Try(w.ticket[3]), "the key admits one")
	any.Any = []string{"a", "b"}
	w.ticket[3] = &admission.Ticket[int]{Job: workitem.JobID{3}, Takes: []workitem.Take{any, any}, Own: 1, Value: 3}
	require.True(t, w.gate.Try(w.ticket[3]), "one of each key")
}
