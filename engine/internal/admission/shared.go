package admission

import (
	"math"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
)

// The store grants a limit that engines share: it gives an engine a portion of a rate, to be used within a time, or a
// number of slots. The line admits jobs from that without asking the store for each. When it runs short, or has
// something to return, it sends an order; orders of many lines go in one transaction:
//
//	short, or something to return ──▶ Options.Ask ──▶ Orders ──▶ the store ──▶ Settle ──▶ the line advances
//
// A line has at most one outstanding order. Until it is settled, jobs wait in the line.

// share is what this engine has of a limit. Times are those of Gate.now. There may be one for each of many keys, so it is small: what only
// few have, and not for long, is in its portion and its notes.
type share struct {
	portion   *portion // what jobs may take; nil if there is nothing
	used      int64    // the slots that jobs have
	nextSize  int64    // the least size of the next portion of a rate
	orderedAt int64    // when the outstanding order was made; 0 if there is none
	next      int64    // no order before then; math.MaxInt64: not before something is returned
	taken     int64    // the amount that all engines and cases have of the limit, by the last answer
	dirty     bool     // slots were returned that the store still counts
	notes     *notes   // nil if there is nothing to note
}

const (
	// slotsHeld is how long unused slots are kept. A job that follows soon needs no order; another engine waits at most
	// that long for them.
	slotsHeld = 250 * time.Millisecond
	// slotsAgain is the interval at which slots are ordered again that other engines have.
	slotsAgain = 100 * time.Millisecond
	// parts bounds a portion to 1/20 of the rate, unless a job needs more, so that one engine cannot take all of it.
	parts = 20
)

// Order is a request of one line to the store.
type Order[T any] struct {
	Limit, Key string
	Order      quota.Order
	line       *line[T]
	joins      int // Gate.joins when it was made
}

// idle reports whether a share has the state of a new one, so that its line can be dropped.
func (s *share) idle() bool {
	n := s.known()
	return s.left() == 0 && s.used == 0 && n.back == nil && len(n.corrections) == 0 && !s.dirty && len(n.ended) == 0 &&
		s.orderedAt == 0
}

// room returns the amount that jobs may take now.
// After half of its time nothing more is taken of a portion: a job that is admitted then may begin too late to use
// it.
func (s *share) room(now int64) int64 {
	if s.portion == nil || now > s.portion.fresh {
		return 0
	}
	return s.portion.left
}

// wait returns how long it may take until there is room, by the last answer.
func (s *share) wait(now int64) time.Duration {
	free := s.known().free
	if free == 0 {
		return limit.Unknown
	}
	return time.Duration(max(1, free-now))
}

// pauses reports whether the last answer of the store allows no order yet. A pause is at most quota.Again: if more is left of it,
// a clock without a monotonic reading was set back, and the line must not wait until the clock is where it was.
func (s *share) pauses(now int64) bool {
	return now < s.next && (s.next == math.MaxInt64 || s.next-now <= int64(quota.Again))
}

// The grant keeps the mark of its portion, by which the store finds the entry that a correction concerns.
func (s *share) take(slots bool, n int64) grant {
	s.portion.left -= n
	if slots {
		s.used += n
	}
	return grant{Grant: limit.Grant{N: n, Mark: s.portion.Mark}, end: s.portion.end, joins: s.portion.joins}
}

// give returns the grant of a job. unused says that its work did not start.
func (s *share) give(slots bool, grant grant, now int64, unused bool) {
	switch {
	// Slots are not returned one by one: the next order has the number of those in use, and dirty makes it due.
	case slots:
		s.used, s.dirty = s.used-grant.N, true
	// Another job of this engine can use it, without an order.
	case unused && s.portion != nil && s.portion.Mark == grant.Mark && now <= s.portion.fresh:
		s.portion.left += grant.N
	case unused: // its portion is closed, so the amount goes back to the store
		s.correct(&grant, 0)
	}
}

// correction says how much was taken of one portion and how much was used. An order sends it to the store.
type correction struct {
	took limit.Grant
	used int64
}

// correct records the total amount that a job has used; false if that changes nothing. Once a job has used more than it
// took, the amount cannot be lowered again.
func (s *share) correct(g *grant, used int64) bool {
	used = max(used, 0)
	if used == g.N || used < g.N && g.overused {
		return false
	}
	fix := correction{g.Grant, used}
	g.N, g.overused = used, g.overused || used > g.N
	// Corrections of one portion are one for the store, which has counted the portion as a whole.
	n := s.note()
	if last := len(n.corrections) - 1; last >= 0 && n.corrections[last].took.Mark == fix.took.Mark {
		n.corrections[last].took.N += fix.took.N
		n.corrections[last].used += fix.used
		return true
	}
	n.corrections = append(n.corrections, fix)
	return true
}

