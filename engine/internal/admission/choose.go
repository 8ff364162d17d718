package admission

import (
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// A take from a pool names several keys (Take.Any), and is granted by one of them, the first with room. Takes of
// several limits with the same keys form a group: all of a group are granted by the same key. If no key has room for
// the whole group, the ticket waits in one line per key, and continues when any of them has room:
//
//	take 1: requests, any of {a, b}  ┐ a group    key a: requests full        ──▶ waits in requests/a
//	take 2: tokens,   any of {a, b}  ┘            key b: requests ok, tokens full ──▶ waits in tokens/b
//
// The takes of the function and those of its step are separate groups.

// serves reports whether the line can grant the take.
func (at lineKey) serves(t *workitem.Take) bool {
	return t.Limit == at.limit && (len(t.Any) == 0 && t.Key == at.key || slices.Contains(t.Any, at.key))
}

// lineOfSameKey returns the line that would grant a take if the line at grants another take of the ticket: that of the
// same key, if the pool has it.
func lineOfSameKey(t *workitem.Take, at lineKey) lineKey {
	if slices.Contains(t.Any, at.key) {
		return lineKey{t.Limit, at.key}
	}
	return firstLine(t)
}

// firstLine returns the line of a take, or that of the first key of its pool.
func firstLine(t *workitem.Take) lineKey {
	if len(t.Any) == 0 {
		return lineKey{t.Limit, t.Key}
	}
	return lineKey{t.Limit, t.Any[0]}
}

// sameGroup reports whether two takes of a ticket are in the same group, so that one key must grant both.
func (t *Ticket[T]) sameGroup(i, k int) bool {
	return i == k || len(t.Takes[i].Any) > 0 && (i < t.Own) == (k < t.Own) && slices.Equal(t.Takes[i].Any, t.Takes[k].Any)
}

// choose finds, for each take of a ticket, the line that grants it. If they do not all have room, it returns the lines
// in which the ticket has to wait, and those before them that have room. full reports whether a line has no room for an amount; Enter and Try differ only in
// it.
func (g *Gate[T]) choose(t *Ticket[T], full func(l *line[T], n int64) bool) (held []holding[T], wait []*line[T]) {
	held = make([]holding[T], len(t.Takes))
	order := g.order(t)
	for i := range t.Takes {
		if order != nil {
			i = order[i]
		}
		if held[i].line != nil {
			continue // in the group of an earlier take
		}
		if wait = g.chooseKey(t, i, held, full); wait != nil {
			return held, wait
		}
	}
	return held, nil
}

// chooseKey finds the key that grants the group of take i. The search begins at another key each time, so that keys
// with room share the load.
func (g *Gate[T]) chooseKey(t *Ticket[T], i int, held []holding[T], full func(l *line[T], n int64) bool) (wait []*line[T]) {
	keys := t.Takes[i].Any
	if len(keys) == 0 {
		l := g.lineOf(lineKey{t.Takes[i].Limit, t.Takes[i].Key})
		switch {
		case t.isHold(i) && !g.hasHold(l.def.Name, &t.Holds[i]):
			return []*line[T]{l}
		case !t.isHold(i) && full(l, t.Takes[i].N+t.amountBefore(held, l)):
			return []*line[T]{l}
		}
		held[i].line = l
		return nil
	}
	for n := range keys {
		key := keys[(g.turn+n)%len(keys)]
		if l := g.firstFull(t, i, key, held, full); l != nil {
			wait = append(wait, l)
			continue
		}
		for k := i; k < len(t.Takes); k++ {
			if t.sameGroup(i, k) {
				held[k].line = g.lineOf(lineKey{t.Takes[k].Limit, key})
			}
		}
		g.turn++
		return nil
	}
	return wait
}

// advanceOthers advances the lines of a ticket that was made ready and was admitted by other keys of its pools: one of
// these lines may have made it ready, and its room is free for the next.
//
//	key a has room   ──▶ X, of a or b, is ready; Z waits behind it in a
//	key b has room   ──▶ Y is ready
//	X enters, gets b ──▶ the room of a is for Z
//	Y enters         ──▶ waits in b
func (g *Gate[T]) advanceOthers(t *Ticket[T], now int64) {
	if !slices.ContainsFunc(t.Takes, func(take workitem.Take) bool { return len(take.Any) > 0 }) {
		return
	}
	g.eachLine(t, func(l *line[T]) {
		if !slices.ContainsFunc(t.held, func(h holding[T]) bool { return h.line == l }) && l.queue.len() > 0 {
			g.advance(l, now)
		}
	})
}

// amountBefore returns how much earlier takes of the ticket need of a line: if the function and its step both take 1 of
// a line, the line must have room for 2.
func (t *Ticket[T]) amountBefore(held []holding[T], l *line[T]) (n int64) {
	for i := range held {
		if held[i].line == l && !t.isHold(i) {
			n += t.Takes[i].N
		}
	}
	return n
}

// firstFull returns the first line of a key without room for its take of the group; nil if all have room.
func (g *Gate[T]) firstFull(t *Ticket[T], i int, key string, held []holding[T], full func(l *line[T], n int64) bool) *line[T] {
	for k := i; k < len(t.Takes); k++ {
		if !t.sameGroup(i, k) {
			continue
		}
		if l := g.lineOf(lineKey{t.Takes[k].Limit, key}); full(l, t.Takes[k].N+t.amountBefore(held, l)) {
			return l
		}
	}
	return nil
}

// eachLine calls f with each existing line that could grant a take of the ticket. It creates no lines: one that does
// not exist has no waiters.
func (g *Gate[T]) eachLine(t *Ticket[T], f func(*line[T])) {
	for i := range t.Takes {
		p := &t.Takes[i]
		if len(p.Any) == 0 {
			g.withLine(lineKey{p.Limit, p.Key}, f)
			continue
		}
		for _, key := range p.Any {
			g.withLine(lineKey{p.Limit, key}, f)
		}
	}
}

func (g *Gate[T]) withLine(at lineKey, f func(*line[T])) {
	if d := g.limits[at.limit]; d != nil && d.lines[at.key] != nil {
		f(d.lines[at.key])
	}
}

// KeyOf returns the key for which an admitted ticket holds the limit with that name; false if it holds nothing of it.
func (t *Ticket[T]) KeyOf(name string) (key string, ok bool) {
	for i := range t.held {
		if t.Takes[i].Limit == name {
			return t.held[i].line.key, true
		}
	}
	return "", false
}
