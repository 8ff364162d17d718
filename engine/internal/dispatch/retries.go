package dispatch

import (
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
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
