package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/workitem"
)

// A job that could not start because the store failed stays with the scheduler. It is tried again after 50 ms at first,
// later every five seconds, for as long as the engine is open, and at once when the store works again. Its due time
// does not change, so it keeps its position in the order.

// retries has the entries that are tried again, by the number of faults that each has met. The entries of a level share
// one timer. The zero value is empty.
type retries [fault.Levels]retryLevel

// retryLevel is the entries of one timer. An entry that is added while the timer runs is tried a little early, together
// with the others.
type retryLevel struct {
	list  []entry
	timer *time.Timer
}

// add adds an entry that has met another fault. If its level has no timer yet, f is called with the level when its wait
// is over.
func (r *retries) add(n entry, over func(level int)) {
	// The last level has the longest wait, in which an entry stays.
	at := min(int(n.faults), fault.Levels-1)
	n.faults, n.durableClaim = uint8(min(at+1, fault.Levels-1)), true
	l := &r[at]
	l.list = append(l.list, n)
	if len(l.list) == 1 {
		l.timer = time.AfterFunc(fault.Wait(at), func() { over(at) })
	}
}

// take removes and returns the entries of a level.
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

// tryAgain keeps an entry that met a fault. The engine is not idle until the entry has started.
func (s *scheduler) tryAgain(n entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	n.ticket = n.ticket.Again() // the claim returns what the old ticket acquired
	s.retries.add(n, s.tryLevel)
	s.d.o.Active(1)
}

// tryLevel puts the entries of a level back into the calendar.
func (s *scheduler) tryLevel(level int) {
	s.mu.Lock()
	list := s.retries.take(level)
	for _, n := range list {
		s.waiting.putBack(n)
	}
	s.mu.Unlock()
	if len(list) > 0 {
		s.dispatch()
		s.d.o.Active(-len(list)) // dispatch counts the entries that it passes on again
	}
}

// tryAll does the same for all levels.
// It is called when the store works again, so that nothing waits for the rest of its time.
func (s *scheduler) tryAll() {
	for level := range s.retries {
		s.tryLevel(level)
	}
}

// stopRetries stops all retries. The lock is held.
func (s *scheduler) stopRetries() {
	for level := range s.retries {
		s.d.o.Active(-len(s.retries.take(level)))
	}
}

// IsTriedAgain reports whether a job met a fault when it was to start, and waits to be tried again.
func (d *Dispatcher) IsTriedAgain(job workitem.JobID) (found bool) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retries.each(func(n *entry) { found = found || n.job == job })
	return found
}

// runningOf returns how many jobs of a queue have workers.
func (s *scheduler) runningOf(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[queue]; q != nil {
		return q.running
	}
	return 0
}

// Backlog is due work of one kind that has not started; the fields are those of the engine's type of that name.
type Backlog struct {
	Queue        string // "" for the default queue, and for timers
	Timers       bool
	Due, Failing int
	Oldest       time.Time
}

// Overdue returns the due work that has not started: timers first, then the queues by name.
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
	s.retries.each(func(n *entry) { count(n, 1) })
	s.waiting.until(now, func(n *entry) { count(n, 0) }) // due, and not yet dispatched, for example after the clock was set
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
