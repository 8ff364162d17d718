package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
)

// sentThrough are the statements that an engine sends through a proxy.
type sentThrough struct {
	mu  sync.Mutex
	all []string
}

func (c *sentThrough) take(statement string) pgproxy.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, _, _ := strings.Cut(statement, "\x00")
	c.all = append(c.all, text)
	return ""
}

// between are those from a heartbeat to the next one, once there are so many heartbeats; nil before.
func (c *sentThrough) between(signs int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var at []int
	for i, text := range c.all {
		if strings.Contains(text, "UPDATE tasq.pulses") {
			at = append(at, i)
		}
	}
	if len(at) < signs {
		return nil
	}
	return c.all[at[0]:at[len(at)-1]]
}

// An engine that has nothing to do sends one statement every ten seconds, alone and with others; and one more each minute, on a connection that
// only listens.
func TestAnIdleEngineSendsOneStatementAtATime(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 2} {
		t.Run([]string{"alone", "", "of three"}[others], func(t *testing.T) {
			f := newFleet(t)
			w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
			p, through := pgproxy.New(t, f.dsn)
			e := fleetOf{t, through}.open(engine.Config{}, w)
			for range others {
				f.open(engine.Config{Workers: -1}, w)
			}
			require.Equal(t, "completed: 14", ends(t, e, startOn(t, e, "double", `7`)))
			idle := "SELECT count(*) FROM tasq.pulses WHERE pace = '10 s' AND NOT busy"
			require.Eventually(t, func() bool { return f.sql(idle) == 1+others }, time.Minute, 10*time.Millisecond)
			var c sentThrough
			p.Decide(c.take)
			var sent []string
			require.Eventually(t, func() bool {
				sent = c.between(3)
				return sent != nil
			}, time.Minute, 10*time.Millisecond)
			require.LessOrEqual(t, len(sent), 3, "%q", sent)
		})
	}
}
