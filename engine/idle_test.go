package engine_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/workflow"
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

// sent are all statements so far.
func (c *sentThrough) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// heartbeats are the places of the heartbeats in all that was sent.
func (c *sentThrough) heartbeats() (at []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, text := range c.all {
		if strings.Contains(text, "UPDATE tasq.pulses") {
			at = append(at, i)
		}
	}
	return at
}

// compares begins the statement by which an engine compares the jobs that it owns.
const compares = "SELECT id, case_id, root, task,"

// since are the statements of the last so many intervals between heartbeats, each with the heartbeat that begins it, and how often the engine has
// compared its jobs, which it does once a minute. The connection that only listens is looked at once a minute, too: that is left out.
func (c *sentThrough) since(intervals int) (sent []string, compared int) {
	at := c.heartbeats()
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(at) - 1
	for _, text := range c.all[at[last-intervals]:at[last]] {
		switch {
		case strings.HasPrefix(text, compares) && strings.Contains(text, "WHERE holder = $1"):
			compared++
		case !strings.HasPrefix(text, "SELECT 1"):
			sent = append(sent, text)
		}
	}
	return sent, compared
}

// An engine that has nothing to do sends one statement every ten seconds, alone and with others; and two more each minute, one of them on a
// connection that only listens.
func TestAnIdleEngineSendsOneStatementAtATime(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 2} {
		t.Run([]string{"alone", "", "of three"}[others], func(t *testing.T) {
			f := newFleet(t)
			w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
			p, through := pgproxy.New(t, f.dsn)
			var c sentThrough
			p.Decide(c.take)
			e := fleetOf{t, through}.open(engine.Config{}, w)
			for range others {
				f.open(engine.Config{Workers: -1}, w)
			}
			require.Equal(t, "completed: 14", ends(t, e, startOn(t, e, "double", `7`)))
			idle := "SELECT count(*) FROM tasq.pulses WHERE pace = '10 s' AND NOT busy"
			f.until(idle, exactly(1+others))
			// What the function left to do is done by the next heartbeat.
			intervals := testsize.Pick(1, 2, 2)
			enough := len(c.heartbeats()) + 1 + intervals
			require.Eventually(t, func() bool { return len(c.heartbeats()) >= enough }, 2*time.Minute, 10*time.Millisecond)
			sent, compared := c.since(intervals)
			require.Len(t, sent, intervals, "%.100q", sent)
			require.LessOrEqual(t, compared, 1)
		})
	}
}

// A caller who waits for a run that has just begun costs the server nothing: its end is notified.
func TestAWaitForARunAsksTheServerNothing(t *testing.T) {
	const runs = 20
	f := newFleet(t)
	release := make(chan struct{})
	w, _ := function(t, "released", func(ctx context.Context, n int) (int, error) {
		select {
		case <-release:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	p, through := pgproxy.New(t, f.dsn)
	var c sentThrough
	p.Decide(c.take)
	e := fleetOf{t, through}.open(engine.Config{}, w)
	for n := range runs {
		id := startOn(t, e, "released", strconv.Itoa(n))
		go func() { release <- struct{}{} }()
		r, err := e.WaitRun(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, workflow.RunCompleted, r.State)
	}
	asked := 0
	for _, text := range c.sent() {
		if strings.HasPrefix(text, "SELECT u.root") { // as a heartbeat also does, and the wait for a run that ended before it
			asked++
		}
	}
	require.Less(t, asked, runs/2)
}
