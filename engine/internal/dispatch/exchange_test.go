package dispatch

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// sharedExchange is an exchange for a gate with limits that the table has.
type sharedExchange struct {
	exchange
	table  *limitTable
	ready  []workitem.JobID
	active atomic.Int32
	woken  atomic.Int32 // how often limits may have had room
	log    bytes.Buffer
}

func newSharedExchange(t *testing.T) *sharedExchange {
	x, lock := &sharedExchange{table: &limitTable{rows: make(map[store.LimitKey]store.LimitRow), now: 1}}, new(sync.Mutex)
	limits := []limit.Limit{limit.Resource("a", 1).Shared(), limit.Resource("b", 1).Shared(), limit.Resource("c", 1).Shared()}
	closing := make(chan struct{})
	t.Cleanup(func() { close(closing) })
	gate := &limitGate{Gate: admission.New(admission.Options[entry]{
		Lock: lock, Clock: new(lateClock), Limits: limits, Before: byPriority, Wake: func() {},
		Ready:  func(n entry) { x.ready = append(x.ready, n.job) },
		Free:   func(*entry) bool { return true },
		Shared: func(limit.Limit) bool { return true }, Ask: x.ask, Check: nil,
	})}
	x.exchange = exchange{lock: lock, gate: gate, answered: func() { x.woken.Add(1) }, rows: sharedRows{rows: x.table, clock: new(lateClock)},
		o: &Options{Context: t.Context(), Fleet: true, Retrier: fault.Retrier{Closing: closing}, Active: func(n int) { x.active.Add(int32(n)) },
			Faults: fault.NewLog(slog.New(slog.NewTextHandler(&x.log, nil)), time.Now)}}
	return x
}

// locked calls f while the exchange is not in the lock.
func (x *sharedExchange) locked(f func()) {
	x.lock.Lock()
	defer x.lock.Unlock()
	f()
}

// enter makes a job wait for a limit.
func (x *sharedExchange) enter(id byte, name string) {
	x.locked(func() {
		x.gate.Enter(&ticket{Job: workitem.JobID{id}, Takes: []workitem.Take{{Limit: name, N: 1}}, Value: entry{job: workitem.JobID{id}}})
	})
}

// While the store fails, the orders are tried again; jobs have what they wait for when it works again.
func TestOrdersAreSentAgainWhileTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSharedExchange(t)
		x.table.failed = errors.New("no connection")
		x.enter(1, "a")
		<-time.After(time.Minute)
		synctest.Wait()
		x.locked(func() {
			require.Empty(t, x.ready)
			require.Greater(t, x.table.reads, 10)
			require.Contains(t, x.log.String(), "no connection")
			x.table.failed = nil
		})
		<-time.After(fault.Wait(fault.Levels))
		synctest.Wait()
		require.Equal(t, []workitem.JobID{{1}}, x.ready)
		require.Zero(t, x.active.Load())
		require.GreaterOrEqual(t, x.woken.Load(), int32(3))
		require.Contains(t, x.log.String(), "a fault is over")
	})
}

// Orders that are made while the store answers share the next transaction.
func TestOrdersShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSharedExchange(t)
		answer := make(chan struct{})
		x.table.read = func() { <-answer }
		x.enter(1, "a")
		synctest.Wait()
		require.EqualValues(t, 1, x.active.Load(), "the engine is not idle while the store answers")
		x.enter(2, "b")
		x.enter(3, "c")
		x.locked(func() { require.Equal(t, 1, x.table.reads) })
		close(answer)
		synctest.Wait()
		require.Equal(t, 2, x.table.reads)
		require.ElementsMatch(t, []workitem.JobID{{1}, {2}, {3}}, x.ready)
		require.Zero(t, x.active.Load())
	})
}

func TestAnExchangeThatWasStoppedSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSharedExchange(t)
		x.locked(x.stop)
		x.enter(1, "a")
		synctest.Wait()
		require.Zero(t, x.table.reads)
		require.Zero(t, x.active.Load())
	})
}
