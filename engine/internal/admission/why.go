package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Wait says what a job waits for, of one limit.
type Wait struct {
	limit.Reason                   // Wait is 0 if the limit has room, and others go first
	Key          string            // whose limit it is; "" is the one that all share. Of a pool the one that has room first, "" if time alone gives none
	Any          []string          // the keys of the pool; nil if it is none
	Ahead        int               // how many who wait for the limit go first
	HeldBy       []workitem.CaseID // the cases that hold slots of it over several tasks, if a hold waits for them
}

// Why lists what a job waits for, or a step of it; nothing if it does not wait for a limit.
func (g *Gate[T]) Why(job workitem.JobID, step string) []Wait {
	for _, t := range g.parked[job] {
		if t.Step == step {
			return g.why(t)
		}
	}
	return nil
}

// EachWait calls f with what waits, in any order: the value of each ticket, its job and step, and what it waits for.
func (g *Gate[T]) EachWait(f func(value *T, t *Ticket[T], waits func() []Wait)) {
	for _, of := range g.parked {
		for _, t := range of {
			f(&t.Value, t, func() []Wait { return g.why(t) })
		}
	}
}

// why lists what a ticket waits for.
func (g *Gate[T]) why(t *Ticket[T]) (waits []Wait) {
	now, seen := g.now(), make([]bool, len(t.Takes))
	for i := range t.Takes {
		if seen[i] {
			continue
		}
		for k := i; k < len(t.Takes); k++ {
			seen[k] = seen[k] || t.together(i, k)
		}
		best := g.waitsFor(t, i, firstLine(&t.Takes[i]).key, now)
		for _, key := range t.Takes[i].Any {
			if other := g.waitsFor(t, i, key, now); later(best, other) {
				best = other
			}
		}
		waits = append(waits, best...)
	}
	return waits
}

// waitsFor lists what a take waits for, and those that belong to it, if they are taken of a key.
func (g *Gate[T]) waitsFor(t *Ticket[T], i int, key string, now int64) (waits []Wait) {
	for k := i; k < len(t.Takes); k++ {
		if !t.together(i, k) {
			continue
		}
		p := &t.Takes[k]
		l := g.lineOf(lineKey{p.Limit, key})
		w := Wait{Reason: limit.Reason{Limit: *l.def, N: p.N}, Key: key, Any: p.Any}
		if !t.isHold(k) {
			w.Wait = l.wait(now, p.N)
		} else if !g.has(l.at.limit, &t.Holds[k]) {
			w.Wait, w.HeldBy = limit.Unknown, l.heldBy()
		}
		if t.placeIn(l) != nil {
			w.Ahead = l.aheadOf(t)
		}
		if len(w.Any) > 0 && w.Wait == limit.Unknown {
			w.Key = ""
		}
		if w.Wait > 0 || w.Ahead > 0 {
			waits = append(waits, w)
		}
	}
	return waits
}

// later reports whether what is waited for of one key has room later than that of another one. A key that is paused is the last.
func later(a, b []Wait) bool {
	longest := func(waits []Wait) (paused int, wait time.Duration, ahead int) {
		for _, w := range waits {
			if w.Limit.N == 0 {
				paused = 1
			}
			wait, ahead = max(wait, w.Wait), max(ahead, w.Ahead)
		}
		return paused, wait, ahead
	}
	aPaused, aWait, aAhead := longest(a)
	bPaused, bWait, bAhead := longest(b)
	return cmp.Or(aPaused-bPaused, cmp.Compare(aWait, bWait), aAhead-bAhead) > 0
}

// Each calls f with what waits, in any order.
func (g *Gate[T]) Each(f func(*T)) {
	for _, of := range g.parked {
		f(&of[0].Value)
	}
}

func (l *line[T]) aheadOf(t *Ticket[T]) (n int) {
	for _, other := range l.list {
		if l.before(&other.t.Value, &t.Value) {
			n++
		}
	}
	return n
}

// Usage is what a limit is used for now, over all its keys.
type Usage struct {
	Limit   limit.Limit
	Keys    int           // that are remembered; 0 and 1 for a limit without keys
	Used    int64         // slots that are held, what was admitted and still counts, probes without a result
	Waiting int           // jobs that wait for it
	Next    time.Duration // how long until more of it is free, as far as time alone gives it; 0 is now, limit.Unknown never
}

// Usage returns the limits, by name, with what they are used for.
func (g *Gate[T]) Usage() []Usage {
	all := make(map[string]*Usage, len(g.limits))
	for name, def := range g.limits {
		u := &Usage{Limit: *def}
		if def.N == 0 {
			u.Next = limit.Unknown
		}
		all[name] = u
	}
	now := g.now()
	for at, l := range g.lines {
		u := all[at.limit]
		u.Keys++
		u.Used += l.used(now)
		for _, p := range l.list {
			if p.isFirst() {
				u.Waiting++
			}
		}
		least := int64(1)
		if len(l.list) > 0 {
			least = l.list[0].n
		}
		if alone := l.def.N == 0 && l.def != g.limits[at.limit]; !alone && (l.share == nil || len(l.list) > 0) { // a key that is paused says nothing of the others
			u.Next = max(u.Next, l.wait(now, least))
		}
	}
	var list []Usage
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// isFirst reports whether a place is the first of its ticket in a line of the limit: one that waits for any key of a pool waits once.
func (p *place[T]) isFirst() bool {
	for i := range p.t.places {
		if other := &p.t.places[i]; other.line.at.limit == p.line.at.limit {
			return other == p
		}
	}
	return false
}

// used is how much of the limit is taken: by all engines, if they share it.
func (l *line[T]) used(now int64) int64 {
	if l.share != nil {
		return l.share.taken
	}
	return l.def.Used(&l.state, now)
}
