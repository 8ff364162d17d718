// Package alarm calls functions at times of a clock that may be set, or that stands while a machine sleeps.
package alarm

import (
	"container/heap"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// tick is how often the clock is looked at while something waits for a time to come. A timer counts the time that passes; the
// clock may be set, and goes on while a machine sleeps. Looking costs no query and, with nothing to wait for, does not happen.
const tick = time.Second

// Clock calls functions when a clock shows their times, in the order of these times, and of one time in the order in which
// they were set. There is one timer for all of them. Make one with [New]; it is safe for concurrent use.
type Clock struct {
	clock   retry.Clock
	mu      sync.Mutex
	list    queue
	set     uint64 // how many were
	stop    func() bool
	rings   int64 // what the clock is expected to show when the timer rings
	stopped bool
}

// alarm is a function to be called at a time, in microseconds since 1970.
type alarm struct {
	at    int64
	nth   uint64
	f     func() // must not block; called without any lock
	index int    // in the heap; -1 when it is out of it
}

// New makes one for a clock.
func New(clock retry.Clock) *Clock { return &Clock{clock: clock} }

// At has f called when the clock shows the time, in microseconds since 1970, or a later one; f must not block. Stop
// prevents that, unless f is being called.
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

// ring calls what is due.
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

// Close has nothing called any more.
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
