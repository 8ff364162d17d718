package dispatch

import (
	"bytes"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
)

// Limits that engines share are rows of the store. What lines lack and have too much of is exchanged with it by one goroutine, which
// is there while there is something to exchange.

// maxOrders is how many rows one exchange concerns at most.
const maxOrders = 500

// isShared reports whether the store grants a limit. The only engine of a store counts slots itself: no other has any.
func (s *scheduler) isShared(l limit.Limit) bool {
	return l.InStore && (s.d.o.Fleet || l.Algorithm != limit.Slots)
}

// ask begins an exchange, if none is under way. The lock is held. The engine is not at rest until it has ended.
func (s *scheduler) ask() {
	if s.asking || s.stopping {
		return
	}
	s.asking = true
	s.d.o.Active(1)
	go s.exchange()
}

// exchange asks the store until there is nothing left to ask.
func (s *scheduler) exchange() {
	defer s.d.o.Active(-1)
	failed := 0
	for {
		s.mu.Lock()
		orders := s.gate.Orders(maxOrders)
		if len(orders) == 0 {
			s.asking = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		answers, err := s.d.answer(orders)
		s.mu.Lock()
		for i := range orders {
			s.gate.Settle(orders[i], answers[i], err)
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
			s.asking = false
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
		return d.decide(orders)
	}
	done := make(chan struct{})
	sent := d.o.Writer.Send(&commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }, Ended: func(error) {
		answers, err = d.decide(orders)
		close(done)
	}})
	if !sent {
		return make([]ration.Answer, len(orders)), d.o.Retrier.Closed()
	}
	<-done
	return answers, err
}

// decide has the store answer orders, by their indexes. A row that another engine has changed meanwhile is decided again.
func (d *Dispatcher) decide(orders []admission.Order[entry]) ([]ration.Answer, error) {
	answers := make([]ration.Answer, len(orders))
	open := make([]int, len(orders))
	for i := range open {
		open[i] = i
	}
	for len(open) > 0 {
		left, err := d.decideOnce(orders, open, answers)
		if err != nil {
			return make([]ration.Answer, len(orders)), err
		}
		open = left
	}
	return answers, nil
}

// decideOnce decides the orders with the indexes given, and returns those that are to be decided again.
func (d *Dispatcher) decideOnce(orders []admission.Order[entry], open []int, answers []ration.Answer) ([]int, error) {
	ctx := d.o.Context
	keys := make([]store.LimitKey, len(open))
	for n, i := range open {
		keys[n] = store.LimitKey{Limit: orders[i].Limit, Key: orders[i].Key}
	}
	view, err := d.o.Rows.ReadLimits(ctx, keys)
	if err != nil {
		return nil, err
	}
	in := ration.Situation{Self: view.Self, Live: view.Live, Now: view.Now}
	if in.Now == 0 {
		in.Now = d.sched.started.UnixNano() + int64(d.o.Clock.Now().Sub(d.sched.started))
	}
	waiting := make(map[store.LimitKey]int, len(open))
	var rows []store.LimitRow
	for n, i := range open {
		row := view.Rows[n]
		before := row
		if row.State, row.Until, answers[i], err = ration.Decide(before.State, orders[i].Order, in); err != nil {
			return nil, err
		}
		if !bytes.Equal(row.State, before.State) && (row.Until > 0 || before.Version > 0) {
			rows = append(rows, row)
			waiting[row.LimitKey] = i
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	written, err := d.o.Rows.WriteLimits(ctx, rows, in.Now)
	if err != nil {
		return nil, err
	}
	for _, key := range written {
		delete(waiting, key)
	}
	var again []int
	for _, i := range waiting {
		again = append(again, i)
	}
	return again, nil
}
