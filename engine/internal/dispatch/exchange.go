package dispatch

import (
	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
)

// Limits that engines share are rows of the store. One goroutine sends the orders of all lines to the store; it runs
// only while there are orders.

// maxOrders is the maximum number of rows in one transaction.
const maxOrders = 500

// exchange is the state of the goroutine that sends orders.
type exchange struct {
	rows       sharedRows
	inProgress bool
}

// isShared reports whether the store grants a limit. An engine that is alone counts slots itself, except for limits
// that cases hold.
func (s *scheduler) isShared(l limit.Limit) bool {
	return s.held[l.Name] || l.InStore && (s.d.o.Fleet || l.Algorithm != limit.Slots)
}

// ask starts the goroutine if it does not run. The lock is held. The engine is not idle until it has ended.
func (s *scheduler) ask() {
	if s.shared.inProgress || s.stopping {
		return
	}
	s.shared.inProgress = true
	s.d.o.Active(1)
	go s.exchange()
}

// exchange sends orders until there are none left. Orders that are made while the store answers are sent with the next
// transaction, all together: the busier the limits are, the more orders share one.
func (s *scheduler) exchange() {
	defer s.d.o.Active(-1)
	failed := 0
	for {
		s.mu.Lock()
		orders := s.limits.Orders(maxOrders)
		if len(orders) == 0 {
			s.shared.inProgress = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		answers, err := s.d.answer(orders)
		s.mu.Lock()
		for i := range orders {
			s.limits.Settle(orders[i], answers[i], err)
		}
		s.mu.Unlock()
		s.dispatch()
		if err == nil {
			failed = 0
			continue
		}
		s.d.o.Faults.Note("limits", err, "a limit that engines share could not be asked for; it is tried again")
		if !s.d.o.Retrier.Pause(s.d.o.Context, failed) { // false if the engine closes
			s.mu.Lock()
			s.shared.inProgress = false
			s.mu.Unlock()
			return
		}
		failed++
	}
}

// answer executes orders, by index. An engine that is alone does so in a request to its writer, since a second
// transaction would have to wait for that of the writer.
func (d *Dispatcher) answer(orders []admission.Order[entry]) (answers []quota.Answer, err error) {
	if d.o.Fleet {
		return d.sched.shared.rows.decide(d.o.Context, orders)
	}
	done := make(chan struct{})
	sent := d.o.Writer.Send(&commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }, Ended: func(error) {
		answers, err = d.sched.shared.rows.decide(d.o.Context, orders)
		close(done)
	}})
	if !sent {
		return make([]quota.Answer, len(orders)), d.o.Retrier.Closed()
	}
	<-done
	return answers, err
}
