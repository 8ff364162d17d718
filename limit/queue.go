package limit

import (
	"context"
	"sync/atomic"
	"time"
)

// waiter is a waiting acquisition, in one group or in several groups of a pool. Whichever claims it first settles it:
// a group that admits it, or its own goroutine when the context ends.
type waiter struct {
	claimed atomic.Bool
	chances atomic.Int32  // the groups that may admit it
	ready   chan struct{} // closed when lease or err is set
	lease   *lease
	err     error
}

func newWaiter(chances int) *waiter {
	w := &waiter{ready: make(chan struct{})}
	w.chances.Store(int32(chances))
	return w
}

// drop reports that a group can never admit it. The last such group settles it.
func (w *waiter) drop(err error) {
	if w.chances.Add(-1) == 0 && w.claim() {
		w.settle(nil, err)
	}
}

func (w *waiter) claim() bool { return w.claimed.CompareAndSwap(false, true) }

func (w *waiter) settle(l *lease, err error) {
	w.lease, w.err = l, err
	close(w.ready)
}

// place is the position of a waiter in a group: in the queue of each limit that it needs. It is admitted when it is the
// first in all these queues, and all limits have room.
type place struct {
	w     *waiter
	g     group
	from  string
	want  demand
	nodes []node // by index of the group's limits
	due   int64  // when the timer fires; 0 if there is none
	stop  func() bool
}

// node is an element of a queue.
type node struct {
	p          *place
	prev, next *node
}

// queue holds the waiting acquisitions of one limit, in FIFO order.
type queue struct {
	first, last *node
	n           int
}

func (q *queue) push(n *node) {
	if n.prev = q.last; n.prev != nil {
		n.prev.next = n
	} else {
		q.first = n
	}
	q.last = n
	q.n++
}

func (q *queue) remove(n *node) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.last = n.prev
	}
	q.n--
}

// acquire acquires the demand, or waits for it. The caller holds the lock, which acquire releases.
func (g group) acquire(ctx context.Context, from string, only []bool, amounts []Amount) (Lease, error) {
	want, err := g.want(only, amounts)
	if err != nil {
		g.unlock()
		return nil, err
	}
	if l := g.try(from, &want); l != nil {
		g.unlock()
		return l, nil
	}
	w := newWaiter(1)
	p := g.enqueue(w, from, want)
	g.unlock()
	return w.wait(ctx, p)
}

// tryAcquire acquires the demand, or nothing, without waiting. The lock is held.
func (g group) tryAcquire(from string, only []bool, amounts []Amount) (Lease, error) {
	want, err := g.want(only, amounts)
	if err != nil {
		return nil, err
	}
	if l := g.try(from, &want); l != nil {
		return l, nil
	}
	return nil, nil
}

// enqueue adds a waiter to the queues of the limits that it needs.
func (g group) enqueue(w *waiter, from string, want demand) *place {
	queues := g.waiting()
	if queues == nil {
		queues = make([]queue, len(g.in.defs))
		if g.in.queues == nil {
			g.in.queues = make(map[*counts][]queue)
		}
		g.in.queues[g.counts] = queues
	}
	p := &place{w: w, g: g, from: from, want: want, nodes: make([]node, len(g.in.defs))}
	for i := range p.nodes {
		if *p.want.of(i) > 0 {
			p.nodes[i].p = p
			queues[i].push(&p.nodes[i])
		}
	}
	g.admit()
	return p
}

// leave removes a place from the queues. It may be called more than once.
func (g group) leave(p *place) {
	queues, waits := g.waiting(), false
	for i := range queues {
		if n := &p.nodes[i]; n.p != nil {
			queues[i].remove(n)
			n.p = nil
		}
		waits = waits || queues[i].n > 0
	}
	if !waits {
		delete(g.in.queues, g.counts)
	}
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// admit settles the waiters that can be admitted now, and sets timers for those that time alone will admit. It is
// called whenever something may have become available.
func (g group) admit() {
	for again := true; again; {
		again = false
		for _, q := range g.waiting() {
			if n := q.first; n != nil && g.isFirst(n.p) && g.serve(n.p) {
				again = true
			}
		}
	}
}

func (g group) isFirst(p *place) bool {
	for i, q := range g.waiting() {
		if n := &p.nodes[i]; n.p != nil && q.first != n {
			return false
		}
	}
	return true
}

// serve settles the first waiter, and reports whether it left the queues.
func (g group) serve(p *place) bool {
	now, parts := g.now(), 0
	var longest time.Duration
	for i := range g.in.defs {
		n := *p.want.of(i)
		if n == 0 {
			continue
		}
		if err := g.in.defs[i].check(n); err != nil { // the limit was lowered
			g.leave(p)
			p.w.drop(err)
			return true
		}
		longest = max(longest, g.in.defs[i].Wait(&g.states[i], now, n))
		parts++
	}
	if longest > 0 && !p.w.claimed.Load() {
		g.wake(p, now, longest)
		return false
	}
	g.leave(p)
	if p.w.claim() {
		p.w.settle(g.take(p.from, &p.want, now, parts), nil)
	}
	return true
}

// wake sets a timer to serve the first waiter again.
func (g group) wake(p *place, now int64, wait time.Duration) {
	if wait == Unknown {
		return
	}
	due := now + int64(wait)
	if p.stop != nil {
		if p.due == due {
			return
		}
		p.stop()
	}
	p.due = due
	p.stop = g.in.time.clock.AfterFunc(wait, func() {
		g.lock()
		defer g.unlock()
		if p.due == due {
			p.due = 0
		}
		g.admit()
	})
}

// wait returns when the waiter is settled or ctx ends. The waiter is then in no queue any more.
func (w *waiter) wait(ctx context.Context, places ...*place) (Lease, error) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		if w.claim() {
			g := places[0].g
			g.lock()
			reasons := g.why(&places[0].want)
			g.unlock()
			w.settle(nil, Stopped(ctx, reasons))
		} else {
			<-w.ready
		}
	}
	for _, p := range places {
		p.g.lock()
		p.g.leave(p)
		p.g.admit()
		p.g.unlock()
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.lease, nil
}
