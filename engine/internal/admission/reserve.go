package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// A ticket that needs several limits waits for one of them at a time. When that one has room, later tickets may have
// acquired another one, which has none any more. If several limits are always in use, this could continue without end. So a
// ticket that has begun to wait more often than it has takes gets reservations: it passes its limits in a fixed order,
// and each that has room is reserved while it waits for the next one.
//
//	takes of a and b: waits for a ── b has no room ──▶ waits for b ── a has no room ──▶ waits for a, room ──▶ waits for b
//	                                                                                                 reserved: a
//
// A reservation acquires nothing. Later tickets see less room, and earlier ones do not see it. Since the order of
// tickets is total, the earliest one waits only for what others have acquired, and so reservations cannot deadlock.
//
// A reserved limit is idle in the meantime, so the order of the limits is such that this ends soon: first those of which
// it is unknown when they have room, because the store grants them, cases hold them, they are paused or a breaker; they
// are never reserved, and nothing is reserved while a ticket waits for them. Then rates, those of long periods first.
// Then slots, which others release when they end. So slots are never reserved during the wait for a rate.

// reservation is room of a line that tickets after the owner do not get.
type reservation[T any] struct {
	line *line[T]
	n    int64
}

// isLate reports whether a ticket gets reservations: it has waited once for each of its takes, and has to wait again.
func (t *Ticket[T]) isLate() bool { return t.waits > len(t.Takes) && len(t.Takes) > 1 }

// reservable reports whether a line can reserve room.
func (l *line[T]) reservable() bool { return l.share == nil && l.def.Algorithm != limit.CircuitBreaker }

// reserve reserves the takes of a late ticket that have room.
func (g *Gate[T]) reserve(t *Ticket[T], held []holding[T]) {
	if !t.isLate() {
		return
	}
	for i := range held {
		if held[i].line != nil && !t.isHold(i) {
			g.reserveIn(t, held[i].line, t.Takes[i].N)
		}
	}
}

func (g *Gate[T]) reserveIn(t *Ticket[T], l *line[T], n int64) {
	if !l.reservable() {
		return
	}
	t.reserves = append(t.reserves, reservation[T]{l, n})
	if !slices.Contains(l.queue.late(), t) {
		g.queueOf(l).reserved = append(l.queue.late(), t)
	}
}

// unreserve ends the reservations of a ticket, and returns them. Their lines have to be advanced.
func (g *Gate[T]) unreserve(t *Ticket[T]) (ended []reservation[T]) {
	ended, t.reserves = t.reserves, nil
	for i := range ended {
		q := ended[i].line.queue
		q.reserved = slices.DeleteFunc(q.reserved, func(other *Ticket[T]) bool { return other == t })
	}
	return ended
}

// reservedBefore returns how much the line has reserved for tickets before t.
func (l *line[T]) reservedBefore(t *Ticket[T]) (n int64) {
	for _, other := range l.queue.late() {
		if other == t || !l.queue.before(&other.Value, &t.Value) {
			continue
		}
		for i := range other.reserves {
			if r := &other.reserves[i]; r.line.at() == l.at() {
				n += r.n
			}
		}
	}
	return n
}

// makeReady removes a ticket from all lines, since one of them has room. A late ticket keeps its reservations until it
// enters, and that line is reserved too.
func (g *Gate[T]) makeReady(p *place[T]) {
	t := p.t
	if t.isLate() {
		if p.hold == nil {
			g.reserveIn(t, p.line, p.n)
		}
		g.late = append(g.late, t)
	}
	g.remove(t)
	if t.ready = true; g.o.Free != nil {
		g.idle = append(g.idle, t)
	}
	g.o.Ready(t.Value)
}

// Lapse ends the reservations of tickets that were made ready and have not entered, for example because no worker is
// free for them. Call it after the jobs that are ready had the opportunity to enter. It may make others ready.
func (g *Gate[T]) Lapse() {
	late, now := g.late, g.now()
	g.late = nil
	// Each line is advanced once, after all have lapsed: many tickets have reservations in one line, and each time it is advanced, as many
	// tickets as it has room for become ready.
	var lines []*line[T]
	for _, t := range late {
		if len(t.places) > 0 {
			continue // it has entered and waits
		}
		for _, r := range g.unreserve(t) {
			if !slices.Contains(lines, r.line) {
				lines = append(lines, r.line)
			}
		}
	}
	for _, l := range lines {
		g.advance(l, now)
	}
}

// endReservations ends the reservations of tickets that wait in a line which does not admit them any more, because it
// was paused or lowered.
func (g *Gate[T]) endReservations(l *line[T], now int64) {
	for _, p := range slices.Clone(l.queue.all()) {
		if l.def.N >= p.n {
			continue
		}
		for _, r := range g.unreserve(p.t) {
			g.advance(r.line, now)
		}
	}
}

// order returns the indexes of the takes of a late ticket in the order in which they are chosen; nil for the order in
// which it has them. Takes of a group follow the first of them.
func (g *Gate[T]) order(t *Ticket[T]) []int {
	if !t.isLate() {
		return nil
	}
	order := make([]int, len(t.Takes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		rankA, perA := g.rank(t, a)
		rankB, perB := g.rank(t, b)
		return cmp.Or(rankA-rankB, cmp.Compare(perB, perA))
	})
	return order
}

// rank returns the place of a take in that order: lower ranks first, then longer periods.
func (g *Gate[T]) rank(t *Ticket[T], i int) (rank int, per time.Duration) {
	first := 0
	for !t.sameGroup(first, i) {
		first++
	}
	l := g.lineOf(firstLine(&t.Takes[first]))
	switch {
	case t.isHold(first) || !l.reservable() || l.def.N < t.Takes[first].N && len(t.Takes[first].Any) == 0:
		return 0, 0
	case l.def.Algorithm == limit.Slots:
		return 2, 0
	}
	return 1, l.def.Per
}
