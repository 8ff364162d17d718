package dispatch

import (
	"sync"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/quota"
)

// maxOrders is the maximum number of rows in one transaction.
const maxOrders = 500

// exchange sends the orders of all lines of limits that engines share to the store, which has a row for each of these
// limits. One goroutine does so; it runs only while there are orders.
type exchange struct {
	o        *Options
	rows     sharedRows
	lock     sync.Locker // guards the fields below, and the gate
	gate     *limitGate
	answered func() // called without the lock when limits may have room

	inProgress bool
	stopped    bool
}

// ask starts the goroutine if it does not run. The lock is held. The engine is not idle until it has ended.
func (x *exchange) ask() {
	if x.inProgress || x.stopped {
		return
	}
	x.inProgress = true
	x.o.Active(1)
	go x.run()
}

// stop makes ask do nothing. The lock is held. A goroutine that runs ends with the context of the engine.
func (x *exchange) stop() { x.stopped = true }

// run sends orders until there are none left. Orders that are made while the store answers are sent with the next
// transaction, all together: the busier the limits are, the more orders share one.
func (x *exchange) run() {
	defer x.o.Active(-1)
	for failed := 0; ; {
		orders := x.next()
		if len(orders) == 0 {
			return
		}
		answers, err := x.answer(orders)
		x.lock.Lock()
		for i := range orders {
			x.gate.Settle(orders[i], answers[i], err)
		}
		x.lock.Unlock()
		x.answered()
		x.o.Faults.Note("limits", err, "a limit that engines share could not be asked for; it is tried again")
		if err == nil {
			failed = 0
			continue
		}
		if !x.o.Retrier.Pause(x.o.Context, failed) { // false if the engine closes
			x.lock.Lock()
			x.inProgress = false
			x.lock.Unlock()
			return
		}
		failed++
	}
}

// next returns the orders of the next transaction. If there are none, the goroutine is to end: the next call of ask
// starts another one.
func (x *exchange) next() []admission.Order[entry] {
	x.lock.Lock()
	defer x.lock.Unlock()
	orders := x.gate.Orders(maxOrders)
	x.inProgress = len(orders) > 0
	return orders
}

// answer executes orders, by index. An engine that is alone does so in a request to its writer, since a second
// transaction would have to wait for that of the writer.
func (x *exchange) answer(orders []admission.Order[entry]) (answers []quota.Answer, err error) {
	if x.o.Fleet {
		return x.rows.decide(x.o.Context, orders)
	}
	done := make(chan struct{})
	sent := x.o.Writer.Send(&commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }, Ended: func(error) {
		answers, err = x.rows.decide(x.o.Context, orders)
		close(done)
	}})
	if !sent {
		return make([]quota.Answer, len(orders)), x.o.Retrier.Closed()
	}
	<-done
	return answers, err
}
