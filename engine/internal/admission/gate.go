// Package admission applies limits to due jobs: it decides which of them may start. A job without room waits as a value
// in the line of a limit; it occupies no worker and no goroutine.
//
//	Enter ──▶ all limits have room ──▶ acquired ──▶ Begin ──▶ Release (or Undo, if the work did not start)
//	  ▲            │
//	  │            └─▶ line of the first limit without room, in the order of the queue
//	  └── Ready ◀── a release, a timer, a change of the limit
//
// A ticket acquires everything at once or nothing, so tickets cannot deadlock. A ready job has to Enter again, and may
// have to wait again; what a ticket that waits again and again is reserved is in reserve.go. The rules of each kind of
// limit are functions in package limit; this package has the lines and timers. Limits that several engines share are in
// shared.go, limits that cases hold in holds.go.
package admission

import (
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Ticket is the request of one attempt of a job, or of one of its steps, for everything that it needs of limits; or that
// of code outside of jobs. It belongs to one gate.
type Ticket[T any] struct {
	Job   workitem.JobID // for code outside of jobs, an id that no job has
	Takes []workitem.Take
	Err   error  // the job fails with this error instead of running; such a ticket has no takes
	Value T      // passed to Options.Ready when the limits have room
	Step  string // the step of the job that needs limits; "" if only the function of the job does
	Own   int    // the number of takes of the function; the takes after them are those of the step

	Outside bool // it is the request of code outside of jobs
	Once    bool // it waits for the answer of the store, and not for room; see mayAsk

	// Holds belong to the first takes, by index. What these takes acquire belongs to the case and outlives the attempt.
	Holds []quota.Hold

	held     []holding[T]     // by take; nil while nothing is acquired
	places   []place[T]       // in the lines in which it waits; nil if it does not wait
	waits    int              // how often it has begun to wait
	ready    bool             // it was made ready, and has not entered since
	passes   *line[T]         // the line in which it may enter before earlier tickets, whose jobs have no worker; nil for none
	reserves []reservation[T] // room that later tickets do not get, see reserve.go
}

// Again returns a ticket of the same job that holds nothing.
func (t *Ticket[T]) Again() *Ticket[T] {
	if t == nil {
		return nil
	}
	return &Ticket[T]{Job: t.Job, Takes: t.Takes, Err: t.Err, Value: t.Value, Step: t.Step, Own: t.Own, Outside: t.Outside, Once: t.Once,
		Holds: t.Holds, waits: t.waits}
}

// grant is what a ticket has acquired of one limit.
type grant struct {
	limit.Grant
	end      int64 // by which the work has to begin, if engines share the limit
	joins    int   // Gate.joins when the store granted it
	overused bool  // more was used than was acquired
}

// holding is a grant with the line that granted it, to which it is returned.
type holding[T any] struct {
	grant
	line *line[T]
}

// Options configure a gate. Fields are required unless their comment says otherwise.
type Options[T any] struct {
	Lock   sync.Locker // held by the caller of each method
	Clock  retry.Clock
	Before func(a, b *T) bool // the order in which jobs are admitted
	Ready  func(T)            // called with the lock: the job may enter again
	Wake   func()             // called without the lock when time has made jobs ready
	Free   func(*T) bool      // reports whether a job that is made ready can enter now: it has a worker; nil: always
	Limits []limit.Limit      // with distinct names

	// Shared reports whether the store grants a limit to all engines; nil if it grants none. Ask is called with the
	// lock when there are Orders.
	Shared func(limit.Limit) bool
	Ask    func()

	// Again is the interval at which the store is asked again for slots that cases hold, since another engine can end a
	// hold; limit.Unknown if there is no other engine.
	Again time.Duration
	// Check is called with the lock when a hold has to wait for the holds of other cases. It must not block: it
	// arranges that those which have ended are passed to End. Nil if there are no holds.
	Check func(limit, key string, holds []quota.Hold)
}

// Gate admits jobs. It is not safe for concurrent use: its owner has a lock.
type Gate[T any] struct {
	o       Options[T]
	start   time.Time
	limits  map[string]*limited[T]
	parked  map[workitem.JobID][]*Ticket[T]
	toOrder map[*line[T]]struct{} // lines that need an order to the store
	turn    int                   // rotates the first key of pools
	holds   map[holdKey]hold      // known holds of cases
	late    []*Ticket[T]          // those that were made ready and keep their reservations until Lapse
	idle    []*Ticket[T]          // those that were made ready and may have no worker, see noworker.go
	joins   int                   // how often this engine has joined its fleet anew, see Rejoined
	stopped bool
}

type lineKey struct{ limit, key string }

// New returns a gate for limits.
func New[T any](o Options[T]) *Gate[T] {
	g := &Gate[T]{o: o, start: o.Clock.Now(), limits: make(map[string]*limited[T], len(o.Limits)),
		parked: make(map[workitem.JobID][]*Ticket[T]), toOrder: make(map[*line[T]]struct{}), holds: make(map[holdKey]hold)}
	for i := range o.Limits {
		l := o.Limits[i]
		g.limits[l.Name] = &limited[T]{def: &l, lines: make(map[string]*line[T]), forgetAt: leastLines}
	}
	return g
}

// epoch is the time of the gate at its start. It keeps times positive if a clock without a monotonic reading is set
// back to before the start.
const epoch = 1 << 60

// now returns nanoseconds of the monotonic clock. If rates used wall time, a machine whose clock is set forward would
// admit a second time.
func (g *Gate[T]) now() int64 { return epoch + int64(g.o.Clock.Now().Sub(g.start)) }

// Enter acquires everything that a ticket needs. If there is no room, or an earlier ticket waits, it queues the ticket,
// and Ready is called when there may be room.
// An earlier ticket that waits is not overtaken, even if this one would fit: a ticket that needs much would otherwise
// wait as long as smaller ones come.
func (g *Gate[T]) Enter(t *Ticket[T]) bool {
	now, reserved, passes, ready := g.now(), g.unreserve(t), t.passes, t.ready
	t.ready, t.passes = false, nil
	held, wait := g.choose(t, func(l *line[T], n int64) bool {
		return l != passes && l.hasEarlier(g, t) || l.wait(now, n+l.reservedBefore(t)) > 0
	})
	if wait != nil {
		if t.Once && !g.mayAsk(wait, now) {
			return false
		}
		t.waits++
		g.reserve(t, held)
		g.park(wait, t, now)
		return false
	}
	g.take(t, held, now)
	for i := range reserved {
		g.advance(reserved[i].line, now)
	}
	if ready {
		g.advanceOthers(t, now)
	}
	return true
}

// Try acquires everything that a ticket needs, or nothing. Unlike Enter it does not queue the ticket, and so must not
// overtake any that wait.
func (g *Gate[T]) Try(t *Ticket[T]) bool {
	now := g.now()
	held, wait := g.choose(t, func(l *line[T], n int64) bool { return l.queue.busy() || l.wait(now, n) > 0 })
	if wait != nil {
		return false
	}
	g.take(t, held, now)
	return true
}

// take acquires the takes of a ticket from the chosen lines. Those of holds are only counted here: begin acquired them
// for the case.
func (g *Gate[T]) take(t *Ticket[T], held []holding[T], now int64) {
	for i := range held {
		h := &held[i]
		h.line.held++
		if t.isHold(i) {
			continue
		}
		h.grant = h.line.take(now, t.Takes[i].N)
		if t.Outside && h.line.def.Algorithm == limit.Slots {
			h.line.outside += h.grant.N
		}
	}
	t.held = held
}

// Waits reports whether the ticket waits in a line.
func (t *Ticket[T]) Waits() bool { return len(t.places) > 0 }

// Held reports whether the ticket has acquired what it needs.
func (t *Ticket[T]) Held() bool { return t.held != nil }

// Begin records that the work of an admitted job begins now, which may be later than Enter. A sliding window counts it
// from now on: if it counted from Enter, a slow start could put more than N starts into one window. Begin reports false
// if a grant of the store has expired meanwhile; the job then has to Enter again.
func (g *Gate[T]) Begin(t *Ticket[T]) bool {
	if t.held == nil {
		return true
	}
	now := g.now()
	for i := range t.held {
		l := t.held[i].line
		if l.share != nil && !t.isHold(i) && g.hasExpired(l, &t.held[i].grant, now) {
			return false
		}
	}
	for i := range t.held {
		l := t.held[i].line
		if t.isHold(i) || l.share != nil || l.def.Algorithm != limit.SlidingWindow {
			continue
		}
		l.def.Commit(l.state, &t.held[i].Grant, now, 0)
		t.held[i].Grant = l.def.Take(l.state, now, t.Takes[i].N)
	}
	return true
}

// Release returns slots after the work, and reports its outcome to circuit breakers. What was acquired of a rate stays
// used.
func (g *Gate[T]) Release(t *Ticket[T], failed bool) {
	g.end(t, false, func(l *line[T], grant limit.Grant, now int64) { l.def.Give(l.state, grant, now, failed) })
}

// Undo returns everything that a ticket acquired, also of rates, because its work did not start.
func (g *Gate[T]) Undo(t *Ticket[T]) {
	g.end(t, true, func(l *line[T], grant limit.Grant, now int64) { l.def.Undo(l.state, grant, now) })
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
		if t.Outside && l.def.Algorithm == limit.Slots {
			l.outside -= held[i].N
		}
		if l.share == nil {
			give(l, held[i].Grant, now)
		} else if l.share.give(l.def.Algorithm == limit.Slots, held[i].grant, now, unused); l.share.returns() {
			g.orderNow(l)
		}
		g.advance(l, now)
	}
}

