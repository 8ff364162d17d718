package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
)

// Commands of callers on three engines are as if they had happened one after the other also while connections break: a command whose
// answer is lost, or which the server gets after its engine has given up the connection, happens once or not at all, and one that is asked for
// again with its key happens once.
func TestCommandsAreLinearizableWhileConnectionsBreak(t *testing.T) {
	if testing.Short() {
		t.Skip("breaks connections, which takes seconds; run without -short")
	}
	f := newFleet(t)
	w := tallied(t)
	var engines []*engine.Engine
	var proxies []*pgproxy.Proxy
	for range 3 {
		p, dsn := pgproxy.New(t, f.dsn)
		proxies = append(proxies, p)
		engines = append(engines, fleetOf{t, dsn}.open(engine.Config{}, w))
	}
	l := newLinear(t, engines, w)
	for i, p := range proxies {
		p.Decide(randomFaults(uint64(i)))
	}
	var asked atomic.Int64
	history := l.operations(func() {
		if n := asked.Add(1); n%10 == 0 {
			proxies[int(n/10)%len(proxies)].Deliver()
		}
	})
	met := 0
	for _, p := range proxies {
		p.Decide(nil)
		p.Deliver()
		met += p.Met()
	}
	for c, e := range engines { // what is in the database in the end
		for of := range l.roots {
			in, call := operation{of: of}, time.Since(l.began)
			out, err := l.ask(e, in, nil)
			for err != nil {
				out, err = l.ask(e, in, nil)
			}
			history = append(history, porcupine.Operation{ClientId: c, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(l.began))})
		}
	}
	require.Positive(t, met)
	t.Logf("%d faults, %d operations", met, len(history))
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(itemModel, history, time.Minute))
}
