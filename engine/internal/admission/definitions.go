package admission

import (
	"maps"

	"github.com/tasq-dev/tasq/limit"
)

// Limit returns the limit of that name.
func (g *Gate[T]) Limit(name string) (limit.Limit, bool) {
	l := g.limits[name]
	if l == nil {
		return limit.Limit{}, false
	}
	return *l, true
}

// LimitOf returns the definition of a limit that applies to a key.
func (g *Gate[T]) LimitOf(name, key string) (limit.Limit, bool) {
	l := g.definition(lineKey{name, key})
	if l == nil {
		return limit.Limit{}, false
	}
	return *l, true
}

// Change replaces the definition of a limit, and all definitions of single keys of it. What is acquired stays counted:
// after a change from 5 slots to 3, two of five running jobs have to end before anything else starts. It reports false
// if there is no limit of that name, or nothing changes.
func (g *Gate[T]) Change(to limit.Limit, keys map[string]limit.Limit) bool {
	def := g.limits[to.Name]
	if def == nil || *def == to && maps.EqualFunc(g.keys[to.Name], keys, func(a *limit.Limit, b limit.Limit) bool { return *a == b }) {
		return false
	}
	before := make(map[*line[T]]int64)
	for at, l := range g.lines {
		if at.limit == to.Name {
			before[l] = l.def.N
		}
	}
	*def = to
	own := make(map[string]*limit.Limit, len(keys))
	for key, l := range keys {
		own[key] = &l
	}
	g.keys[to.Name] = own
	now := g.now()
	for l, n := range before {
		l.def = g.definition(l.at)
		if l.disarm(); l.share != nil { // the wait was computed from the old definition
			g.redefined(l, n)
		}
		g.endReservations(l, now)
		g.advance(l, now)
	}
	return true
}

// definition returns the definition that applies to a key of a limit; nil if there is no limit of that name.
func (g *Gate[T]) definition(at lineKey) *limit.Limit {
	if own := g.keys[at.limit][at.key]; own != nil {
		return own
	}
	return g.limits[at.limit]
}
