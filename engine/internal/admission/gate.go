// Package admission decides which due jobs may begin, where limits bound them: how many at a time, how often, by which key. A job
// that has to wait does so in the line of a limit, as a value; it holds no worker and no goroutine.
//
//	Enter ──▶ all limits have room ──▶ taken ──▶ Begin, Release, or Undo
//	  ▲            │
//	  │            └─▶ line of the first limit without room, in the order of the queue
//	  └── Ready ◀── a release, a timer, a change of the limit
//
// What a limit decides is a function of package limit; this package has lines and timers.
package admission

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Ticket is a job that needs limits. It belongs to one gate.
type Ticket[T any] struct {
	Job   workitem.JobID
	Takes []workitem.Take
	Err   error  // why the job fails instead of doing its work; it takes nothing then
	Value T      // what the gate hands out when the limits have room
	Step  string // the step of the job for which it is; "" if only the function of the job takes something
	Own   int    // how many of the takes are those of the function; the others are those of the step

	// Holds are those of the takes with the same indexes, the first ones: the case keeps what it takes so, and not the attempt.
	Holds []ration.Hold

	held   []holding[T] // by take; nil while nothing is taken
	places []place[T]   // where it waits; nil if it does not
}

// Again returns a ticket of the same job that holds nothing.
func (t *Ticket[T]) Again() *Ticket[T] {
	if t == nil {
		return nil
	}
	return &Ticket[T]{Job: t.Job, Takes: t.Takes, Err: t.Err, Step: t.Step, Own: t.Own, Holds: t.Holds}
}

// grant is what a ticket holds of one limit. What engines share has to be used until the end.
type grant struct {
	limit.Grant
	end  int64
	owes bool // more was used than was taken
}

// holding is a grant, and the line of which it was taken: it is given back to that.
type holding[T any] struct {
	grant
	line *line[T]
}

// Options are what a gate works with. All fields are needed.
type Options[T any] struct {
	Lock   sync.Locker // held by the caller of each method
	Clock  retry.Clock
	Before func(a, b *T) bool // the order in which jobs are admitted
	Ready  func(T)            // called with the lock: the job may enter again
	Wake   func()             // called without the lock when time has made jobs ready
	Limits []limit.Limit      // each with a name of its own

	// Shared reports whether a limit is one that the store grants; nil if none is. Ask is called with the lock when there are Orders.
	Shared func(limit.Limit) bool
	Ask    func()

	// Again is how often the store is asked for slots that cases hold, as other engines can end their holds; limit.Unknown if there are none.
	Again time.Duration
	// Check is called with the lock when a hold has to wait for others: those that have ended meanwhile are to be given to End. Nil if
	// there are no holds.
	Check func(limit, key string, holds []ration.Hold)
}

// Gate admits jobs. It is not safe for concurrent use: its owner has a lock.
type Gate[T any] struct {
	o       Options[T]
	start   time.Time
	limits  map[string]*limit.Limit
	keys    map[string]map[string]*limit.Limit // the keys of a limit that have numbers of their own
	lines   map[lineKey]*line[T]
	keep    int // how many lines there may be before idle ones are looked for
	parked  map[workitem.JobID][]*Ticket[T]
	toOrder map[*line[T]]struct{} // their orders are to be made
	turn    int                   // which key of a pool is asked first
	holds   map[holdKey]hold      // that cases are known to have
	stopped bool
}

type lineKey struct{ limit, key string }

// New makes a gate for limits.
func New[T any](o Options[T]) *Gate[T] {
	g := &Gate[T]{o: o, start: o.Clock.Now(), limits: make(map[string]*limit.Limit, len(o.Limits)),
		keys: make(map[string]map[string]*limit.Limit), keep: leastLines,
		lines: make(map[lineKey]*line[T]), parked: make(map[workitem.JobID][]*Ticket[T]), toOrder: make(map[*line[T]]struct{}),
		holds: make(map[holdKey]hold)}
	for i := range o.Limits {
		l := o.Limits[i]
		g.limits[l.Name] = &l
	}
	return g
}

