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

// retries are the entries that are tried again by one timer: those that have met equally many faults. One that comes while the
// timer runs goes with the others, a little earlier than it had to.
type retries struct {
	list  []entry
	timer *time.Timer
}

// tryAgain takes back an entry that met a fault. Until it has begun, the engine is not at rest.
func (s *scheduler) tryAgain(n entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	level := min(int(n.faults), fault.Levels-1)
	n.ticket = n.ticket.Again() // what the old one took is given back by the claim
	n.faults, n.cautious = uint8(min(level+1, fault.Levels-1)), true
	r := &s.again[level]
	r.list = append(r.list, n)
	s.d.o.Active(1)
	if len(r.list) == 1 {
		r.timer = time.AfterFunc(fault.Wait(level), func() { s.tryLevel(level) })
	}
}

// tryLevel puts the entries that have met so many faults back to the others.
func (s *scheduler) tryLevel(level int) {
	s.mu.Lock()
	n := s.release(level)
	s.mu.Unlock()
	if n > 0 {
		s.turn()
		s.d.o.Active(-n) // the turn counts those that it has handed out
	}
}

// tryAll does so with all entries.
func (s *scheduler) tryAll() {
	for level := range s.again {
		s.tryLevel(level)
	}
}

// release makes the entries of a level wait for the next turn, and returns how many there are. The lock is held.
func (s *scheduler) release(level int) int {
	r := &s.again[level]
	n := len(r.list)
	if n == 0 || s.stopping {
		return 0
	}
	r.timer.Stop()
	for _, entry := range r.list {
		s.waiting.putBack(entry)
	}
	*r = retries{}
	return n
}

// stopRetries tries nothing again. The lock is held.
func (s *scheduler) stopRetries() {
	for level := range s.again {
		r := &s.again[level]
		if len(r.list) > 0 {
			r.timer.Stop()
			s.d.o.Active(-len(r.list))
		}
		*r = retries{}
	}
}

// IsTriedAgain reports whether a job met a fault as it was to begin.
func (d *Dispatcher) IsTriedAgain(job workitem.JobID) bool {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	for level := range s.again {
		for i := range s.again[level].list {
			if s.again[level].list[i].job == job {
				return true
			}
		}
	}
	return false
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
		for _, g := range q.lines {
			if g.mayBegin(now) {
				g.each(func(n *entry) {
					if !s.hours.isClosed(n, now) {
						count(n, 0)
					}
				})
			}
		}
	}
	for level := range s.again {
		list := s.again[level].list
		for i := range list {
			count(&list[i], 1)
		}
	}
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
