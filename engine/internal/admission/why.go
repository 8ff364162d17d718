package admission

import (
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Wait says what a job waits for, of one limit.
type Wait struct {
	limit.Reason        // Wait is 0 if the limit has room, and others go first
	Key          string // whose limit it is; "" is the one that all share
	Ahead        int    // how many who wait for the limit go first
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

// why lists what a ticket waits for.
func (g *Gate[T]) why(t *Ticket[T]) (waits []Wait) {
	now := g.now()
	for i := range t.Parts {
		p := &t.Parts[i]
		l := g.lineOf(p)
		w := Wait{Reason: limit.Reason{Limit: *l.def, N: p.N, Wait: l.wait(now, p.N)}, Key: p.Key}
		if t.line == l {
			w.Ahead = l.aheadOf(t)
		}
		if w.Wait > 0 || w.Ahead > 0 {
			waits = append(waits, w)
		}
	}
	return waits
}

// Each calls f with what waits, in any order.
func (g *Gate[T]) Each(f func(*T)) {
	for _, of := range g.parked {
		f(&of[0].Value)
	}
}

func (l *line[T]) aheadOf(t *Ticket[T]) (n int) {
	for _, other := range l.list {
		if l.before(&other.Value, &t.Value) {
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
		u.Waiting += len(l.list)
		least := int64(1)
		if len(l.list) > 0 {
			least = l.amount(l.list[0])
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

// used is how much of the limit is taken: by all engines, if they share it.
func (l *line[T]) used(now int64) int64 {
	if l.share != nil {
		return l.share.taken
	}
	return l.def.Used(&l.state, now)
}
