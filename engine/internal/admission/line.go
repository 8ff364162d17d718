package admission

import (
	"container/heap"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
)

// line is the state and the waiting queue of a limit for one key. A job that needs several limits waits in one line at
// a time, so that it does not block jobs that only need the other limits. Lines are ordered by the jobs' positions in
// their job queue, so it keeps its place in each of them. If later jobs acquire the limits in whose lines it does not
// wait, it gets a reservation, see reserve.go.
//
// There may be a line for each of many keys, so it is small: what it has only while tickets wait is in its queue.
type line[T any] struct {
	def     *limit.Limit
	key     string
	state   *limit.State // nil if engines share the limit
	share   *share       // of a limit that engines share; nil for others
	queue   *queue[T]    // nil if nothing waits
	held    int          // the number of tickets that have acquired it
	outside int64        // the slots that code outside of jobs has
}

// at returns the limit and the key of a line.
func (l *line[T]) at() lineKey { return lineKey{l.def.Name, l.key} }

// hasEarlier reports whether an earlier ticket waits for the limit.
// The first of the heap is the earliest. The ticket itself may be in the list, and is not before itself.
func (l *line[T]) hasEarlier(g *Gate[T], t *Ticket[T]) bool {
	first := l.queue.first()
	return first != nil && g.o.Before(&first.t.Value, &t.Value)
}

// lineOf returns the line of a key of a limit, and creates it if necessary.
func (g *Gate[T]) lineOf(at lineKey) *line[T] {
	d := g.limits[at.limit]
	l := d.lines[at.key]
	if l == nil {
		d.forgetIdle(g.now)
		l = &line[T]{def: d.of(at.key), key: at.key}
		// Whether engines share a limit is a property of its definition, and does not change while it has lines.
		if g.o.Shared != nil && g.o.Shared(*l.def) {
			l.share = new(share)
		} else {
			l.state = new(limit.State)
		}
		d.lines[at.key] = l
	}
	return l
}

