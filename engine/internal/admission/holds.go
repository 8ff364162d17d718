package admission

import (
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// A case can hold slots over several tasks. They are in the row of the limit under the name of the case, so they outlive the engine that asked
// for them, and each engine that goes on with the case has them:
//
//	a job of the task that begins a hold ── waits in the line ── first ──▶ order ──▶ the row has the case ──▶ ready
//	                                             has the case already ──────▶ ready, wherever it is in the line
//	the task that ends it is over, or the case ──▶ End ──▶ order ──▶ the row is without it ──▶ the next one
//
// An engine that ends between the end of a task and the order leaves the hold in the row. So what holds up others is checked.

// holdKey identifies a hold.
type holdKey struct {
	limit string
	of    workitem.CaseID
	task  string
}

// hold is one that a case has, with its line.
type hold struct {
	ration.Hold
	at lineKey
}

func keyOf(limit string, h *ration.Hold) holdKey { return holdKey{limit, h.Case, h.Task} }

// isHold reports whether the case keeps what a take is of.
func (t *Ticket[T]) isHold(i int) bool { return i < len(t.Holds) }

// has reports whether a case is known to have a hold of a limit. One that an earlier activation began may have ended since, on another engine.
func (g *Gate[T]) has(limit string, h *ration.Hold) bool {
	known, ok := g.holds[keyOf(limit, h)]
	return ok && known.Activation >= h.Activation
}

// holdIn is the hold for which a ticket waits in a line; nil if it does so for its attempt.
func (g *Gate[T]) holdIn(t *Ticket[T], l *line[T]) *ration.Hold {
	for i := range t.Holds {
		if l.at.serves(&t.Takes[i]) && !g.has(l.at.limit, &t.Holds[i]) {
			return &t.Holds[i]
		}
	}
	return nil
}

// waitOf is how long it takes until a line has room for one that waits in it.
func (g *Gate[T]) waitOf(p *place[T], l *line[T], now int64) time.Duration {
	switch {
	case p.hold == nil:
		return l.wait(now, p.n)
	case g.has(p.line.at.limit, p.hold):
		return 0
	}
	return limit.Unknown
}

// begin notes that a case has a hold, and makes the job ready that waits for it. One for which no job waits any more ends, unless the case had it
// before.
func (g *Gate[T]) begin(l *line[T], h ration.Hold, had bool) {
	p := l.placeOf(&h)
	switch {
	case p != nil && p.hold.Activation == h.Activation:
		g.holds[keyOf(l.at.limit, &h)] = hold{h, l.at}
		g.remove(p.t)
		g.o.Ready(p.t.Value)
	case !had:
		l.share.ended = append(l.share.ended, ration.End{Hold: h, Only: true})
	}
}

// nextHold is the hold that is to be ordered next: that of the first in the line, unless another one seems to be there already. Nil if the first
// waits for its attempt.
func (l *line[T]) nextHold() *ration.Hold {
	h := l.share.preferred
	l.share.preferred = nil
	if h == nil && len(l.list) > 0 {
		h = l.list[0].hold
	}
	if h == nil {
		return nil
	}
	of := *h
	return &of
}

// prefer orders a hold next that waits in the line, though its case has it already: the next attempt of a job that was done by another engine, or
// before this one was opened. It waits for no one, and others in the line may wait for it. It is not begun before the row says that it is there still, and by
// which activation.
func (g *Gate[T]) prefer(l *line[T], held []ration.Hold) {
	for i := range held {
		if p := l.placeOf(&held[i]); p != nil && !g.has(l.at.limit, p.hold) {
			l.share.preferred = p.hold
			g.ask(l)
			return
		}
	}
}

// placeOf is where a hold is waited for; nil if it is not.
func (l *line[T]) placeOf(h *ration.Hold) *place[T] {
	i := slices.IndexFunc(l.list, func(p *place[T]) bool { return p.hold != nil && p.hold.Same(h) })
	if i < 0 {
		return nil
	}
	return l.list[i]
}

// checkAgain is how often it is checked whether the holds that others wait for have ended.
const checkAgain = 5 * ration.Again

// waitForHolds has the first of a line wait until others have ended their holds.
func (g *Gate[T]) waitForHolds(l *line[T], now int64) {
	s := l.share
	s.next = math.MaxInt64
	if g.o.Again != limit.Unknown {
		s.next = now + int64(g.o.Again)
	}
	if len(s.others) > 0 && (s.checked == 0 || now-s.checked >= int64(checkAgain)) {
		s.checked = now
		g.o.Check(l.at.limit, l.at.key, slices.Clone(s.others))
	}
}

// heldBy lists the cases that the first of a line waits for.
func (l *line[T]) heldBy() []workitem.CaseID {
	if l.share == nil {
		return nil
	}
	return ration.Cases(l.share.others)
}

// forget keeps no hold in mind whose job has left its worker, if other engines may end it.
func (g *Gate[T]) forget(t *Ticket[T]) {
	if g.o.Again == limit.Unknown {
		return
	}
	for i := range t.Holds {
		delete(g.holds, keyOf(t.Takes[i].Limit, &t.Holds[i]))
	}
}

// HoldOf is a hold of a limit that a case is known to have.
func (g *Gate[T]) HoldOf(name string, of workitem.CaseID, task string) (ration.Hold, bool) {
	h, ok := g.holds[holdKey{name, of, task}]
	return h.Hold, ok
}

// End gives back what a case holds. The key is used only for a hold that this gate does not know.
func (g *Gate[T]) End(name, key string, e ration.End) {
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
		l.share.ended = append(l.share.ended, e)
		l.share.next = 0
		g.ask(l)
	}
}
