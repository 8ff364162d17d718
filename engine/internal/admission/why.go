package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Wait describes the wait of a job for one limit.
type Wait struct {
	limit.Reason                   // Wait is 0 if the limit has room, but earlier jobs wait for it
	Key          string            // "" for a limit without keys; for a pool the key that has room first, "" if that cannot be predicted
	Any          []string          // the keys of the pool; nil if it is none
	Ahead        int               // the number of earlier jobs that wait for the limit
	HeldBy       []workitem.CaseID // the cases that hold slots of it over several tasks, if they block a hold
	HeldOutside  int64             // the slots that code outside of jobs holds here
	AheadOutside int               // how many of Ahead are code outside of jobs
}

// Why returns what a job or a step of it waits for; nothing if it does not wait for a limit.
func (g *Gate[T]) Why(job workitem.JobID, step string) []Wait {
	for _, t := range g.parked[job] {
		if t.Step == step {
			return g.why(t)
		}
	}
	return nil
}

// Reasons returns what a ticket that does not wait would wait for now, ignoring the tickets that wait.
func (g *Gate[T]) Reasons(t *Ticket[T]) []Wait { return g.why(t) }

// EachWait calls f with each waiting ticket, in any order. A call of waits computes what the ticket waits for.
func (g *Gate[T]) EachWait(f func(value *T, t *Ticket[T], waits func() []Wait)) {
	for _, of := range g.parked {
		for _, t := range of {
			f(&t.Value, t, func() []Wait { return g.why(t) })
		}
	}
}

// why returns what a ticket waits for; for the takes of a pool, those of the key that is expected to have room first.
// The takes of a group are granted by one key, so the waits are computed for each key as a whole, and those of the
// best key are returned. With a pool of the keys a and b, and two takes of it:
//
//	key a    30 s for calls    5 s for tokens    ends after 30 s
//	key b    10 s for calls    20 s for tokens   ends after 20 s: returned
func (g *Gate[T]) why(t *Ticket[T]) (waits []Wait) {
	now, seen := g.now(), make([]bool, len(t.Takes))
	for i := range t.Takes {
		if seen[i] {
			continue
		}
		for k := i; k < len(t.Takes); k++ {
			seen[k] = seen[k] || t.sameGroup(i, k)
		}
		best := g.waitsFor(t, i, firstLine(&t.Takes[i]).key, now)
		for _, key := range t.Takes[i].Any {
			if other := g.waitsFor(t, i, key, now); later(best, other) {
				best = other
			}
		}
		waits = append(waits, best...)
	}
	// The store is asked for a shared limit once the others have room, so until then it may have room itself.
	asked := slices.DeleteFunc(slices.Clone(waits), func(w Wait) bool { return g.isUnasked(t, &w) })
	if len(asked) > 0 {
		return asked
	}
	return waits
}

// isUnasked reports whether a wait is for a shared limit of which nothing is known, as the store was not asked.
func (g *Gate[T]) isUnasked(t *Ticket[T], w *Wait) bool {
	if w.Wait != limit.Unknown || w.Limit.N == 0 || len(w.Any) > 0 || len(w.HeldBy) > 0 {
		return false
	}
	l := g.lineOf(lineKey{w.Limit.Name, w.Key})
	return l.share != nil && l.share.idle() && t.placeIn(l) == nil
}

// waitsFor returns what the group of take i waits for if key is to grant it.
func (g *Gate[T]) waitsFor(t *Ticket[T], i int, key string, now int64) (waits []Wait) {
	for k := i; k < len(t.Takes); k++ {
		if !t.sameGroup(i, k) {
			continue
		}
		p := &t.Takes[k]
		l := g.lineOf(lineKey{p.Limit, key})
		// The line is created if it does not exist, as a new one has the state of a key that was not used.
		w := Wait{Reason: limit.Reason{Limit: *l.def, N: p.N}, Key: key, Any: p.Any, HeldOutside: l.outside}
		if !t.isHold(k) {
			w.Wait = l.wait(now, p.N)
			// A hold that the case has already needs no room.
		} else if !g.hasHold(l.def.Name, &t.Holds[k]) {
			w.Wait, w.HeldBy = limit.Unknown, l.heldBy()
		}
		if t.placeIn(l) != nil {
			w.Ahead, w.AheadOutside = l.aheadOf(t)
		}
		// If time alone gives no key room, it cannot be said which one will have it first.
		if len(w.Any) > 0 && w.Wait == limit.Unknown {
			w.Key = ""
		}
		if w.Wait > 0 || w.Ahead > 0 {
			waits = append(waits, w)
		}
	}
	return waits
}