// epoch keeps times positive where a clock is set back to before the start.
const epoch = 1 << 60

// now is the time by the monotonic clock, so that a step of the machine's clock admits nothing twice.
func (g *Gate[T]) now() int64 { return epoch + int64(g.o.Clock.Now().Sub(g.start)) }

// Enter takes all that a job needs, or has it wait: it is given to Ready when there is room.
func (g *Gate[T]) Enter(t *Ticket[T]) bool {
	now := g.now()
	held, wait := g.choose(t, func(l *line[T], n int64) bool { return l.ahead(g, t) || l.wait(now, n) > 0 })
	if wait != nil {
		g.park(wait, t, now)
		return false
	}
	g.take(t, held, now)
	return true
}

// Try takes all that a job needs, or nothing.
func (g *Gate[T]) Try(t *Ticket[T]) bool {
	now := g.now()
	held, wait := g.choose(t, func(l *line[T], n int64) bool { return len(l.list) > 0 || l.wait(now, n) > 0 })
	if wait != nil {
		return false
	}
	g.take(t, held, now)
	return true
}

// take has a ticket take of the lines that were chosen.
func (g *Gate[T]) take(t *Ticket[T], held []holding[T], now int64) {
	for i := range held {
		h := &held[i]
		h.line.held++
		if !t.isHold(i) {
			h.grant = h.line.take(now, t.Takes[i].N)
		}
	}
	t.held = held
}

// Held reports whether the ticket has what it needs.
func (t *Ticket[T]) Held() bool { return t.held != nil }

// Begin notes that the work of an admitted job begins now, which may be later than it was admitted: rates count it now. It reports false
// if that is too late for what a store has granted: then the job has to be admitted again.
func (g *Gate[T]) Begin(t *Ticket[T]) bool {
	if t.held == nil {
		return true
	}
	now := g.now()
	for i := range t.held {
		l := t.held[i].line
		if l.share != nil && l.def.Algorithm != limit.Slots && now > t.held[i].end {
			return false
		}
	}
	for i := range t.held {
		l := t.held[i].line
		if t.isHold(i) || l.share != nil || l.def.Algorithm != limit.SlidingWindow {
			continue
		}
		l.def.Commit(&l.state, &t.held[i].Grant, now, 0)
		t.held[i].Grant = l.def.Take(&l.state, now, t.Takes[i].N)
	}
	return true
}

// Release gives back what the job holds. A failure is for breakers.
func (g *Gate[T]) Release(t *Ticket[T], failed bool) {
	g.end(t, false, func(l *line[T], grant limit.Grant, now int64) { l.def.Give(&l.state, grant, now, failed) })
}

// Undo gives back what the job took, also of rates: nothing was done with it.
func (g *Gate[T]) Undo(t *Ticket[T]) {
	g.end(t, true, func(l *line[T], grant limit.Grant, now int64) { l.def.Undo(&l.state, grant, now) })
}

func (g *Gate[T]) end(t *Ticket[T], unused bool, give func(*line[T], limit.Grant, int64)) {
	if t.held == nil {
		return
	}
	held, now := t.held, g.now()
	t.held = nil
	g.forget(t)
	for i := range held {
		l := held[i].line
		l.held--
		if t.isHold(i) {
			continue
		}
		if l.share == nil {
			give(l, held[i].Grant, now)
		} else if l.share.give(l.def.Algorithm == limit.Slots, held[i].grant, now, unused); l.share.dirty || len(l.share.fixes) > 0 {
			g.ask(l)
		}
		g.advance(l, now)
	}
}

// Pass lets the others go on in the lines of a ticket that was ready and does not enter yet. A nil ticket is in none.
func (g *Gate[T]) Pass(t *Ticket[T]) {
	if t == nil || g.stopped {
		return
	}
	now := g.now()
	g.known(t, func(l *line[T]) { g.advance(l, now) })
}