// Pass advances the lines of a ticket that was made ready and does not enter, because its queue is paused or its hours
// are over. Without it the tickets behind it would wait although there is room. A nil ticket has no lines.
func (g *Gate[T]) Pass(t *Ticket[T]) {
	if t == nil || g.stopped {
		return
	}
	now := g.now()
	t.ready, t.passes = false, nil
	g.unreserve(t)
	g.eachLine(t, func(l *line[T]) { g.advance(l, now) })
}

// Leave withdraws the tickets of a job and of its steps, because it was canceled or is due again.
func (g *Gate[T]) Leave(job workitem.JobID) {
	for _, t := range slices.Clone(g.parked[job]) {
		g.Withdraw(t)
	}
}

// Withdraw removes a ticket from all lines.
func (g *Gate[T]) Withdraw(t *Ticket[T]) {
	if len(t.places)+len(t.reserves) == 0 || g.stopped {
		return
	}
	places, reserved, now := t.places, g.unreserve(t), g.now()
	g.remove(t)
	for i := range places {
		g.advance(places[i].line, now)
	}
	for i := range reserved {
		g.advance(reserved[i].line, now)
	}
}

// Split moves the takes from an index on, with their grants, from an admitted ticket to a new one: those of a step are
// released when the step ends, and not with the attempt. It returns nil if there are none.
func (g *Gate[T]) Split(t *Ticket[T], from int) *Ticket[T] {
	if t == nil || t.held == nil || from >= len(t.Takes) {
		return nil
	}
	// The takes are cloned, and those of the ticket are cut with their capacity, so that neither can append over the
	// other.
	rest := &Ticket[T]{Job: t.Job, Step: t.Step, Takes: slices.Clone(t.Takes[from:]), Value: t.Value, held: slices.Clone(t.held[from:])}
	t.Takes, t.held = t.Takes[:from:from], t.held[:from:from]
	return rest
}

// Commit replaces the estimated amount that a ticket acquired of a rate by the amount used, as tokens of a model after
// its answer. A surplus is free again if it still counts; an excess is a debt that delays later tickets. It reports
// false if the ticket has acquired nothing of a rate with that name.
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
				g.orderNow(l)
			}
			return true
		}
		l.def.Commit(l.state, &t.held[i].Grant, now, used)
		g.advance(l, now)
		return true
	}
	return false
}

// Stop stops all timers and drops the waiting tickets.
func (g *Gate[T]) Stop() {
	for l := range g.eachLineOfAll() {
		l.disarm()
		if l.queue != nil {
			l.queue.list = nil
		}
		if l.share != nil {
			l.share.portion.stopTimer()
		}
	}
	// The tickets keep their places in lines that are gone: Withdraw does nothing once the gate has stopped.
	clear(g.parked)
	clear(g.toOrder)
	g.late, g.idle = nil, nil
	g.stopped = true
}
