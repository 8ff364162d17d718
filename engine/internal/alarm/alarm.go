// Package alarm calls functions at given times of a wall clock, also if the clock is set, or if the machine sleeps.
//
// A timer of the runtime is not enough: it measures elapsed time, and may stop while the machine sleeps. If a timer of
// one hour starts at 12:00 and the machine sleeps from 12:10 to 12:50, it can fire at 13:40 instead of 13:00. So
// [Clock] compares the wall clock with the first alarm at least once a second.
package alarm

import (
	"container/heap"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// tick is the longest time between two looks at the clock while there are alarms. It bounds how late an alarm can be
// after the clock was set or the machine slept.
const tick = time.Second

// Clock calls functions when a clock reaches their times. It calls them in the order of their times, and those of the
// same time in the order of the calls of [Clock.At]. All share one timer. Make one with [New]; it is safe for
// concurrent use.
type Clock struct {
	clock   retry.Clock
	mu      sync.Mutex
	list    queue
	set     uint64 // the number of calls of At
	stop    func() bool
	rings   int64 // the time that the clock is expected to show when the timer fires
	stopped bool
}

// alarm is a function to be called at a time, in microseconds since 1970.
type alarm struct {
	at    int64
	nth   uint64
	f     func() // must not block; called without any lock
	index int    // in the heap; -1 if it is not in it
}

// New returns a Clock without alarms that reads the given clock.
func New(clock retry.Clock) *Clock { return &Clock{clock: clock} }

// At calls f once the clock shows due, in microseconds since 1970, or later. f must not block: it would delay the
// alarms after it. stop prevents the call, unless it has begun.
func (a *Clock) At(due int64, f func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set++
	n := &alarm{at: due, nth: a.set, f: f}
	heap.Push(&a.list, n)
	a.arm()
	return func() { a.remove(n) }
}

func (a *Clock) remove(n *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n.index >= 0 {
		heap.Remove(&a.list, n.index)
		a.arm()
	}
}

// arm sets the timer for the first alarm, or for the next look at the clock. The lock is held.
func (a *Clock) arm() {
	if a.stopped || len(a.list) == 0 {
		a.disarm()
		return
	}
	now := a.clock.Now().UnixMicro()
	next := min(a.list[0].at, now+tick.Microseconds())
	if a.stop != nil && a.rings <= next {
		return
	}
	a.disarm()
	a.rings = next
	a.stop = a.clock.AfterFunc(time.Duration(next-now)*time.Microsecond, a.ring)
}

func (a *Clock) disarm() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// ring calls the functions that are due, without the lock, so that they can call At.
func (a *Clock) ring() {
	var due []func()
	a.mu.Lock()
	a.disarm()
	now := a.clock.Now().UnixMicro()
	for len(a.list) > 0 && a.list[0].at <= now {
		due = append(due, heap.Pop(&a.list).(*alarm).f)
	}
	a.arm()
	a.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// Close stops the timer, and prevents calls that have not begun.
func (a *Clock) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	a.disarm()
}

// queue implements heap.Interface.
type queue []*alarm

func (h queue) Len() int { return len(h) }

func (h queue) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].nth < h[j].nth
}

func (h queue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *queue) Push(x any) {
	n := x.(*alarm)
	n.index = len(*h)
	*h = append(*h, n)
}

// Pop implements heap.Interface.
func (h *queue) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	n.index, (*h)[last] = -1, nil
	*h = (*h)[:last]
	return n
}
