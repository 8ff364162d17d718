package admission_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// sharer is one engine that orders shared limits, with the rows of the store. Its jobs are ready or have entered; nothing else
// happens by itself.
type sharer struct {
	t     *testing.T
	mu    sync.Mutex
	clock *virtual.Clock
	gate  *admission.Gate[int]
	ready []int
	asked int
	rows  map[string][]byte
	live  []int64
}

func newSharer(t *testing.T, limits ...limit.Limit) *sharer {
	s := &sharer{t: t, clock: virtual.NewClock(), rows: make(map[string][]byte), live: []int64{1}}
	s.gate = admission.New(admission.Options[int]{
		Lock: &s.mu, Clock: s.clock, Limits: limits, Before: func(a, b *int) bool { return *a < *b },
		Ready: func(n int) { s.ready = append(s.ready, n) }, Wake: func() {},
		Shared: func(l limit.Limit) bool { return l.InStore }, Ask: func() { s.asked++ }, Again: quota.Again,
	})
	return s
}

func ticket(n int, takes ...workitem.Take) *admission.Ticket[int] {
	return &admission.Ticket[int]{Job: workitem.JobID{byte(n)}, Takes: takes, Value: n}
}

// order returns the only order that is due.
func (s *sharer) order() admission.Order[int] {
	s.t.Helper()
	orders := s.gate.Orders(10)
	require.Len(s.t, orders, 1)
	return orders[0]
}

// decide has the store answer an order, which is not settled yet.
func (s *sharer) decide(o admission.Order[int]) quota.Answer {
	s.t.Helper()
	key := o.Limit + "/" + o.Key
	after, _, a, err := quota.Decide(s.rows[key], o.Order, quota.Situation{Self: 1, Live: s.live, Now: s.clock.Now().UnixNano()})
	require.NoError(s.t, err)
	s.rows[key] = after
	return a
}

// exchange makes the only order that is due, and settles it.
func (s *sharer) exchange() quota.Order {
	s.t.Helper()
	o := s.order()
	made := o.Order
	if made.Back != nil {
		back := *made.Back // which the store changes
		made.Back = &back
	}
	s.gate.Settle(o, s.decide(o), nil)
	return made
}

// other has another engine hold slots of a limit.
func (s *sharer) other(l limit.Limit, held int64) {
	s.t.Helper()
	s.live = []int64{1, 2}
	after, _, _, err := quota.Decide(s.rows[l.Name+"/"], quota.Order{Limit: l, Held: held},
		quota.Situation{Self: 2, Live: s.live, Now: s.clock.Now().UnixNano()})
	require.NoError(s.t, err)
	s.rows[l.Name+"/"] = after
}

func (s *sharer) pass(d time.Duration) { s.clock.Set(s.clock.Now().Add(d)) }

// entered has a job enter that waits for an order at first.
func (s *sharer) entered(n int, takes ...workitem.Take) (*admission.Ticket[int], quota.Order) {
	s.t.Helper()
	t := ticket(n, takes...)
	require.False(s.t, s.gate.Enter(t))
	o := s.exchange()
	require.Equal(s.t, []int{n}, s.ready)
	s.ready = nil
	require.True(s.t, s.gate.Enter(t))
	return t, o
}

// A portion is twice the one before if that was used up, at most a twentieth of the rate, and what one job needs in any case.
func TestSizeOfPortions(t *testing.T) {
	tokens := limit.Rate("tokens", 1000, time.Minute, limit.SlidingWindow).Shared()
	s := newSharer(t, tokens)
	one := workitem.Take{Limit: "tokens", N: 1}
	var wants []int64
	for n, entered := 1, 0; entered < 200; n++ {
		if s.gate.Enter(ticket(n, one)) {
			entered++
			continue
		}
		wants = append(wants, s.exchange().Want)
		s.ready = nil
		s.gate.Leave(workitem.JobID{byte(n)})
	}
	require.Equal(t, []int64{1, 2, 4, 8, 16, 32, 50, 50, 50}, wants)

	s = newSharer(t, tokens)
	_, o := s.entered(1, workitem.Take{Limit: "tokens", N: 80})
	require.EqualValues(t, 80, o.Least)
	require.EqualValues(t, 80, o.Want)
	for n := range 3 { // what all that wait need is ordered together
		require.False(t, s.gate.Enter(ticket(n+2, workitem.Take{Limit: "tokens", N: 7})))
	}
	require.Equal(t, 2, s.asked, "one order has been made, and one is due")
	o = s.exchange()
	require.EqualValues(t, 7, o.Least)
	require.EqualValues(t, 50, o.Want, "twice 80 is more than a twentieth of the rate")
}

