package admission

import (
	"container/heap"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// line is one limit of one key: its state, and who waits for it. A job that needs several limits waits in the line of one of them,
// so that it does not hold up those that want the others. It keeps its place, since places are the order of the queue.
type line[T any] struct {
	def    *limit.Limit
	at     lineKey
	state  limit.State
	share  *share       // instead of the state, of a limit that engines share
	wanted int64        // how much all who wait need
	held   int          // tickets that have taken of it
	list   []*Ticket[T] // a heap by Options.Before
	before func(a, b *T) bool
	due    int64 // when the timer rings
	stop   func() bool
}

// Len implements heap.Interface.
func (l *line[T]) Len() int { return len(l.list) }

// Less implements heap.Interface.
func (l *line[T]) Less(i, j int) bool { return l.before(&l.list[i].Value, &l.list[j].Value) }

// Swap implements heap.Interface.
func (l *line[T]) Swap(i, j int) {
	l.list[i], l.list[j] = l.list[j], l.list[i]
	l.list[i].index, l.list[j].index = i, j
}

// Push implements heap.Interface.
func (l *line[T]) Push(x any) {
	t := x.(*Ticket[T])
	t.index = len(l.list)
	l.list = append(l.list, t)
}

// Pop implements heap.Interface.
func (l *line[T]) Pop() any {
	last := len(l.list) - 1
	t := l.list[last]
	l.list[last] = nil
	l.list = l.list[:last]
	return t
}

// ahead reports whether a ticket before this one waits for the limit.
func (l *line[T]) ahead(g *Gate[T], t *Ticket[T]) bool {
	return len(l.list) > 0 && g.o.Before(&l.list[0].Value, &t.Value)
}

// lineOf finds or makes the line of a part.
func (g *Gate[T]) lineOf(p *Part) *line[T] {
	at := lineKey{p.Limit, p.Key}
	l := g.lines[at]
	if l == nil {
		g.forgetIdle()
		l = &line[T]{def: g.definition(at), at: at, before: g.o.Before}
		if g.o.Shared != nil && g.o.Shared(*l.def) {
			l.share = new(share)
		}
		g.lines[at] = l
	}
	return l
}

// leastLines is how many lines are kept in any case.
const leastLines = 1024

// forgetIdle drops the lines that say no more than new ones, when there are twice as many as were left the last time. Thousands of
// keys that come and go so cost what they did lately.
func (g *Gate[T]) forgetIdle() {
	if len(g.lines) < g.keep {
		return
	}
	now := g.now()
	for at, l := range g.lines {
		if l.held == 0 && len(l.list) == 0 && l.share.idle() && l.def.Idle(&l.state, now) {
			l.disarm()
			delete(g.lines, at)
		}
	}
	g.keep = max(leastLines, 2*len(g.lines))
}

// park has a ticket wait in a line. The other lines of it may go on: one of them may have let it pass for nothing.
func (g *Gate[T]) park(l *line[T], t *Ticket[T], now int64) {
	t.line = l
	g.parked[t.Job] = append(g.parked[t.Job], t)
	heap.Push(l, t)
	l.wanted += l.amount(t)
	if l.list[0] == t {
		g.waits(l, now, l.wait(now, l.amount(t)))
	}
	for i := range t.Parts {
		if other := g.lineOf(&t.Parts[i]); other != l && len(other.list) > 0 {
			g.advance(other, now)
		}
	}
}

// amount is how much of the line's limit a ticket takes.
func (l *line[T]) amount(t *Ticket[T]) (n int64) {
	for _, p := range t.Parts {
		if p.Limit == l.at.limit && p.Key == l.at.key {
			n += p.N
		}
	}
	return n
}

func (g *Gate[T]) remove(t *Ticket[T]) {
	heap.Remove(t.line, t.index)
	t.line.wanted -= t.line.amount(t)
	of := g.parked[t.Job]
	if i := slices.Index(of, t); i >= 0 {
		of = slices.Delete(of, i, i+1)
	}
	if g.parked[t.Job] = of; len(of) == 0 {
		delete(g.parked, t.Job)
	}
	t.line = nil
}

// advance makes the first of a line ready, as many as it has room for, and sets the timer for the next. They take what they need
// when they enter, which is when a worker is free for them.
func (g *Gate[T]) advance(l *line[T], now int64) {
	if len(l.list) == 0 {
		l.disarm()
		return
	}
	free := l.copy()
	for len(l.list) > 0 {
		first := l.list[0]
		n := l.amount(first)
		if wait := free.wait(now, n); wait > 0 {
			g.waits(l, now, wait)
			return
		}
		free.take(now, n)
		g.remove(first)
		g.o.Ready(first.Value)
	}
	l.disarm()
}

// wait is how long it takes until the line has room for n.
func (l *line[T]) wait(now, n int64) time.Duration {
	if l.share == nil {
		return l.def.Wait(&l.state, now, n)
	}
	if n <= l.share.room(now) {
		return 0
	}
	return l.share.wait(now)
}

func (l *line[T]) take(now, n int64) grant {
	if l.share == nil {
		return grant{Grant: l.def.Take(&l.state, now, n)}
	}
	return l.share.take(l.def.Algorithm == limit.Slots, n)
}

// copy is a line to try on what has room.
func (l *line[T]) copy() *line[T] {
	c := &line[T]{def: l.def, state: l.state.Clone()}
	if l.share != nil {
		share := *l.share
		c.share = &share
	}
	return c
}

// waits has the first of a line wait for the time given, or for the store.
func (g *Gate[T]) waits(l *line[T], now int64, wait time.Duration) {
	if l.share != nil {
		g.short(l, now)
		return
	}
	g.arm(l, now, wait)
}

// arm sets the timer of a line.
func (g *Gate[T]) arm(l *line[T], now int64, wait time.Duration) {
	if wait == limit.Unknown {
		l.disarm()
		return
	}
	due := now + int64(wait)
	if l.stop != nil && l.due == due {
		return
	}
	l.disarm()
	l.due = due
	l.stop = g.o.Clock.AfterFunc(wait, func() { g.rung(l, due) })
}

// rung is called when the timer of a line has rung.
func (g *Gate[T]) rung(l *line[T], due int64) {
	g.o.Lock.Lock()
	if l.due == due && !g.over {
		l.stop = nil
		g.advance(l, g.now())
	}
	g.o.Lock.Unlock()
	g.o.Wake()
}

func (l *line[T]) disarm() {
	if l.stop != nil {
		l.stop()
		l.stop, l.due = nil, 0
	}
}

// NextDue is how long it takes until time makes a job ready; false if it makes none.
func (g *Gate[T]) NextDue() (wait time.Duration, ok bool) {
	now := g.now()
	for _, l := range g.lines {
		if l.stop == nil {
			continue
		}
		if left := time.Duration(l.due - now); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}
