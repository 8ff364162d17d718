package admission

import (
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// What a ticket takes of a pool is of one key, the one that admits it first. Takes that belong together are of the same key: those of the
// function with the same keys, and those of its step. A ticket that no key admits waits in a line of each of them, and the
// first that has room lets it go on.

// serves reports whether a take may be of the line.
func (at lineKey) serves(t *workitem.Take) bool {
	return t.Limit == at.limit && (len(t.Any) == 0 && t.Key == at.key || slices.Contains(t.Any, at.key))
}

// beside is the line of a take if the ticket takes of another line too: that of the same key, if the pool has it.
func beside(t *workitem.Take, at lineKey) lineKey {
	if slices.Contains(t.Any, at.key) {
		return lineKey{t.Limit, at.key}
	}
	return firstLine(t)
}

// firstLine is the line of a take, or that of the first key of its pool.
func firstLine(t *workitem.Take) lineKey {
	if len(t.Any) == 0 {
		return lineKey{t.Limit, t.Key}
	}
	return lineKey{t.Limit, t.Any[0]}
}

// together reports whether two takes of a ticket are of the same key.
func (t *Ticket[T]) together(i, k int) bool {
	return i == k || len(t.Takes[i].Any) > 0 && (i < t.Own) == (k < t.Own) && slices.Equal(t.Takes[i].Any, t.Takes[k].Any)
}

// choose finds the lines of which a ticket can take all that it needs, by take. If there is no room, it returns the lines in which the
// ticket is to wait. full says that a line has no room for so much.
func (g *Gate[T]) choose(t *Ticket[T], full func(l *line[T], n int64) bool) (held []holding[T], wait []*line[T]) {
	held = make([]holding[T], len(t.Takes))
	for i := range t.Takes {
		if held[i].line != nil {
			continue // it belongs to one before
		}
		if wait = g.chooseKey(t, i, held, full); wait != nil {
			return nil, wait
		}
	}
	return held, nil
}

// chooseKey finds the key of a take, and of those that belong to it. Keys that have room take turns.
func (g *Gate[T]) chooseKey(t *Ticket[T], i int, held []holding[T], full func(l *line[T], n int64) bool) (wait []*line[T]) {
	keys := t.Takes[i].Any
	if len(keys) == 0 {
		l := g.lineOf(lineKey{t.Takes[i].Limit, t.Takes[i].Key})
		switch {
		case t.isHold(i) && !g.has(l.at.limit, &t.Holds[i]):
			return []*line[T]{l}
		case !t.isHold(i) && full(l, t.Takes[i].N+t.chosen(held, l)):
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
			if t.together(i, k) {
				held[k].line = g.lineOf(lineKey{t.Takes[k].Limit, key})
			}
		}
		g.turn++
		return nil
	}
	return wait
}

// chosen is how much a ticket takes of a line by the takes for which it has been found: what the function and its step take of one line is
// admitted together.
func (t *Ticket[T]) chosen(held []holding[T], l *line[T]) (n int64) {
	for i := range held {
		if held[i].line == l && !t.isHold(i) {
			n += t.Takes[i].N
		}
	}
	return n
}

// firstFull is the first line without room of those of a key of a pool; nil if all have room.
func (g *Gate[T]) firstFull(t *Ticket[T], i int, key string, held []holding[T], full func(l *line[T], n int64) bool) *line[T] {
	for k := i; k < len(t.Takes); k++ {
		if !t.together(i, k) {
			continue
		}
		if l := g.lineOf(lineKey{t.Takes[k].Limit, key}); full(l, t.Takes[k].N+t.chosen(held, l)) {
			return l
		}
	}
	return nil
}

// known calls f with each line of which the ticket may take something, as far as there are any.
func (g *Gate[T]) known(t *Ticket[T], f func(*line[T])) {
	for i := range t.Takes {
		p := &t.Takes[i]
		if len(p.Any) == 0 {
			g.ifKnown(lineKey{p.Limit, p.Key}, f)
			continue
		}
		for _, key := range p.Any {
			g.ifKnown(lineKey{p.Limit, key}, f)
		}
	}
}

func (g *Gate[T]) ifKnown(at lineKey, f func(*line[T])) {
	if l := g.lines[at]; l != nil {
		f(l)
	}
}

// KeyOf returns whose limit of that name an admitted ticket has taken; false if it has taken nothing of it.
func (t *Ticket[T]) KeyOf(name string) (key string, ok bool) {
	for i := range t.held {
		if t.Takes[i].Limit == name {
			return t.held[i].line.at.key, true
		}
	}
	return "", false
}