// eachLineOfAll returns the lines of all limits.
func (g *Gate[T]) eachLineOfAll() iter.Seq[*line[T]] {
	return func(yield func(*line[T]) bool) {
		for _, d := range g.limits {
			for _, l := range d.lines {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// leastLines is the number of lines of a limit below which idle lines are not dropped.
const leastLines = 1024

// forgetIdle drops idle lines, whose state equals that of new ones, when the number of lines has doubled since the last
// time. So the cost is amortized, and memory is proportional to the number of recently used keys.
func (d *limited[T]) forgetIdle(clock func() int64) {
	if len(d.lines) < d.forgetAt {
		return
	}
	now := clock()
	for key, l := range d.lines {
		if l.idle(now) {
			l.disarm()
			delete(d.lines, key)
		}
	}
	d.forgetAt = max(leastLines, 2*len(d.lines))
}

// idle reports whether a line says no more than a new one.
// A line with a ticket that holds something must stay, since the ticket refers to it.
func (l *line[T]) idle(now int64) bool {
	switch {
	case l.held > 0 || l.queue.busy():
		return false
	case l.share != nil:
		return l.share.idle()
	}
	return l.def.Idle(l.state, now)
}

// place is the position of a ticket in a line. A ticket of a pool has a place in the line of each of its
// keys.
type place[T any] struct {
	t     *Ticket[T]
	line  *line[T]
	index int         // in the line
	n     int64       // how much of the limit the ticket takes
	hold  *quota.Hold // the hold that it is for; nil for the attempt
}

// placeIn finds the place of a ticket in a line; nil if it waits elsewhere.
func (t *Ticket[T]) placeIn(l *line[T]) *place[T] {
	for i := range t.places {
		if t.places[i].line == l {
			return &t.places[i]
		}
	}
	return nil
}

// park makes a ticket wait in lines until one of them has room. It advances the ticket's other lines, since one of them
// may have reserved room for it.
func (g *Gate[T]) park(lines []*line[T], t *Ticket[T], now int64) {
	g.parked[t.Job] = append(g.parked[t.Job], t)
	t.places = make([]place[T], len(lines))
	for i, l := range lines {
		p := &t.places[i]
		*p = place[T]{t: t, line: l, n: l.amount(t), hold: g.holdIn(t, l)}
		q := g.queueOf(l)
		heap.Push(q, p)
		q.wanted += p.n
		switch {
		case p.hold != nil && l.holds(p.hold): // the tickets before it may wait for this very hold to end, and orders may pause
			l.share.note().preferred = p.hold
			g.orderNow(l)
		case p.hold != nil && l.share.next == math.MaxInt64: // its case may have the hold already, from before this engine was opened
			l.share.next = 0
			g.orderRoom(l, now)
		case q.list[0] == p:
			g.startWait(l, now, g.waitOf(p, l, now))
		}
	}
	g.eachLine(t, func(other *line[T]) {
		if t.placeIn(other) == nil && other.queue.len() > 0 {
			g.advance(other, now)
		}
	})
}

// amount returns how much of the line's limit a ticket needs.
func (l *line[T]) amount(t *Ticket[T]) (n int64) {
	for i := range t.Takes {
		if p := &t.Takes[i]; l.at().serves(p) {
			n += p.N
		}
	}
	return n
}

// remove removes a ticket from all lines in which it waits.
// A ticket that leaves one line leaves all: it waits in several only to be admitted by the first that has room.
func (g *Gate[T]) remove(t *Ticket[T]) {
	for i := range t.places {
		p := &t.places[i]
		heap.Remove(p.line.queue, p.index)
		p.line.queue.wanted -= p.n
	}
	t.places = nil
	of := g.parked[t.Job]
	if i := slices.Index(of, t); i >= 0 {
		of = slices.Delete(of, i, i+1)
	}
	if g.parked[t.Job] = of; len(of) == 0 {
		delete(g.parked, t.Job)
	}
}

// advance makes as many of the first tickets of a line ready as it has room for, and sets the timer for the next one. A
// ready ticket acquires its amount later, when a worker is free for it. If the first ticket belongs to a pool and has
// room in another line, this line advances to the next.
func (g *Gate[T]) advance(l *line[T], now int64) {
	if l.queue.len() == 0 {
		l.disarm()
		return
	}
	// Ready tickets acquire later, so what they will take is counted on a copy: without it, one free slot would make
	// all of the line ready.
	free := l.copy()
	next := g.advanceOne(l, free, now)
	if len(next) == 0 {
		return
	}
	// The map is made only if a ticket of a pool was made ready, which is rare.
	left := map[*line[T]]*line[T]{l: free} // what each line has left for further ready tickets
	for ; len(next) > 0; next = next[1:] {
		l := next[0]
		if left[l] == nil {
			left[l] = l.copy()
		}
		next = append(next, g.advanceOne(l, left[l], now)...)
	}
}

// advanceOne advances one line, and returns the other lines that have lost their first ticket by that. free is
// what the line has left.
func (g *Gate[T]) advanceOne(l, free *line[T], now int64) (others []*line[T]) {
	for l.queue.len() > 0 {
		first := l.queue.first()
		if wait := g.waitOf(first, free, now); wait > 0 {
			g.startWait(l, now, wait)
			return others
		}
		// The slots of a hold were granted to its case, and are not taken from the line.
		if first.hold == nil {
			free.take(now, first.n)
		}
		for i := range first.t.places {
			if p := &first.t.places[i]; p.line != l && p.index == 0 {
				others = append(others, p.line)
			}
		}
		g.makeReady(first)
	}
	l.disarm()
	return others
}

// wait returns how long it takes until the line has room for n.
func (l *line[T]) wait(now, n int64) time.Duration {
	if l.share == nil {
		return l.def.Wait(l.state, now, n)
	}
	if n <= l.share.room(now) {
		return 0
	}
	return l.share.wait(now)
}

func (l *line[T]) take(now, n int64) grant {
	if l.share == nil {
		return grant{Grant: l.def.Take(l.state, now, n)}
	}
	return l.share.take(l.def.Algorithm == limit.Slots, n)
}

// copy returns a copy on which acquisitions can be tried.
func (l *line[T]) copy() *line[T] {
	c := &line[T]{def: l.def, key: l.key, share: l.share.copy()}
	if l.state != nil {
		state := l.state.Clone()
		c.state = &state
	}
	if l.queue != nil {
		c.queue = &queue[T]{before: l.queue.before, reserved: slices.Clone(l.queue.reserved)}
	}
	return c
}

// startWait makes the first ticket of a line wait for the given time, or for the store if engines share the limit.
// The time for which a shared limit is waited is that of its next order: see orderRoom.
func (g *Gate[T]) startWait(l *line[T], now int64, wait time.Duration) {
	if l.share != nil {
		g.orderRoom(l, now)
		return
	}
	g.arm(l, now, wait)
}

// arm sets the timer of a line. A wait that time alone does not end, as for a slot, needs no timer: a release advances
// the line.
func (g *Gate[T]) arm(l *line[T], now int64, wait time.Duration) {
	if wait == limit.Unknown {
		l.disarm()
		return
	}
	q, due := g.queueOf(l), now+int64(wait)
	// Most calls find the timer as it has to be, since only the first ticket decides.
	if q.stop != nil && q.due == due {
		return
	}
	q.disarm()
	q.due = due
	q.stop = g.o.Clock.AfterFunc(wait, func() { g.timerFired(l, due) })
}

// timerFired is called when the timer of a line fires. A timer that is stopped too late fires once more with its old
// due time, and is ignored.
func (g *Gate[T]) timerFired(l *line[T], due int64) {
	g.o.Lock.Lock()
	if l.queue != nil && l.queue.due == due && !g.stopped {
		l.queue.stop = nil
		g.advance(l, g.now())
	}
	g.o.Lock.Unlock()
	// Without the lock: the owner takes it to let the ready jobs enter.
	g.o.Wake()
}

// disarm stops the timer of a line, and drops its queue if nothing waits.
func (l *line[T]) disarm() {
	if l.queue == nil {
		return
	}
	l.queue.disarm()
	if !l.queue.busy() {
		l.queue = nil
	}
}

// NextDue returns how long it takes until a timer makes a job ready; false if there is none.
func (g *Gate[T]) NextDue() (wait time.Duration, ok bool) {
	now := g.now()
	for l := range g.eachLineOfAll() {
		if l.queue == nil || l.queue.stop == nil {
			continue
		}
		if left := time.Duration(l.queue.due - now); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}