// Leave ends the waits of a job and of its steps: it was canceled, or is due again.
func (g *Gate[T]) Leave(job workitem.JobID) {
	for _, t := range slices.Clone(g.parked[job]) {
		g.Withdraw(t)
	}
}

// Withdraw has one ticket wait no longer.
func (g *Gate[T]) Withdraw(t *Ticket[T]) {
	if len(t.places) == 0 || g.stopped {
		return
	}
	places, now := t.places, g.now()
	g.remove(t)
	for i := range places {
		g.advance(places[i].line, now)
	}
}

// Split moves the takes from an index on out of a ticket that was admitted, with what it holds of them. It returns nil if there are
// none.
func (g *Gate[T]) Split(t *Ticket[T], from int) *Ticket[T] {
	if t == nil || t.held == nil || from >= len(t.Takes) {
		return nil
	}
	rest := &Ticket[T]{Job: t.Job, Step: t.Step, Takes: slices.Clone(t.Takes[from:]), Value: t.Value, held: slices.Clone(t.held[from:])}
	t.Takes, t.held = t.Takes[:from:from], t.held[:from:from]
	return rest
}

// Commit corrects what an admitted ticket took of a rate to what was used: what was not used is free again as far as it still counts, what
// was used beyond is a debt. False if it has nothing of a rate with that name.
func (g *Gate[T]) Commit(t *Ticket[T], name string, used int64) bool {
	for i := range t.held {
		if t.Takes[i].Limit != name {
			continue
		}
		l, now := t.held[i].line, g.now()
		if l.def.Algorithm == limit.Slots || l.def.Algorithm == limit.CircuitBreaker {
			return false
		}
		if l.share != nil {
			if l.share.correct(&t.held[i].grant, used) {
				g.ask(l)
			}
			return true
		}
		l.def.Commit(&l.state, &t.held[i].Grant, now, used)
		g.advance(l, now)
		return true
	}
	return false
}

// Stop stops all timers, and drops the waiting tickets.
func (g *Gate[T]) Stop() {
	for _, l := range g.lines {
		l.disarm()
		l.list = nil
		if l.share != nil && l.share.stop != nil {
			l.share.stop()
		}
	}
	clear(g.parked)
	clear(g.toOrder)
	g.stopped = true
}

// Limit returns the limit of that name.
func (g *Gate[T]) Limit(name string) (limit.Limit, bool) {
	l := g.limits[name]
	if l == nil {
		return limit.Limit{}, false
	}
	return *l, true
}

// LimitOf returns the limit of that name as it is for a key.
func (g *Gate[T]) LimitOf(name, key string) (limit.Limit, bool) {
	l := g.definition(lineKey{name, key})
	if l == nil {
		return limit.Limit{}, false
	}
	return *l, true
}

// Change gives a limit new numbers, and those of single keys of it, instead of all that were given before. What is held and was admitted
// counts on. False if there is no limit of that name, or these are the numbers that it has.
func (g *Gate[T]) Change(to limit.Limit, keys map[string]limit.Limit) bool {
	def := g.limits[to.Name]
	if def == nil || *def == to && maps.EqualFunc(g.keys[to.Name], keys, func(a *limit.Limit, b limit.Limit) bool { return *a == b }) {
		return false
	}
	*def = to
	own := make(map[string]*limit.Limit, len(keys))
	for key, l := range keys {
		own[key] = &l
	}
	g.keys[to.Name] = own
	now := g.now()
	for at, l := range g.lines {
		if at.limit != to.Name {
			continue
		}
		l.def = g.definition(at)
		if l.disarm(); l.share != nil {
			l.share.next = 0
		}
		g.advance(l, now)
	}
	return true
}

// definition finds the numbers of one key of a limit; nil if there is no limit of that name.
func (g *Gate[T]) definition(at lineKey) *limit.Limit {
	if own := g.keys[at.limit][at.key]; own != nil {
		return own
	}
	return g.limits[at.limit]
}
