package admission

import (
	"maps"

	"github.com/tasq-dev/tasq/limit"
)

// limited is a limit with the lines of its keys.
type limited[T any] struct {
	def      *limit.Limit
	own      map[string]*limit.Limit // by key: definitions that replace def for one key
	lines    map[string]*line[T]     // by key
	forgetAt int                     // the number of lines at which idle ones are dropped next
}

// of returns the definition that applies to a key.
func (d *limited[T]) of(key string) *limit.Limit {
	if own := d.own[key]; own != nil {
		return own
	}
	return d.def
}

// Limit returns the limit of that name.
func (g *Gate[T]) Limit(name string) (limit.Limit, bool) {
	l := g.limits[name]
	if l == nil {
		return limit.Limit{}, false
	}
	return *l.def, true
}

// LimitOf returns the definition of a limit that applies to a key.
func (g *Gate[T]) LimitOf(name, key string) (limit.Limit, bool) {
	l := g.limits[name]
	if l == nil {
		return limit.Limit{}, false
	}
	return *l.of(key), true
}

// Change replaces the definition of a limit, and all definitions of single keys of it. What is acquired stays counted:
// after a change from 5 slots to 3, two of five running jobs have to end before anything else starts. It reports false
// if there is no limit of that name, or nothing changes.
func (g *Gate[T]) Change(to limit.Limit, keys map[string]limit.Limit) bool {
	d := g.limits[to.Name]
	if d == nil || *d.def == to && maps.EqualFunc(d.own, keys, func(a *limit.Limit, b limit.Limit) bool { return *a == b }) {
		return false
	}
	before := make(map[*line[T]]int64)
	for _, l := range d.lines {
		before[l] = l.def.N
	}
	*d.def = to
	d.own = make(map[string]*limit.Limit, len(keys))
	for key, l := range keys {
		d.own[key] = &l
	}
	now := g.now()
	for l, n := range before {
		l.def = d.of(l.key)
		if l.disarm(); l.share != nil { // the wait was computed from the old definition
			g.redefined(l, n)
		}
		g.endReservations(l, now)
		g.advance(l, now)
	}
	return true
}
