package engine_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/internal/testsize"
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
	l := newLinear(t, engines[0], w)
	for i, p := range proxies {
		p.Decide(randomFaults(uint64(i)))
	}
	var asked atomic.Int64
	var callers []*caller
	for n := range 6 {
		c := l.caller(n, asks(engines[n%3]))
		c.before = func() {
			if n := asked.Add(1); n%10 == 0 {
				proxies[int(n/10)%len(proxies)].Deliver()
			}
		}
		callers = append(callers, c)
	}
	l.begin(testsize.Pick(8, 40, 400), callers...)
	l.all.Wait()
	met := 0
	for _, p := range proxies {
		p.Decide(nil)
		p.Deliver()
		met += p.Met()
	}
	require.Positive(t, met)
	t.Logf("%d faults", met)
	l.check()
}
