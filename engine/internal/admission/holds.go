package admission

import (
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// A case can hold slots over several tasks. The row of the limit in the store records them under the id of the case,
// and not under that of an engine: so they survive the engine that ordered them, and any engine that continues the case
// finds them.
//
//	a job of the first task waits in the line ── it is first ──────────▶ order ──▶ the case is in the row ──▶ ready
//	                                         └── the case has the hold ──▶ ready, at any position in the line
//	the last task or the case ends ──▶ End ──▶ order ──▶ the case is not in the row ──▶ the next job
//
// If an engine stops between the end of the last task and the order, the row keeps a hold that has ended. So an engine
// that waits for the holds of other cases checks from time to time whether these have ended (Options.Check).

// holdKey identifies a hold.
type holdKey struct {
	limit string
	of    workitem.CaseID
	task  string
}

// hold is a hold that a case has, with its line.
type hold struct {
	quota.Hold
	at lineKey
}

func keyOf(limit string, h *quota.Hold) holdKey { return holdKey{limit, h.Case, h.Task} }

// isHold reports whether the case, and not the attempt, keeps what take i acquires.
func (t *Ticket[T]) isHold(i int) bool { return i < len(t.Holds) }

// hasHold reports whether a case is known to have a hold of a limit. A hold of an earlier activation does not count:
// another engine may have ended it since.
// Only this process knows what is in g.holds; another engine learns of a hold by its own order.
func (g *Gate[T]) hasHold(limit string, h *quota.Hold) bool {
	known, ok := g.holds[keyOf(limit, h)]
	return ok && known.Activation >= h.Activation
}

// holdIn returns the hold for which a ticket waits in a line; nil if it waits for slots of its attempt.
func (g *Gate[T]) holdIn(t *Ticket[T], l *line[T]) *quota.Hold {
	for i := range t.Holds {
		if l.at().serves(&t.Takes[i]) && !g.hasHold(l.def.Name, &t.Holds[i]) {
			return &t.Holds[i]
		}
	}
	return nil
}

// waitOf returns how long a place has to wait for room in its line; l is the line, or the copy of it on which advance
// counts. A hold of which nothing is known has to be ordered, so its wait is unknown.
func (g *Gate[T]) waitOf(p *place[T], l *line[T], now int64) time.Duration {
	switch {
	case p.hold == nil:
		return l.wait(now, p.n+l.reservedBefore(p.t))
	case g.hasHold(p.line.def.Name, p.hold):
		return 0
	}
	return limit.Unknown
}

// begin records that a case has a hold, and makes the job ready that waits for it. If no job waits for it any more,
// since it was canceled while the order was on its way, the new hold is ended. A hold that the case had before the
// order stays.
func (g *Gate[T]) begin(l *line[T], h quota.Hold, had bool) {
	p := l.placeForHold(&h)
	switch {
	case p != nil && p.hold.Activation == h.Activation:
		g.holds[keyOf(l.def.Name, &h)] = hold{h, l.at()}
		g.makeReady(p)
	case !had:
		l.share.end(quota.End{Hold: h, Only: true})
	}
}

// nextHold returns the hold to order next: the preferred one, or that of the first ticket in the line. It is nil if the
// first ticket waits for slots of its attempt.
func (l *line[T]) nextHold() *quota.Hold {
	h := l.share.known().preferred
	if h != nil {
		l.share.note().preferred = nil
	} else if first := l.queue.first(); first != nil {
		h = first.hold
	}
	if h == nil {
		return nil
	}
	// A copy, since the ticket may be withdrawn while the order is on its way.
	of := *h
	return &of
}

// prefer looks for a waiting ticket whose case has its hold already, by the row of the limit, and orders that hold
// next. This happens if another engine, or an earlier process, ran the previous attempt of the job. Such a ticket must
// not wait its turn, since the tickets before it may wait for this very hold to end. The order confirms that the hold
// still exists, and sets its activation.
func (g *Gate[T]) prefer(l *line[T], held []quota.Hold) {
	for i := range held {
		if p := l.placeForHold(&held[i]); p != nil && !g.hasHold(l.def.Name, p.hold) {
			l.share.note().preferred = p.hold
			g.orderNow(l)
			return
		}
	}
}

// placeForHold returns the place of the ticket that waits for a hold; nil if there is none.
func (l *line[T]) placeForHold(h *quota.Hold) *place[T] {
	all := l.queue.all()
	i := slices.IndexFunc(all, func(p *place[T]) bool { return p.hold != nil && p.hold.Same(h) })
	if i < 0 {
		return nil
	}
	return all[i]
}

// checkAgain is the interval at which the holds that block a line are checked. It is longer than that of orders because
// a check reads the cases.
const checkAgain = 5 * quota.Again

// waitForHolds makes the first ticket of a line wait for the end of other holds.
func (g *Gate[T]) waitForHolds(l *line[T], now int64) {
	s := l.share
	s.next = math.MaxInt64
	if g.o.Again != limit.Unknown {
		s.next = now + int64(g.o.Again)
	}
	// The first refusal is checked at once: the engine that was to end the hold may have died before this one was
	// opened.
	if n := s.known(); len(n.others) > 0 && (n.checked == 0 || now-n.checked >= int64(checkAgain)) {
		s.note().checked = now
		g.o.Check(l.def.Name, l.key, slices.Clone(n.others))
	}
}

// heldBy returns the cases whose holds block the line.
func (l *line[T]) heldBy() []workitem.CaseID {
	if l.share == nil {
		return nil
	}
	return quota.Cases(l.share.known().others)
}

// holds reports whether the row of the limit had a hold by the last answer that refused one.
func (l *line[T]) holds(h *quota.Hold) bool {
	return slices.ContainsFunc(l.share.known().others, func(other quota.Hold) bool { return other.Same(h) })
}

// forget drops what is known of the holds of a ticket whose job has ended here, if there are other engines: from now on
// one of them may end the hold, and this engine would not notice.
func (g *Gate[T]) forget(t *Ticket[T]) {
	if g.o.Again == limit.Unknown {
		return
	}
	for i := range t.Holds {
		delete(g.holds, keyOf(t.Takes[i].Limit, &t.Holds[i]))
	}
}

// HoldOf returns the hold of a limit that a task of a case is known to have.
func (g *Gate[T]) HoldOf(name string, of workitem.CaseID, task string) (quota.Hold, bool) {
	h, ok := g.holds[holdKey{name, of, task}]
	return h.Hold, ok
}

// End ends a hold: its slots are returned with the next order. The key is used only for a hold that this gate does not
// know.
func (g *Gate[T]) End(name, key string, e quota.End) {
	at, id := lineKey{name, key}, keyOf(name, &e.Hold)
	if known, ok := g.holds[id]; ok {
		at = known.at
		if e.Ends(&known.Hold) {
			delete(g.holds, id)
		}
	}
	if g.stopped || g.limits[name] == nil {
		return
	}
	if l := g.lineOf(at); l.share != nil {
		l.share.end(e)
		l.share.next = 0
		g.orderNow(l)
	}
}
