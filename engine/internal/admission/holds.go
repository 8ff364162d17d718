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
type hold[T any] struct {
	ration.Hold
	at lineKey
}

func keyOf(limit string, h *ration.Hold) holdKey { return holdKey{limit, h.Case, h.Task} }

// isHold reports whether the case keeps what a take is of.
func (t *Ticket[T]) isHold(i int) bool { return i < len(t.Holds) }

// has reports whether a case is known to have a hold of a limit.
func (g *Gate[T]) has(limit string, h *ration.Hold) bool {
	_, ok := g.holds[keyOf(limit, h)]
	return ok
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

// begin notes that a case has a hold. One for which no ticket waits any more ends, unless the case had it before.
func (g *Gate[T]) begin(l *line[T], h ration.Hold, had bool) {
	waits := slices.ContainsFunc(l.list, func(p *place[T]) bool { return p.hold != nil && p.hold.Same(&h) })
	switch {
	case waits:
		g.holds[keyOf(l.at.limit, &h)] = hold[T]{h, l.at}
	case !had:
		l.share.ended = append(l.share.ended, h)
	}
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
func (l *line[T]) heldBy() (cases []workitem.CaseID) {
	if l.share == nil {
		return nil
	}
	for _, h := range l.share.others {
		if !slices.Contains(cases, h.Case) {
			cases = append(cases, h.Case)
		}
	}
	return cases
}

// HoldOf is a hold of a limit that a case is known to have.
func (g *Gate[T]) HoldOf(name string, of workitem.CaseID, task string) (ration.Hold, bool) {
	h, ok := g.holds[holdKey{name, of, task}]
	return h.Hold, ok
}

// End gives back what a case holds. The key is used only for a hold that this gate does not know.
func (g *Gate[T]) End(name, key string, h ration.Hold) {
	at := lineKey{name, key}
	if known, ok := g.holds[keyOf(name, &h)]; ok {
		at = known.at
		if known.Activation <= h.Activation {
			delete(g.holds, keyOf(name, &h))
		}
	}
	if g.stopped || g.limits[name] == nil {
		return
	}
	l := g.lineOf(at)
	if l.share == nil {
		return
	}
	l.share.ended = append(l.share.ended, h)
	l.share.next = 0
	g.ask(l)
}