// What is left of a portion is taken until half of its time is over. Then it is returned, and the next portion is as large as
// what was used.
func TestUnusedPortionIsReturned(t *testing.T) {
	s := newSharer(t, limit.Rate("tokens", 1000, time.Minute, limit.SlidingWindow).Shared())
	_, _ = s.entered(1, workitem.Take{Limit: "tokens", N: 1})
	_, o := s.entered(2, workitem.Take{Limit: "tokens", N: 1})
	require.EqualValues(t, 2, o.Want)
	require.Nil(t, o.Back, "the first portion was used up")
	s.pass(600 * time.Millisecond)
	require.Empty(t, s.gate.Orders(1))
	third := ticket(3, workitem.Take{Limit: "tokens", N: 1})
	require.True(t, s.gate.Try(third), "half of 1.2 s is not over")
	s.gate.Undo(third)
	require.Empty(t, s.gate.Orders(1), "the portion has it again")
	s.pass(time.Nanosecond)
	require.False(t, s.gate.Try(third))
	o = s.exchange()
	require.EqualValues(t, 2, o.Back.N)
	require.EqualValues(t, 1, o.Used)
	require.Zero(t, o.Least)
	_, o = s.entered(4, workitem.Take{Limit: "tokens", N: 1})
	require.EqualValues(t, 1, o.Want)
	require.EqualValues(t, 3, s.gate.Usage()[0].Used, "of the first, the second and the fourth")
}

// A job that was admitted has to begin within the time of its portion, and returns what it took if it comes too late.
func TestJobBeginsWithinThePortion(t *testing.T) {
	s := newSharer(t, limit.Rate("tokens", 1000, time.Minute, limit.SlidingWindow).Shared())
	first, _ := s.entered(1, workitem.Take{Limit: "tokens", N: 5})
	s.pass(1200 * time.Millisecond)
	require.True(t, s.gate.Begin(first))
	s.pass(time.Nanosecond)
	require.False(t, s.gate.Begin(first))
	s.gate.Undo(first)
	require.False(t, first.Held())
	o := s.exchange()
	require.EqualValues(t, 5, o.Back.N)
	require.Zero(t, o.Used)
	require.Zero(t, s.gate.Usage()[0].Used)
}

// A job that needs more than is left has the rest of the portion returned with the order for the next one.
func TestRestOfAPortionIsReturnedWithTheNextOrder(t *testing.T) {
	s := newSharer(t, limit.Rate("tokens", 1000, time.Minute, limit.SlidingWindow).Shared())
	_, _ = s.entered(1, workitem.Take{Limit: "tokens", N: 10})
	a, b := ticket(2, workitem.Take{Limit: "tokens", N: 12}), ticket(3, workitem.Take{Limit: "tokens", N: 8})
	require.False(t, s.gate.Enter(a))
	require.False(t, s.gate.Enter(b))
	require.EqualValues(t, 20, s.exchange().Want, "what both need, and twice the portion before")
	require.Equal(t, []int{2, 3}, s.ready)
	s.ready = nil
	require.True(t, s.gate.Enter(a))
	require.False(t, s.gate.Enter(ticket(4, workitem.Take{Limit: "tokens", N: 9})), "8 are left")
	o := s.exchange()
	require.EqualValues(t, 20, o.Back.N)
	require.EqualValues(t, 12, o.Used)
	require.EqualValues(t, 9, o.Least)
}

// What jobs used is corrected in the store, once for each portion; a job that has used more than it took stays at that.
func TestCorrectionsOfSharedRates(t *testing.T) {
	s := newSharer(t, limit.Rate("tokens", 1000, time.Minute, limit.SlidingWindow).Shared())
	a, _ := s.entered(1, workitem.Take{Limit: "tokens", N: 10})
	s.pass(20 * time.Second)
	b, _ := s.entered(2, workitem.Take{Limit: "tokens", N: 10})
	require.False(t, s.gate.Commit(a, "other", 3))
	require.True(t, s.gate.Commit(a, "tokens", 10))
	require.Empty(t, s.gate.Orders(1), "nothing has changed")
	require.True(t, s.gate.Commit(a, "tokens", 4))
	require.True(t, s.gate.Commit(a, "tokens", 12))
	require.True(t, s.gate.Commit(a, "tokens", 11), "it has used more than it took, so this changes nothing")
	require.True(t, s.gate.Commit(b, "tokens", -1))
	o := s.exchange()
	require.EqualValues(t, 14, o.Back.N, "10 taken and 4, of the same portion")
	require.EqualValues(t, 16, o.Used, "4 and then 12")
	o = s.exchange()
	require.EqualValues(t, 10, o.Back.N)
	require.Zero(t, o.Used)
	require.EqualValues(t, 22, s.gate.Usage()[0].Used, "12, and 10 that are left of the second portion")
	require.Empty(t, s.gate.Orders(1))

	c := ticket(3, workitem.Take{Limit: "tokens", N: 8})
	require.True(t, s.gate.Try(c))
	require.True(t, s.gate.Commit(c, "tokens", 5))
	require.EqualValues(t, 5, s.exchange().Used)
	require.True(t, s.gate.Commit(c, "tokens", 2))
	require.EqualValues(t, 2, s.exchange().Used, "it can be lowered again")
}