// orderRoom sends an order for a line without room, now or at the time from which a new answer is expected.
func (g *Gate[T]) orderRoom(l *line[T], now int64) {
	s := l.share
	switch {
	case s.orderedAt != 0:
	case s.next == math.MaxInt64: // not before something is returned
		l.disarm()
	case s.pauses(now):
		g.arm(l, now, time.Duration(s.next-now))
	default:
		g.orderNow(l)
		if l.queue.first().hold != nil {
			return // a hold can take long, and what other limits grant would expire meanwhile
		}
		t := l.queue.first().t
		for i := range t.Takes {
			if t.isHold(i) {
				continue
			}
			if at := lineOfSameKey(&t.Takes[i], l.at()); at != l.at() {
				g.orderEarly(g.lineOf(at), t.Takes[i].N, now)
			}
		}
	}
}

// orderNow makes an order of a line due.
// The line is noted and not its order: until the orders are sent, further jobs may wait, and are included.
func (g *Gate[T]) orderNow(l *line[T]) {
	if !g.stopped {
		g.toOrder[l] = struct{}{}
		g.o.Ask()
	}
}

// orderEarly orders what a ticket needs of line l while it waits in another line. Otherwise it would order one limit
// after the other, and the first grant could expire before the last arrives.
func (g *Gate[T]) orderEarly(l *line[T], n, now int64) {
	// A line with waiting tickets has an order for these already.
	if s := l.share; s != nil && l.queue.len() == 0 && n > s.room(now) {
		s.note().early = max(s.known().early, n)
		if s.orderedAt == 0 && !s.pauses(now) {
			g.orderNow(l)
		}
	}
}

// Orders returns the orders that are due, at most the given number. Call Settle with the answer of each.
func (g *Gate[T]) Orders(most int) []Order[T] {
	now := g.now()
	var all []Order[T]
	for l := range g.toOrder {
		if len(all) == most {
			break
		}
		if l.share.orderedAt != 0 {
			continue // stays due until the outstanding order is settled
		}
		delete(g.toOrder, l)
		o := l.order(now)
		o.joins = g.joins
		all = append(all, o)
	}
	return all
}

// order makes the order of a line: the amount that it needs, and everything that it has to return. Slots are not
// returned one by one: an order has the number that the engine still uses, so a lost order does no harm. A rate is
// asked for in portions, which double while each is used up in time:
//
//	limit 1000 a minute: 1, then 2, 4, ..., at most 1000/20 = 50; for a job that needs 80 at once, 80
func (l *line[T]) order(now int64) Order[T] {
	s, slots := l.share, l.def.Algorithm == limit.Slots
	o := quota.Order{Limit: *l.def}
	known := s.known()
	o.Ended = known.ended
	// Kept slots of the engine are given up, as the slots of a hold belong to the case: o.Held below no longer has
	// them.
	if h := l.nextHold(); h != nil {
		o.For, o.Least, o.Want = h, h.N, h.N
		s.drop()
	} else if first := l.queue.first(); first != nil {
		if first.n > s.room(now) {
			o.Least, o.Want = first.n, l.queue.amount()
		}
	} else if known.early > s.room(now) {
		o.Least, o.Want = known.early, known.early
	}
	if slots {
		o.Held, s.dirty = s.used+s.left(), false
	} else if o.Least > 0 {
		most := max(o.Least, l.def.N/parts)
		// It was used up in time, so this engine needs more than that.
		if s.portion != nil && s.portion.left == 0 {
			s.nextSize = min(2*s.portion.N, most)
		}
		o.Want = max(o.Least, min(max(l.queue.amount(), s.nextSize), most))
		s.close()
	}
	o.Back, o.Used = s.takeNotes()
	s.orderedAt = now
	return Order[T]{Limit: l.def.Name, Key: l.key, Order: o, line: l}
}

