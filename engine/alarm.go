package engine

import (
	"container/heap"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// tick is how often the clock is looked at while something waits for a time to come. A timer counts the time that passes; the
// clock may be set, and goes on while a machine sleeps. Looking costs no query and, with nothing to wait for, does not happen.
const tick = time.Second

// alarms call functions when the clock shows their times, in the order of these times, and of one time in the order in which
// they were set. There is one timer for all of them.
type alarms struct {
	clock retry.Clock
	mu    sync.Mutex
	list  alarmHeap
	set   uint64 // how many were
	stop  func() bool
	rings int64 // what the clock is expected to show when the timer rings
	over  bool
}

// alarm is a function to be called at a time, in microseconds since 1970.
type alarm struct {
	at    int64
	nth   uint64
	f     func() // must not block; called without any lock
	index int    // in the heap; -1 when it is out of it
}

// at has f called when the clock shows the time or a later one. Stop prevents that, unless f is being called.
func (a *alarms) at(due int64, f func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set++
	n := &alarm{at: due, nth: a.set, f: f}
	heap.Push(&a.list, n)
	a.arm()
	return func() { a.remove(n) }
}

func (a *alarms) remove(n *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n.index >= 0 {
		heap.Remove(&a.list, n.index)
		a.arm()
	}
}

// arm sets the timer for the first alarm, or for the next look at the clock. The lock is held.
func (a *alarms) arm() {
	if a.over || len(a.list) == 0 {
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

func (a *alarms) disarm() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// ring calls what is due.
func (a *alarms) ring() {
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

// close calls nothing any more.
func (a *alarms) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.disarm()
}

// alarmHeap implements heap.Interface.
type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }

func (h alarmHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].nth < h[j].nth
}

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *alarmHeap) Push(x any) {
	n := x.(*alarm)
	n.index = len(*h)
	*h = append(*h, n)
}

// Pop implements heap.Interface.
func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	n.index, (*h)[last] = -1, nil
	*h = (*h)[:last]
	return n
}