// Slots that are free again are kept for a moment, and then returned. An order has what the engine still uses.
func TestUnusedSlotsAreReturned(t *testing.T) {
	gpus := limit.Resource("gpus", 4).Shared()
	s := newSharer(t, gpus)
	a, o := s.entered(1, workitem.Take{Limit: "gpus", N: 2})
	require.Zero(t, o.Held)
	require.True(t, s.gate.Begin(a))
	s.gate.Release(a, false)
	require.EqualValues(t, 0, s.exchange().Held, "what a job had is returned at once")
	require.Zero(t, s.gate.Usage()[0].Used)

	for n := range 2 {
		require.False(t, s.gate.Enter(ticket(n+2, workitem.Take{Limit: "gpus", N: 1})))
	}
	require.EqualValues(t, 2, s.exchange().Want)
	s.gate.Leave(workitem.JobID{3}) // one of both is canceled before it enters
	b := ticket(2, workitem.Take{Limit: "gpus", N: 1})
	require.True(t, s.gate.Enter(b))
	s.pass(250 * time.Millisecond)
	require.Empty(t, s.gate.Orders(1))
	c := ticket(4, workitem.Take{Limit: "gpus", N: 1})
	require.True(t, s.gate.Try(c))
	s.gate.Undo(c)
	require.EqualValues(t, 1, s.exchange().Held, "a slot that was not used is returned as well")
	s.pass(time.Second)
	require.Empty(t, s.gate.Orders(1))
	require.EqualValues(t, 1, s.gate.Usage()[0].Used)
}

// Kept slots that no job takes are returned after a quarter of a second.
func TestKeptSlotsAreReturned(t *testing.T) {
	s := newSharer(t, limit.Resource("gpus", 4).Shared())
	require.False(t, s.gate.Enter(ticket(1, workitem.Take{Limit: "gpus", N: 2})))
	require.EqualValues(t, 2, s.exchange().Want)
	s.gate.Leave(workitem.JobID{1})
	s.pass(250 * time.Millisecond)
	require.Empty(t, s.gate.Orders(1))
	s.pass(time.Nanosecond)
	o := s.exchange()
	require.Zero(t, o.Held)
	require.Zero(t, o.Least)
	require.Zero(t, s.gate.Usage()[0].Used)
}

// A line without room orders again: slots after a tenth of a second, since time alone frees none; a rate when it has room by the
// answer, at the latest after a second.
func TestOrderAfterARefusal(t *testing.T) {
	gpus := limit.Resource("gpus", 2).Shared()
	s := newSharer(t, gpus)
	s.other(gpus, 2)
	require.False(t, s.gate.Enter(ticket(1, workitem.Take{Limit: "gpus", N: 1})))
	s.exchange()
	wait := s.gate.Why(workitem.JobID{1}, "")
	require.Len(t, wait, 1)
	require.Equal(t, limit.Unknown, wait[0].Wait)
	require.EqualValues(t, 2, s.gate.Usage()[0].Used, "of the other engine")
	s.pass(99 * time.Millisecond)
	require.Empty(t, s.gate.Orders(1))
	s.pass(time.Millisecond)
	s.other(gpus, 0)
	s.exchange()
	require.Equal(t, []int{1}, s.ready)

	for per, again := range map[time.Duration]time.Duration{
		50 * time.Millisecond: 150 * time.Millisecond, // the window, and the time in which a portion may be used
		time.Hour:             quota.Again,
	} {
		s = newSharer(t, limit.Rate("calls", 1, per, limit.FixedWindow).Shared())
		_, _ = s.entered(1, workitem.Take{Limit: "calls", N: 1})
		require.False(t, s.gate.Enter(ticket(2, workitem.Take{Limit: "calls", N: 1})))
		s.exchange()
		due, ok := s.gate.NextDue()
		require.True(t, ok)
		require.LessOrEqual(t, due, again, per)
		require.Greater(t, due, again/2-time.Nanosecond, per)
		wait = s.gate.Why(workitem.JobID{2}, "")
		require.Len(t, wait, 1)
		require.Greater(t, wait[0].Wait, 10*time.Millisecond)
		require.LessOrEqual(t, wait[0].Wait, per+max(per/50, 100*time.Millisecond))
		s.pass(due - time.Nanosecond)
		require.Empty(t, s.gate.Orders(1))
		s.pass(time.Nanosecond)
		require.EqualValues(t, 1, s.order().Order.Least)
	}
}

