package admission

import (
	"math"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
)

// A line of a limit that engines share admits what the store has granted to this engine: a portion of a rate, which is used within a
// time, or slots. What is missing is asked for by orders, many lines at a time, and what is not used is given back by them:
//
//	short of room, or something to give back ──▶ Options.Ask ──▶ Orders ──▶ the store ──▶ Settle ──▶ the line goes on
//
// While an answer is outstanding, jobs wait in the line as they do for room.

// share is what this engine has of a limit.
type share struct {
	portion   limit.Grant   // of a rate: what was granted last
	left      int64         // of the portion, or slots, that no job has taken
	used      int64         // slots that jobs have
	fresh     int64         // until when jobs may take what is left
	end       int64         // until when they have to begin
	back      *limit.Grant  // a portion to be given back, with
	spent     int64         // what was used of it
	size      int64         // of the next portion, if not more is waited for
	visit     int64         // what a job lacks here that waits in another line
	fixes     []correction  // of portions whose jobs used another amount than they took
	dirty     bool          // the store has to be sent slots that were given back
	orderedAt int64         // when the order was made whose answer is outstanding; 0 if there is none
	next      int64         // when it is of use to ask again
	free      int64         // when there may be room, as the store sees it; 0 if it knows of no such time
	taken     int64         // of the limit by all engines and cases, as the store saw it
	ended     []ration.End  // of holds, of which the store does not know
	others    []ration.Hold // that a hold waits for
	preferred *ration.Hold  // to be ordered next, as its case seems to have it already
	checked   int64         // when it was last asked whether those have ended
	stop      func() bool   // of the timer that gives back what is left
}

const (
	// slotsHeld is how long slots are kept that no job takes.
	slotsHeld = 250 * time.Millisecond
	// slotsAgain is how often slots are asked for that other engines have.
	slotsAgain = 100 * time.Millisecond
	// parts of a rate that one portion has at most, unless a job needs more.
	parts = 20
)

// Order is what the store is asked for one line.
type Order[T any] struct {
	Limit, Key string
	Order      ration.Order
	line       *line[T]
}

// idle reports whether a share can be forgotten.
func (s *share) idle() bool {
	return s == nil || s.left == 0 && s.used == 0 && s.back == nil && len(s.fixes) == 0 && !s.dirty && len(s.ended) == 0 &&
		s.orderedAt == 0
}

// room is what jobs may take now.
func (s *share) room(now int64) int64 {
	if now > s.fresh {
		return 0
	}
	return s.left
}

// wait is how long it may take until there is room.
func (s *share) wait(now int64) time.Duration {
	if s.free == 0 {
		return limit.Unknown
	}
	return time.Duration(max(1, s.free-now))
}

func (s *share) take(slots bool, n int64) grant {
	s.left -= n
	if slots {
		s.used += n
	}
	return grant{Grant: limit.Grant{N: n, Mark: s.portion.Mark}, end: s.end}
}

// give takes back what a job has; unused says that nothing was done with it.
func (s *share) give(slots bool, grant grant, now int64, unused bool) {
	switch {
	case slots:
		s.used, s.dirty = s.used-grant.N, true
	case unused && s.portion.N > 0 && s.portion.Mark == grant.Mark && now <= s.fresh:
		s.left += grant.N
	case unused: // its portion has ended
		s.correct(&grant, 0)
	}
}

// correction is what was taken of one portion, and what was used in fact. The store learns of it with an order.
type correction struct {
	took limit.Grant
	used int64
}

// correct notes what a job has used in all; false if that changes nothing. After a debt nothing is given back.
func (s *share) correct(g *grant, used int64) bool {
	used = max(used, 0)
	if used == g.N || used < g.N && g.owes {
		return false
	}
	fix := correction{g.Grant, used}
	g.N, g.owes = used, g.owes || used > g.N
	if last := len(s.fixes) - 1; last >= 0 && s.fixes[last].took.Mark == fix.took.Mark {
		s.fixes[last].took.N += fix.took.N
		s.fixes[last].used += fix.used
		return true
	}
	s.fixes = append(s.fixes, fix)
	return true
}

// short has the store asked, at once or when that is of use.
func (g *Gate[T]) short(l *line[T], now int64) {
	s := l.share
	switch {
	case s.orderedAt != 0:
	case s.next == math.MaxInt64: // until something is given back
		l.disarm()
	case now < s.next:
		g.arm(l, now, time.Duration(s.next-now))
	default:
		g.ask(l)
		if l.list[0].hold != nil {
			return // which may take long, so that nothing else is asked for meanwhile
		}
		t := l.list[0].t
		for i := range t.Takes {
			if t.isHold(i) {
				continue
			}
			if at := beside(&t.Takes[i], l.at); at != l.at {
				g.visit(g.lineOf(at), t.Takes[i].N, now)
			}
		}
	}
}

func (g *Gate[T]) ask(l *line[T]) {
	if !g.stopped {
		g.toOrder[l] = struct{}{}
		g.o.Ask()
	}
}

// visit has the store asked for what a job lacks in a line, though it waits in another one: so it gets all that it needs at a time.
func (g *Gate[T]) visit(l *line[T], n, now int64) {
	if s := l.share; s != nil && len(l.list) == 0 && n > s.room(now) {
		s.visit = max(s.visit, n)
		if s.orderedAt == 0 && now >= s.next {
			g.ask(l)
		}
	}
}