// later reports whether the waits a, of one key, are expected to end after the waits b of another. A paused key comes
// last.
// A key without a wait comes first. Between equal times, the shorter line decides.
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

// Each calls f once for each job with waiting tickets, in any order.
func (g *Gate[T]) Each(f func(*T)) {
	for _, of := range g.parked {
		f(&of[0].Value)
	}
}

// aheadOf counts the tickets that go before t: they wait in the line, or it has reserved room for them. The list is a heap, so it takes a pass over all.
// outside counts those of code outside of jobs.
func (l *line[T]) aheadOf(t *Ticket[T]) (n, outside int) {
	count := func(other *Ticket[T]) {
		if other == t || !l.queue.before(&other.Value, &t.Value) {
			return
		}
		if n++; other.Outside {
			outside++
		}
	}
	for _, other := range l.queue.all() {
		count(other.t)
	}
	for _, other := range l.queue.late() {
		if other.placeIn(l) == nil {
			count(other)
		}
	}
	return n, outside
}

// Usage is the usage of a limit over all its keys.
type Usage struct {
	Limit   limit.Limit
	Keys    int           // keys with a line; 0 or 1 for a limit without keys
	Used    int64         // held slots, starts that still count for a rate, or probes of a breaker without a result
	Waiting int           // tickets that wait for it
	Next    time.Duration // until more of it is free: 0 is now, limit.Unknown if time alone frees nothing

	HeldOutside    int64 // the slots that code outside of jobs holds
	WaitingOutside int   // how many of Waiting are code outside of jobs
}

// Usage returns the usage of all limits, by name.
func (g *Gate[T]) Usage() []Usage {
	var list []Usage
	now := g.now()
	for _, name := range slices.Sorted(maps.Keys(g.limits)) {
		list = append(list, g.limits[name].usage(now))
	}
	return list
}

func (d *limited[T]) usage(now int64) Usage {
	u := Usage{Limit: *d.def, Keys: len(d.lines)}
	// A limit that is paused may have no line yet, so it is not left to the lines.
	if d.def.N == 0 {
		u.Next = limit.Unknown
	}
	for _, l := range d.lines {
		u.Used += l.used(now)
		u.HeldOutside += l.outside
		for _, p := range l.queue.all() {
			if !p.isFirst() {
				continue
			}
			if u.Waiting++; p.t.Outside {
				u.WaitingOutside++
			}
		}
		first, least := l.queue.first(), int64(1)
		if first != nil {
			least = first.n
		}
		if alone := l.def.N == 0 && l.def != d.def; !alone && (l.share == nil || first != nil) { // a single paused key does not count
			u.Next = max(u.Next, l.wait(now, least))
		}
	}
	return u
}

// isFirst reports whether a place is the first of its ticket in the lines of the limit. A ticket that waits for any key
// of a pool counts once.
func (p *place[T]) isFirst() bool {
	for i := range p.t.places {
		if other := &p.t.places[i]; other.line.def.Name == p.line.def.Name {
			return other == p
		}
	}
	return false
}

// used returns how much of the line's limit is acquired, by all engines if they share it.
// With a shared limit that is the number of the last answer of the store, which may be older than what this engine
// has used since.
func (l *line[T]) used(now int64) int64 {
	if l.share != nil {
		return l.share.taken
	}
	return l.def.Used(l.state, now)
}