// After an error nothing was granted, and what the order returned of slots is sent again after a second.
func TestOrderWhoseAnswerIsLost(t *testing.T) {
	s := newSharer(t, limit.Resource("gpus", 2).Shared(), limit.Rate("calls", 10, time.Minute, limit.FixedWindow).Shared())
	a, _ := s.entered(1, workitem.Take{Limit: "gpus", N: 1})
	s.gate.Release(a, false)
	o := s.order()
	require.Zero(t, o.Order.Held)
	require.Empty(t, s.gate.Orders(1), "one at a time")
	s.gate.Settle(o, quota.Answer{}, errors.New("lost"))
	require.Zero(t, s.order().Order.Held, "it is sent again")

	require.False(t, s.gate.Enter(ticket(2, workitem.Take{Limit: "calls", N: 1})))
	s.gate.Settle(s.order(), quota.Answer{}, errors.New("lost"))
	require.Empty(t, s.gate.Orders(1))
	s.pass(quota.Again - time.Nanosecond)
	require.Empty(t, s.gate.Orders(1))
	s.pass(time.Nanosecond)
	s.exchange()
	require.Equal(t, []int{2}, s.ready)
}

// While a job waits for one shared limit, what it needs of the others is ordered too.
func TestAllLimitsOfAJobAreOrderedTogether(t *testing.T) {
	s := newSharer(t, limit.Resource("gpus", 2).Shared(), limit.Rate("calls", 1000, time.Minute, limit.FixedWindow).Shared(), limit.Resource("disk", 1))
	a := ticket(1, workitem.Take{Limit: "gpus", N: 1}, workitem.Take{Limit: "calls", N: 3}, workitem.Take{Limit: "disk", N: 1})
	require.False(t, s.gate.Enter(a))
	orders := s.gate.Orders(10)
	require.Len(t, orders, 2)
	for _, o := range orders {
		require.EqualValues(t, map[string]int64{"gpus": 1, "calls": 3}[o.Limit], o.Order.Least)
		require.Equal(t, o.Order.Least, o.Order.Want)
		s.gate.Settle(o, s.decide(o), nil)
	}
	require.True(t, s.gate.Enter(a))
	require.Empty(t, s.gate.Orders(10))

	// A line in which others wait, or with room, needs no such order.
	b := ticket(2, workitem.Take{Limit: "calls", N: 40})
	require.False(t, s.gate.Enter(b))
	require.Len(t, s.gate.Orders(10), 1)
	c := ticket(3, workitem.Take{Limit: "gpus", N: 2}, workitem.Take{Limit: "calls", N: 3})
	require.False(t, s.gate.Enter(c))
	orders = s.gate.Orders(10)
	require.Len(t, orders, 1)
	require.Equal(t, "gpus", orders[0].Limit)
	require.EqualValues(t, 1, orders[0].Order.Held)
}

// A gate that has stopped orders nothing, and an answer that comes later changes nothing.
func TestStoppedGateOrdersNothing(t *testing.T) {
	s := newSharer(t, limit.Resource("gpus", 2).Shared())
	a, _ := s.entered(1, workitem.Take{Limit: "gpus", N: 1})
	require.False(t, s.gate.Enter(ticket(2, workitem.Take{Limit: "gpus", N: 1})))
	o := s.order()
	s.gate.Stop()
	s.gate.Settle(o, s.decide(o), nil)
	require.Empty(t, s.ready)
	s.gate.Release(a, false)
	s.pass(time.Hour)
	require.Empty(t, s.gate.Orders(10))
	require.Nil(t, s.gate.Why(workitem.JobID{2}, ""))

	s = newSharer(t, limit.Resource("gpus", 2).Shared())
	require.False(t, s.gate.Enter(ticket(1, workitem.Take{Limit: "gpus", N: 1})))
	s.gate.Stop() // before it was granted anything
	require.Empty(t, s.gate.Orders(10))
}