// Settle applies the answer of the store to an order. After an error it is unknown whether the store has executed the
// order. So the line assumes the safe case: nothing was granted, and what the order returned of a rate stays used.
// Slots and ends of holds are sent again, which is idempotent.
func (g *Gate[T]) Settle(o Order[T], a quota.Answer, err error) {
	if g.stopped {
		return
	}
	now, l, s := g.now(), o.line, o.line.share
	asked := s.orderedAt
	s.orderedAt = 0
	slots := l.def.Algorithm == limit.Slots
	switch {
	// The store may have counted the slots for the number that this engine no longer has.
	case err == nil && slots && o.Order.For == nil && o.joins != g.joins:
		s.dirty = true
	case err != nil:
		s.end(o.Order.Ended...)
		s.dirty, s.next = slots, now+int64(quota.Again)
	case o.Order.For != nil && a.Grant.N > 0:
		s.next, s.taken = 0, a.Taken
		s.expect(0, nil)
		g.begin(l, *o.Order.For, a.Had)
	case o.Order.For != nil:
		s.taken = a.Taken
		s.expect(0, a.Holds)
		g.waitForHolds(l, now)
		if l.def.N > o.Order.Limit.N { // raised while the order was on its way: no end of a hold would ask again
			s.next = 0
		}
	case a.Grant.N > 0:
		s.next, s.taken = 0, a.Taken
		s.expect(0, s.known().others)
		g.addGrant(l, a.Grant, asked, now)
		if l.def.N < o.Order.Limit.N { // lowered while the order was on its way
			g.returnLeft(l)
		}
	// Nothing was granted, although something was asked for.
	case o.Order.Least > 0:
		s.taken, s.next = a.Taken, now+int64(pollAfter(a.Wait, slots))
		free := int64(0)
		if a.Wait != limit.Unknown {
			free = now + int64(a.Wait)
		}
		s.expect(free, s.known().others)
	default:
		s.taken = a.Taken
	}
	g.advance(l, now)
	if s.next > now {
		g.refuseOnce(l)
	}
	g.prefer(l, a.Holds)
	if s.returns() {
		g.orderNow(l)
	}
}

// pollAfter returns the time until the next order, after an answer that granted nothing. It is at most quota.Again,
// since another engine may return a portion before the rate itself has room, and since the store forgets engines that
// do not ask.
func pollAfter(wait time.Duration, slots bool) time.Duration {
	if slots {
		return slotsAgain
	}
	return min(max(wait, 10*time.Millisecond), quota.Again)
}

// addGrant adds a granted portion or slots to the share. The time of a portion counts from its order and not from the
// answer, since the store counts it from a moment between the two. Jobs may take of it for half of that time, so that
// they have the other half to begin.
func (g *Gate[T]) addGrant(l *line[T], grant limit.Grant, asked, now int64) {
	s := l.share
	p := &portion{Grant: grant, joins: g.joins}
	if l.def.Algorithm == limit.Slots {
		p.left = s.left() + grant.N
		p.fresh = now + int64(slotsHeld)
	} else {
		hold := l.def.Hold()
		p.left = grant.N
		p.end = asked + int64(hold)
		p.fresh = asked + int64(hold)/2
	}
	s.drop()
	s.portion = p
	p.stop = g.o.Clock.AfterFunc(time.Duration(max(0, p.fresh-now)+1), func() { g.returnUnused(l, p) })
}

// returnUnused returns what no job has taken in time.
// Each portion has a timer of its own, which is stopped when the portion is dropped. If it fires all the same, it does nothing.
func (g *Gate[T]) returnUnused(l *line[T], p *portion) {
	g.o.Lock.Lock()
	defer g.o.Lock.Unlock()
	s := l.share
	switch {
	case s.portion != p || g.stopped:
	case p.left > 0:
		g.returnLeft(l)
	default: // used up in time, so this engine needs more than that
		if l.def.Algorithm != limit.Slots {
			s.nextSize = 2 * p.N
		}
		s.drop()
	}
}

// redefined has a line ordered again at once, as its new definition may have room. If the limit is lower than before, what was granted and no
// job has taken is returned.
func (g *Gate[T]) redefined(l *line[T], before int64) {
	l.share.next = 0
	if l.def.N < before {
		g.returnLeft(l)
	}
}

// returnLeft returns what no job has taken with the next order.
func (g *Gate[T]) returnLeft(l *line[T]) {
	s := l.share
	switch {
	case s.left() == 0:
		return
	case l.def.Algorithm == limit.Slots:
		s.drop()
		s.dirty = true
	default:
		// The next portion is as large as what was used of this one.
		s.nextSize = s.portion.N - s.portion.left
		s.close()
	}
	g.orderNow(l)
}
