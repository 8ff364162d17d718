package dispatch

import (
	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
)

// Limits that engines share are rows of the store. What lines lack and have too much of is exchanged with it by one goroutine, which
// is there while there is something to exchange.

// maxOrders is how many rows one exchange concerns at most.
const maxOrders = 500

// exchange is what an engine has to do with the limits that it shares.
type exchange struct {
	rows     sharedRows
	underWay bool
}

// isShared reports whether the store grants a limit. The only engine of a store counts slots itself, as no other has any, but for those that cases
// hold.
func (s *scheduler) isShared(l limit.Limit) bool {
	return s.held[l.Name] || l.InStore && (s.d.o.Fleet || l.Algorithm != limit.Slots)
}

// ask begins an exchange, if none is under way. The lock is held. The engine is not at rest until it has ended.
func (s *scheduler) ask() {
	if s.shared.underWay || s.stopping {
		return
	}
	s.shared.underWay = true
	s.d.o.Active(1)
	go s.exchange()
}

// exchange asks the store until there is nothing left to ask.
func (s *scheduler) exchange() {
	defer s.d.o.Active(-1)
	failed := 0
	for {
		s.mu.Lock()
		orders := s.limits.Orders(maxOrders)
		if len(orders) == 0 {
			s.shared.underWay = false
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
		s.turn()
		if err == nil {
			failed = 0
			continue
		}
		s.d.o.Faults.Note("limits", err, "a limit that engines share could not be asked for; it is tried again")
		if !s.d.o.Retrier.Pause(s.d.o.Context, failed) { // the engine closes
			s.mu.Lock()
			s.shared.underWay = false
			s.mu.Unlock()
			return
		}
		failed++
	}
}

// answer has the store answer orders, by their indexes. The only engine of a store does so behind a transaction of its writer, which would
// have the store to itself meanwhile.
func (d *Dispatcher) answer(orders []admission.Order[entry]) (answers []ration.Answer, err error) {
	if d.o.Fleet {
		return d.sched.shared.rows.decide(d.o.Context, orders)
	}
	done := make(chan struct{})
	sent := d.o.Writer.Send(&commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }, Ended: func(error) {
		answers, err = d.sched.shared.rows.decide(d.o.Context, orders)
		close(done)
	}})
	if !sent {
		return make([]ration.Answer, len(orders)), d.o.Retrier.Closed()
	}
	<-done
	return answers, err
}
