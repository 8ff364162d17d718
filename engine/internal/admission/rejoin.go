package admission

import "github.com/tasq-dev/tasq/limit"

// The store counts slots for the number of an engine. An engine that was declared dead by mistake joins its fleet anew, with another
// number: its slots are free then, and other engines may have them. What no work has begun with is not used any more:
//
//	granted to number 1, kept     Rejoined: dropped
//	granted to number 1, entered  Begin: false, the job enters again
//	asked for as number 1         Settle: the answer grants nothing, and the line asks again
//	work that has begun           was lost with the number; it counts for the new one until it ends
//
// A rate is charged to no engine, so its portions stay valid. So do the slots of holds, which belong to cases.

// Rejoined records that this engine has joined its fleet anew.
func (g *Gate[T]) Rejoined() {
	if g.stopped {
		return
	}
	g.joins++
	for l := range g.eachLineOfAll() {
		if l.share == nil || l.def.Algorithm != limit.Slots {
			continue
		}
		l.share.drop() // else jobs would enter with it until it is returned, and not begin
		l.share.next, l.share.dirty = 0, l.share.dirty || l.share.used > 0
		if l.share.returns() || l.queue.len() > 0 {
			g.orderNow(l)
		}
	}
}

// hasExpired reports whether what the store granted no longer counts. A portion of a rate is charged for a time: a start after that would be
// in a window to which it was not charged.
func (g *Gate[T]) hasExpired(l *line[T], of *grant, now int64) bool {
	if l.def.Algorithm == limit.Slots {
		return of.joins != g.joins
	}
	return now > of.end
}