// Orders lists what the store is to be asked, for so many lines at most. Each is answered by Settle.
func (g *Gate[T]) Orders(most int) []Order[T] {
	now := g.now()
	var all []Order[T]
	for l := range g.toOrder {
		if len(all) == most {
			break
		}
		if l.share.orderedAt != 0 {
			continue // with the next ones
		}
		delete(g.toOrder, l)
		all = append(all, l.order(now))
	}
	return all
}

func (l *line[T]) order(now int64) Order[T] {
	s, slots := l.share, l.def.Algorithm == limit.Slots
	o := ration.Order{Limit: *l.def}
	o.Ended, s.ended = s.ended, nil
	if h := l.nextHold(); h != nil {
		o.For, o.Least, o.Want = h, h.N, h.N
		s.left = 0
	} else if len(l.list) > 0 {
		if n := l.list[0].n; n > s.room(now) {
			o.Least, o.Want = n, l.wanted
		}
	} else if s.visit > s.room(now) {
		o.Least, o.Want = s.visit, s.visit
	}
	s.visit = 0
	if slots {
		o.Held, s.dirty = s.used+s.left, false
	} else if o.Least > 0 {
		most := max(o.Least, l.def.N/parts)
		if s.portion.N > 0 && s.left == 0 {
			s.size = min(2*s.portion.N, most)
		}
		o.Want = max(o.Least, min(max(l.wanted, s.size), most))
		s.close()
	}
	if s.back == nil && len(s.fixes) > 0 {
		first := s.fixes[0]
		s.back, s.spent, s.fixes = &first.took, first.used, s.fixes[1:]
	}
	o.Back, o.Used, s.back = s.back, s.spent, nil
	s.orderedAt = now
	return Order[T]{l.at.limit, l.at.key, o, l}
}

// close ends a portion. What is left of it is given back with the next order.
func (s *share) close() {
	if s.left > 0 {
		grant := s.portion
		s.back, s.spent = &grant, s.portion.N-s.left
	}
	s.portion, s.left = limit.Grant{}, 0
}

// Settle takes what the store has answered to an order. After an error it is not known whether the store has received it: then nothing
// was granted, and what was to be given back stays charged.
func (g *Gate[T]) Settle(o Order[T], a ration.Answer, err error) {
	if g.stopped {
		return
	}
	now, l, s := g.now(), o.line, o.line.share
	asked := s.orderedAt
	s.orderedAt = 0
	slots := l.def.Algorithm == limit.Slots
	switch {
	case err != nil:
		s.ended = append(s.ended, o.Order.Ended...)
		s.dirty, s.next = slots, now+int64(ration.Again)
	case o.Order.For != nil && a.Grant.N > 0:
		s.next, s.free, s.taken, s.others = 0, 0, a.Taken, nil
		g.begin(l, *o.Order.For, a.Had)
	case o.Order.For != nil:
		s.taken, s.free, s.others = a.Taken, 0, a.Holds
		g.waitForHolds(l, now)
	case a.Grant.N > 0:
		s.next, s.free, s.taken = 0, 0, a.Taken
		g.granted(l, a.Grant, asked, now)
	case o.Order.Least > 0:
		s.taken, s.next, s.free = a.Taken, now+int64(pollAfter(a.Wait, slots)), 0
		if a.Wait != limit.Unknown {
			s.free = now + int64(a.Wait)
		}
	default:
		s.taken = a.Taken
	}
	g.advance(l, now)
	g.prefer(l, a.Holds)
	if s.dirty || s.back != nil || len(s.fixes) > 0 || len(s.ended) > 0 {
		g.ask(l)
	}
}

// pollAfter is how long a request that has to wait does so before it asks again. A rate may be free earlier than that, by what another engine gives back.
func pollAfter(wait time.Duration, slots bool) time.Duration {
	if slots {
		return slotsAgain
	}
	return min(max(wait, 10*time.Millisecond), ration.Again)
}

// granted takes up a portion, or slots.
func (g *Gate[T]) granted(l *line[T], grant limit.Grant, asked, now int64) {
	s := l.share
	hold := slotsHeld
	if l.def.Algorithm == limit.Slots {
		s.left += grant.N
		s.fresh = now + int64(hold)
	} else {
		hold = l.def.Hold()
		s.portion, s.left = grant, grant.N
		s.end = asked + int64(hold)
		s.fresh = asked + int64(hold)/2
	}
	if s.stop != nil {
		s.stop()
	}
	end := s.fresh
	s.stop = g.o.Clock.AfterFunc(time.Duration(max(0, end-now)+1), func() { g.expired(l, end) })
}

// expired gives back what no job has taken in time.
func (g *Gate[T]) expired(l *line[T], fresh int64) {
	g.o.Lock.Lock()
	defer g.o.Lock.Unlock()
	s := l.share
	if s.fresh != fresh || s.left == 0 || g.stopped {
		return
	}
	if l.def.Algorithm == limit.Slots {
		s.left, s.dirty = 0, true
	} else {
		s.size = s.portion.N - s.left
		s.close()
	}
	g.ask(l)
}
