package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/workitem"
)

// What could not begin because the store failed stays with the scheduler, and is tried again: at first after 50 ms, at last every
// five seconds, for as long as the engine is open, and at once when the store works again. It stays due when it was due, so its
// place in the order is the same.

// retries are the entries that are tried again, by how many faults each has met: those of a level go together, by one timer. The zero
// value has none.
type retries [fault.Levels]retryLevel

// retryLevel is the entries of one timer. One that comes while the timer runs goes with the others, a little earlier than it had to.
type retryLevel struct {
	list  []entry
	timer *time.Timer
}

// add keeps an entry that met one more fault, and has a function called with its level when the time of that is over.
func (r *retries) add(n entry, over func(level int)) {
	at := min(int(n.faults), fault.Levels-1)
	n.faults, n.cautious = uint8(min(at+1, fault.Levels-1)), true
	l := &r[at]
	l.list = append(l.list, n)
	if len(l.list) == 1 {
		l.timer = time.AfterFunc(fault.Wait(at), func() { over(at) })
	}
}

// take returns the entries of a level, which has none from now on.
func (r *retries) take(level int) []entry {
	l := &r[level]
	if len(l.list) == 0 {
		return nil
	}
	l.timer.Stop()
	list := l.list
	*l = retryLevel{}
	return list
}

// each calls a function for all entries.
func (r *retries) each(f func(*entry)) {
	for level := range r {
		for i := range r[level].list {
			f(&r[level].list[i])
		}
	}
}

// tryAgain takes back an entry that met a fault. Until it has begun, the engine is not at rest.
func (s *scheduler) tryAgain(n entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	n.ticket = n.ticket.Again() // what the old one took is given back by the claim
	s.again.add(n, s.tryLevel)
	s.d.o.Active(1)
}

// tryLevel puts the entries that have met so many faults back to the others.
func (s *scheduler) tryLevel(level int) {
	s.mu.Lock()
	list := s.again.take(level)
	for _, n := range list {
		s.waiting.putBack(n)
	}
	s.mu.Unlock()
	if len(list) > 0 {
		s.turn()
		s.d.o.Active(-len(list)) // the turn counts those that it has handed out
	}
}

// tryAll does so with all entries.
func (s *scheduler) tryAll() {
	for level := range s.again {
		s.tryLevel(level)
	}
}

// stopRetries tries nothing again. The lock is held.
func (s *scheduler) stopRetries() {
	for level := range s.again {
		s.d.o.Active(-len(s.again.take(level)))
	}
}

// IsTriedAgain reports whether a job met a fault as it was to begin.
func (d *Dispatcher) IsTriedAgain(job workitem.JobID) (found bool) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again.each(func(n *entry) { found = found || n.job == job })
	return found
}

// runningOf is how many jobs of a queue are with workers.
func (s *scheduler) runningOf(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[queue]; q != nil {
		return q.running
	}
	return 0
}

// Backlog is work of one kind that is due and has not begun; the fields are those of the engine's type of that name.
type Backlog struct {
	Queue        string // "" for the default queue, and for timers
	Timers       bool
	Due, Failing int
	Oldest       time.Time
}

// Overdue lists what is due and has not begun: timers first, then the queues by name.
func (d *Dispatcher) Overdue() []Backlog { return d.sched.overdue(d.o.Now().UnixMicro()) }

func (s *scheduler) overdue(now int64) []Backlog {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[*jobQueue]*Backlog)
	count := func(n *entry, failing int) {
		b := found[n.queue]
		if b == nil {
			b = &Backlog{Timers: n.queue == nil}
			if n.queue != nil {
				b.Queue = n.queue.name
			}
			found[n.queue] = b
		}
		b.Due++
		b.Failing += failing
		if due := time.UnixMicro(n.due).UTC(); b.Oldest.IsZero() || due.Before(b.Oldest) {
			b.Oldest = due
		}
	}
	for _, q := range s.queues {
		for i := range q.ready {
			if s.hours.isClosed(&q.ready[i], now) {
				continue // it has not been looked at, since no worker is free
			}
			count(&q.ready[i], 0)
		}
		for _, g := range q.lines.all {
			if g.mayBegin(now) {
				g.each(func(n *entry) {
					if !s.hours.isClosed(n, now) {
						count(n, 0)
					}
				})
			}
		}
	}
	s.again.each(func(n *entry) { count(n, 1) })
	s.waiting.until(now, func(n *entry) { count(n, 0) }) // what the next turn will find, as after the clock was set
	var list []Backlog
	if b := found[nil]; b != nil {
		list = append(list, *b)
		delete(found, nil)
	}
	for _, b := range slices.SortedFunc(maps.Values(found), func(a, b *Backlog) int { return cmp.Compare(a.Queue, b.Queue) }) {
		list = append(list, *b)
	}
	return list
}
