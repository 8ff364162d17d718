package admission

import "slices"

// A ticket that does not wait for room (Ticket.Once) waits for an answer of the store, if engines share the limit and this engine has
// nothing of it: only the store knows whether there is room.
//
//	Enter ── room ─────────────────────────────────────────────────────▶ acquired
//	      ├─ the store may have room ──▶ line ── order ── granted ──▶ ready, Enter
//	      │                                            └─ refused ──▶ ready, Enter refuses it
//	      └─ no room ──▶ refused: Enter returns false, and the ticket is in no line

// mayAsk reports whether a ticket that does not wait for room can be admitted by the next answer of the store: a line has no earlier
// ticket, and the store has not refused an order lately.
func (g *Gate[T]) mayAsk(lines []*line[T], now int64) bool {
	return slices.ContainsFunc(lines, func(l *line[T]) bool {
		return l.share != nil && l.queue.len() == 0 && l.def.N > 0 && !l.share.pauses(now)
	})
}

// refuseOnce makes the tickets of a line ready that do not wait for room, since the store has given none. Enter refuses them then, and
// the owner passes them on with Pass.
func (g *Gate[T]) refuseOnce(l *line[T]) {
	for _, p := range slices.Clone(l.queue.all()) {
		if p.t.Once {
			g.makeReady(p)
		}
	}
}
