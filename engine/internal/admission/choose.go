package admission

import (
	"slices"
)

// A part of a pool is taken of one of its keys, the one that admits it first. What belongs together is taken of the same key: the parts
// of the function that have the same keys, and those of its step. A ticket that no key admits waits in a line of each of them, and the
// first that has room lets it go on.

// Equal reports whether two parts ask for the same.
func (p Part) Equal(other Part) bool {
	return p.Limit == other.Limit && p.Key == other.Key && p.N == other.N && slices.Equal(p.Any, other.Any)
}

// EqualParts reports whether two tickets ask for the same.
func EqualParts(a, b []Part) bool { return slices.EqualFunc(a, b, Part.Equal) }

// of reports whether a part may be taken of a line.
func (p *Part) of(at lineKey) bool {
	return p.Limit == at.limit && (p.Any == nil && p.Key == at.key || slices.Contains(p.Any, at.key))
}

// beside is the line of a part if the ticket takes of another line: of the same key, if it is of a pool with that.
func (p *Part) beside(at lineKey) lineKey {
	if slices.Contains(p.Any, at.key) {
		return lineKey{p.Limit, at.key}
	}
	return p.first()
}

// first is the line of a part, or of the first key of its pool.
func (p *Part) first() lineKey {
	if p.Any == nil {
		return lineKey{p.Limit, p.Key}
	}
	return lineKey{p.Limit, p.Any[0]}
}

// together reports whether two parts of a ticket are taken of the same key.
func (t *Ticket[T]) together(i, k int) bool {
	return i == k || t.Parts[i].Any != nil && (i < t.Own) == (k < t.Own) && slices.Equal(t.Parts[i].Any, t.Parts[k].Any)
}

// choose finds the lines of which a ticket can take all that it needs, by part. If there is no room, it returns the lines in which the
// ticket is to wait. full says that a line has no room for so much.
func (g *Gate[T]) choose(t *Ticket[T], full func(l *line[T], n int64) bool) (held []holding[T], wait []*line[T]) {
	held = make([]holding[T], len(t.Parts))
	for i := range t.Parts {
		if held[i].line != nil {
			continue // it belongs to one before
		}
		if wait = g.chooseKey(t, i, held, full); wait != nil {
			return nil, wait
		}
	}
	return held, nil
}

// chooseKey finds the key of which a part is taken, with those that belong to it. Keys that have room take turns.
func (g *Gate[T]) chooseKey(t *Ticket[T], i int, held []holding[T], full func(l *line[T], n int64) bool) (wait []*line[T]) {
	keys := t.Parts[i].Any
	if keys == nil {
		l := g.lineOf(lineKey{t.Parts[i].Limit, t.Parts[i].Key})
		if full(l, t.Parts[i].N) {
			return []*line[T]{l}
		}
		held[i].line = l
		return nil
	}
	for n := range keys {
		key := keys[(g.turn+n)%len(keys)]
		if l := g.firstFull(t, i, key, full); l != nil {
			wait = append(wait, l)
			continue
		}
		for k := i; k < len(t.Parts); k++ {
			if t.together(i, k) {
				held[k].line = g.lineOf(lineKey{t.Parts[k].Limit, key})
			}
		}
		g.turn++
		return nil
	}
	return wait
}

// firstFull is the first line without room of those of a key of a pool; nil if all have room.
func (g *Gate[T]) firstFull(t *Ticket[T], i int, key string, full func(l *line[T], n int64) bool) *line[T] {
	for k := i; k < len(t.Parts); k++ {
		if !t.together(i, k) {
			continue
		}
		if l := g.lineOf(lineKey{t.Parts[k].Limit, key}); full(l, t.Parts[k].N) {
			return l
		}
	}
	return nil
}

// known calls f with each line of which the ticket may take something, as far as there are any.
func (g *Gate[T]) known(t *Ticket[T], f func(*line[T])) {
	for i := range t.Parts {
		p := &t.Parts[i]
		if p.Any == nil {
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
		if t.Parts[i].Limit == name {
			return t.held[i].line.at.key, true
		}
	}
	return "", false
}
