package admission_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// handClock is set by hand, and keeps no timer that was stopped or has fired: memory of timers is not that of keys.
type handClock struct {
	now    time.Time
	timers map[int]func()
	n      int
}

func (c *handClock) Now() time.Time { return c.now }

func (c *handClock) AfterFunc(_ time.Duration, f func()) (stop func() bool) {
	c.n++
	id := c.n
	c.timers[id] = f
	return func() bool { delete(c.timers, id); return true }
}

// pass has all timers fire.
func (c *handClock) pass(d time.Duration) {
	c.now = c.now.Add(d)
	due := c.timers
	c.timers = make(map[int]func())
	for _, f := range due {
		f()
	}
}

// memoryOfKeys is what a key of limits costs, its name of 15 bytes included, after a job of each has begun and before it ends.
func memoryOfKeys(t *testing.T, limits ...limit.Limit) float64 {
	const atOnce = 1000
	n := testsize.Pick(10_000, 100_000, 100_000)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	clock := &handClock{now: time.Unix(1000, 0), timers: make(map[int]func())}
	var lock sync.Mutex
	gate := admission.New(admission.Options[int]{
		Lock: &lock, Clock: clock, Limits: limits, Before: func(a, b *int) bool { return *a < *b }, Ready: func(int) {}, Wake: func() {},
		Shared: func(l limit.Limit) bool { return l.InStore }, Ask: func() {},
	})
	exchange := func() {
		for orders := gate.Orders(n); len(orders) > 0; orders = gate.Orders(n) {
			for _, o := range orders {
				_, _, a, err := quota.Decide(nil, o.Order, quota.Situation{Self: 1, Live: []int64{1}, Now: clock.now.UnixNano()})
				require.NoError(t, err)
				gate.Settle(o, a, nil)
			}
		}
	}
	tickets := make([]*admission.Ticket[int], n)
	before := heap()
	for i := range tickets {
		ticket := &admission.Ticket[int]{Value: i}
		binary.BigEndian.PutUint32(ticket.Job[:], uint32(i))
		for _, l := range limits {
			ticket.Takes = append(ticket.Takes, workitem.Take{Limit: l.Name, Key: fmt.Sprintf("customer-%06d", i), N: 1})
		}
		for tries := 0; !gate.Enter(ticket); tries++ {
			require.Less(t, tries, 10)
			exchange()
		}
		require.True(t, gate.Begin(ticket))
		// The engine keeps tickets as long as their jobs run, whatever limits they have.
		tickets[i] = nil
		if i%atOnce == 0 {
			clock.pass(10 * time.Second)
			exchange()
		}
	}
	clock.pass(10 * time.Second)
	exchange()
	cost := (heap() - before) / float64(n)
	require.Equal(t, n, gate.Usage()[0].Keys)
	return cost
}

// A key of a limit costs less than 200 bytes, also if engines share it.
func TestMemoryOfKeys(t *testing.T) {
	const per = 100 * time.Hour // so that every key still counts at the end
	for _, l := range []limit.Limit{
		limit.Resource("running", 2), limit.Rate("paced", 10, per, limit.GCRA),
		limit.Resource("running", 2).Shared(), limit.Rate("paced", 10, per, limit.GCRA).Shared(), limit.Rate("calls", 10, per, limit.SlidingWindow).Shared(),
	} {
		cost := memoryOfKeys(t, l)
		t.Logf("%v: %.0f bytes a key", l, cost)
		require.Less(t, cost, 200.0, l.String())
	}
	// The log of a sliding window has 16 bytes for each start that still counts.
	require.Less(t, memoryOfKeys(t, limit.Rate("calls", 10, per, limit.SlidingWindow)), 200.0)
}
