package admission_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// wallClock is a clock that can be set while its timers run on, as those of a process do.
type wallClock struct {
	*virtual.Clock
	by time.Duration
}

// Now implements retry.Clock.
func (c *wallClock) Now() time.Time { return c.Clock.Now().Add(c.by) }

// newSharerOf returns a sharer with another clock.
func newSharerOf(t *testing.T, limits ...limit.Limit) (*sharer, *wallClock) {
	s := newSharer(t, limits...)
	clock := &wallClock{Clock: s.clock}
	s.gate = admission.New(admission.Options[int]{
		Lock: &s.mu, Clock: clock, Limits: limits, Before: func(a, b *int) bool { return *a < *b },
		Ready: func(n int) { s.ready = append(s.ready, n) }, Wake: func() {},
		Shared: func(l limit.Limit) bool { return l.InStore }, Ask: func() { s.asked++ }, Again: quota.Again,
	})
	return s, clock
}

// A line orders again after a refusal or an error even if the clock was set back meanwhile: its pause is not as long as the clock needs to be where
// it was. So does a call that does not wait, and a line whose ticket waits elsewhere.
func TestAClockThatIsSetBackDelaysNoOrder(t *testing.T) {
	gpus, calls := limit.Resource("gpus", 2).Shared(), limit.Rate("calls", 1, time.Hour, limit.FixedWindow).Shared()
	one := workitem.Take{Limit: "gpus", N: 1}
	refused := func() (*sharer, *wallClock) {
		s, clock := newSharerOf(t, gpus, calls)
		s.other(gpus, 2)
		require.False(t, s.gate.Enter(ticket(1, one)))
		s.exchange()
		require.Empty(t, s.gate.Orders(1), "a tenth of a second after a refusal")
		clock.by = -44 * time.Minute
		return s, clock
	}

	s, _ := refused()
	s.pass(100 * time.Millisecond)
	s.other(gpus, 0)
	s.exchange()
	require.Equal(t, []int{1}, s.ready)

	s, _ = refused()
	s.gate.Leave(workitem.JobID{1})
	once := ticket(2, one)
	once.Once = true
	require.False(t, s.gate.Enter(once))
	require.True(t, once.Waits(), "for the answer to an order")
	s.exchange()

	s, _ = refused()
	s.gate.Leave(workitem.JobID{1})
	require.False(t, s.gate.Enter(ticket(2, workitem.Take{Limit: "calls", N: 1}, one)))
	require.Len(t, s.gate.Orders(10), 2, "of both limits")

	s, clock := newSharerOf(t, calls)
	require.False(t, s.gate.Enter(ticket(1, workitem.Take{Limit: "calls", N: 1})))
	s.gate.Settle(s.order(), quota.Answer{}, errors.New("lost"))
	clock.by = -3 * time.Hour
	s.pass(quota.Again)
	s.exchange()
	require.Equal(t, []int{1}, s.ready)
}

// A clock that is set back by less than the pause does not shorten it.
func TestAClockThatIsSetBackALittle(t *testing.T) {
	gpus := limit.Resource("gpus", 2).Shared()
	s, clock := newSharerOf(t, gpus)
	s.other(gpus, 2)
	require.False(t, s.gate.Enter(ticket(1, workitem.Take{Limit: "gpus", N: 1})))
	s.exchange()
	clock.by = -500 * time.Millisecond
	s.pass(100 * time.Millisecond)
	require.Empty(t, s.gate.Orders(1), "half a second is left")
	s.pass(500 * time.Millisecond)
	s.exchange()
}
