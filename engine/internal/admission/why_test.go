package admission_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// why returns the waits of a job, without their limits: the tests name these.
func why(t *testing.T, g *admission.Gate[int], job int, names ...string) []admission.Wait {
	t.Helper()
	all := g.Why(workitem.JobID{byte(job)}, "")
	var of []string
	for i := range all {
		of = append(of, all[i].Limit.Name)
		all[i].Limit = limit.Limit{}
	}
	require.Equal(t, names, of)
	return all
}

// A job waits for the limits without room, behind the jobs that are before it in their lines.
func TestWaitsOfJobs(t *testing.T) {
	s := newSharer(t, limit.Resource("db", 2), limit.Rate("calls", 1, time.Minute, limit.SlidingWindow))
	db, call := workitem.Take{Limit: "db", N: 2}, workitem.Take{Limit: "calls", N: 1}
	first := ticket(1, db, call)
	require.True(t, s.gate.Enter(first))
	require.True(t, s.gate.Begin(first))
	s.pass(20 * time.Second)
	for n := 2; n <= 4; n++ {
		require.False(t, s.gate.Enter(ticket(n, db)))
	}
	require.False(t, s.gate.Enter(ticket(5, call)))
	require.False(t, s.gate.Enter(ticket(6, call, db)))
	unknown := admission.Wait{Reason: limit.Reason{N: 2, Wait: limit.Unknown}}
	require.Equal(t, []admission.Wait{unknown}, why(t, s.gate, 2, "db"))
	unknown.Ahead = 2
	require.Equal(t, []admission.Wait{unknown}, why(t, s.gate, 4, "db"))
	waits := why(t, s.gate, 6, "calls", "db")
	require.Equal(t, admission.Wait{Reason: limit.Reason{N: 1, Wait: 40 * time.Second}, Ahead: 1}, waits[0])
	require.Equal(t, limit.Unknown, waits[1].Wait)
	require.Nil(t, s.gate.Why(workitem.JobID{1}, ""), "it waits for nothing")
	require.Nil(t, s.gate.Why(workitem.JobID{6}, "step"), "none of its steps does")

	require.Equal(t, []admission.Usage{
		{Limit: limit.Rate("calls", 1, time.Minute, limit.SlidingWindow), Keys: 1, Used: 1, Waiting: 2, Next: 40 * time.Second},
		{Limit: limit.Resource("db", 2), Keys: 1, Used: 2, Waiting: 3, Next: limit.Unknown},
	}, s.gate.Usage())
	due, ok := s.gate.NextDue()
	require.True(t, ok)
	require.Equal(t, 40*time.Second, due)
	var jobs []int
	s.gate.Each(func(n *int) { jobs = append(jobs, *n) })
	require.ElementsMatch(t, []int{2, 3, 4, 5, 6}, jobs)
	n := 0
	s.gate.EachWait(func(v *int, tk *admission.Ticket[int], waits func() []admission.Wait) {
		require.Equal(t, *v, tk.Value)
		require.NotEmpty(t, waits())
		n++
	})
	require.Equal(t, 5, n)
}

// While a limit of this process has no room, the store is not asked for a shared one, of which nothing is known then: it is no reason, unless it is
// the only one, or paused.
func TestNoWaitForASharedLimitThatWasNotAsked(t *testing.T) {
	s := newSharer(t, limit.Resource("db", 2), limit.Rate("calls", 1, time.Minute, limit.SlidingWindow).Shared(), limit.Resource("off", 0).Shared())
	db, call, off := workitem.Take{Limit: "db", N: 2}, workitem.Take{Limit: "calls", N: 1}, workitem.Take{Limit: "off", N: 1}
	first := ticket(1, db)
	require.True(t, s.gate.Enter(first))
	require.True(t, s.gate.Begin(first))
	require.False(t, s.gate.Enter(ticket(2, db, call)))
	require.Equal(t, limit.Unknown, why(t, s.gate, 2, "db")[0].Wait)
	require.Zero(t, s.asked)
	require.False(t, s.gate.Enter(ticket(3, call)))
	require.Equal(t, limit.Unknown, why(t, s.gate, 3, "calls")[0].Wait)
	require.False(t, s.gate.Enter(ticket(4, db, off)))
	why(t, s.gate, 4, "db", "off")
}

// Of the keys of a pool, the wait is for the one that has room first; a paused key comes last.
func TestWaitsForAPool(t *testing.T) {
	calls := limit.Rate("calls", 1, time.Minute, limit.SlidingWindow)
	s := newSharer(t, calls)
	pool := workitem.Take{Limit: "calls", Any: []string{"a", "b", "c"}, N: 1}
	paused := calls
	paused.N = 0
	require.True(t, s.gate.Change(calls, map[string]limit.Limit{"a": paused}))
	for n := 1; n <= 2; n++ {
		tk := ticket(n, pool)
		require.True(t, s.gate.Enter(tk))
		require.True(t, s.gate.Begin(tk))
		s.pass(10 * time.Second)
	}
	require.False(t, s.gate.Enter(ticket(3, pool)))
	waits := why(t, s.gate, 3, "calls")
	require.Equal(t, 40*time.Second, waits[0].Wait)
	require.Contains(t, []string{"b", "c"}, waits[0].Key)
	require.Equal(t, pool.Any, waits[0].Any)
	usage := s.gate.Usage()[0]
	require.Equal(t, 1, usage.Waiting, "it waits for any of three keys, and counts once")
	require.EqualValues(t, 2, usage.Used)
	require.Equal(t, 50*time.Second, usage.Next, "of the two keys that are not paused")

	require.True(t, s.gate.Change(paused, nil))
	waits = why(t, s.gate, 3, "calls")
	require.Equal(t, limit.Unknown, waits[0].Wait)
	require.Empty(t, waits[0].Key, "no key can be predicted")
	require.Equal(t, limit.Unknown, s.gate.Usage()[0].Next)
	require.False(t, s.gate.Change(paused, nil), "nothing changes")
	keys := map[string]limit.Limit{"a": calls}
	require.True(t, s.gate.Change(paused, keys))
	require.False(t, s.gate.Change(paused, keys))
	require.False(t, s.gate.Change(limit.Resource("other", 1), nil))
}

// Try takes only what no other job waits for; Withdraw, Pass and Leave let those behind proceed.
func TestTryDoesNotOvertake(t *testing.T) {
	s := newSharer(t, limit.Resource("db", 3))
	a := ticket(1, workitem.Take{Limit: "db", N: 2})
	require.True(t, s.gate.Try(a))
	require.False(t, a.Again().Held())
	require.False(t, s.gate.Try(ticket(2, workitem.Take{Limit: "db", N: 2})))
	b := ticket(2, workitem.Take{Limit: "db", N: 2})
	require.False(t, s.gate.Enter(b))
	c := ticket(3, workitem.Take{Limit: "db", N: 1})
	require.False(t, s.gate.Try(c), "there is room, and one is before it")
	require.False(t, s.gate.Enter(c))
	require.Empty(t, s.ready)
	require.Equal(t, []admission.Wait{{Reason: limit.Reason{N: 1}, Ahead: 1}}, why(t, s.gate, 3, "db"), "it has room, behind another one")
	s.gate.Withdraw(b)
	require.Equal(t, []int{3}, s.ready)
	s.gate.Each(func(n *int) { t.Errorf("job %d still waits", *n) })
	require.Nil(t, s.gate.Why(workitem.JobID{3}, ""))
	s.gate.Withdraw(b)
	require.Equal(t, []int{3}, s.ready, "it has left already")

	require.True(t, s.gate.Enter(c))
	d := ticket(4, workitem.Take{Limit: "db", N: 1})
	require.False(t, s.gate.Enter(d))
	s.ready = nil
	s.gate.Release(c, false)
	require.Equal(t, []int{4}, s.ready)
	require.False(t, s.gate.Enter(ticket(5, workitem.Take{Limit: "db", N: 2})))
	s.gate.Pass(nil)
	s.gate.Pass(d)
	require.Equal(t, []int{4}, s.ready, "one slot is free, and the next needs two")
	s.gate.Release(a, false)
	require.Equal(t, []int{4, 5}, s.ready)
	s.gate.Release(a, false)
	require.Equal(t, []int{4, 5}, s.ready, "it holds nothing")
}

// The takes of a step are split from those of its function, and are released alone.
func TestSplitTicket(t *testing.T) {
	s := newSharer(t, limit.Resource("db", 1), limit.Resource("gpus", 1))
	a := ticket(1, workitem.Take{Limit: "db", N: 1}, workitem.Take{Limit: "gpus", N: 1})
	require.Nil(t, s.gate.Split(a, 1), "it holds nothing")
	require.Nil(t, s.gate.Split(nil, 0))
	require.True(t, s.gate.Enter(a))
	require.Nil(t, s.gate.Split(a, 2))
	step := s.gate.Split(a, 1)
	require.Equal(t, []workitem.Take{{Limit: "gpus", N: 1}}, step.Takes)
	require.Len(t, a.Takes, 1)
	s.gate.Release(step, false)
	usage := s.gate.Usage()
	require.EqualValues(t, 1, usage[0].Used)
	require.Zero(t, usage[1].Used)
	s.gate.Release(a, false)
	require.Zero(t, s.gate.Usage()[0].Used)

	l, ok := s.gate.Limit("db")
	require.True(t, ok)
	require.Equal(t, "db", l.Name)
	_, ok = s.gate.Limit("none")
	require.False(t, ok)
	l, ok = s.gate.LimitOf("db", "key")
	require.True(t, ok)
	require.EqualValues(t, 1, l.N)
	_, ok = s.gate.LimitOf("none", "")
	require.False(t, ok)
	require.False(t, s.gate.Commit(a, "db", 1), "slots are not corrected")
}

// A case that waits for slots which other cases hold names them. It asks again after the interval, and has them checked less often.
func TestWaitForHoldsOfOtherCases(t *testing.T) {
	crane := limit.Resource("crane", 2).Shared()
	s := newSharer(t, crane)
	holder := func(n int) *admission.Ticket[int] {
		tk := ticket(n, workitem.Take{Limit: "crane", N: 2})
		tk.Own, tk.Holds = 1, []quota.Hold{{Case: workitem.CaseID{byte(n)}, Task: "load", N: 2, Activation: 1}}
		return tk
	}
	var checked []quota.Hold
	s.gate = admission.New(admission.Options[int]{
		Lock: &s.mu, Clock: s.clock, Limits: []limit.Limit{crane}, Before: func(a, b *int) bool { return *a < *b },
		Ready: func(n int) { s.ready = append(s.ready, n) }, Wake: func() {}, Again: quota.Again,
		Shared: func(limit.Limit) bool { return true }, Ask: func() { s.asked++ },
		Check: func(_, _ string, holds []quota.Hold) { checked = append(checked, holds...) },
	})
	a, b := holder(1), holder(2)
	require.False(t, s.gate.Enter(a))
	s.exchange()
	require.True(t, s.gate.Enter(a))
	s.ready = nil
	known, ok := s.gate.HoldOf("crane", workitem.CaseID{1}, "load")
	require.True(t, ok)
	require.EqualValues(t, 2, known.N)
	require.False(t, s.gate.Enter(b))
	s.exchange()
	require.Len(t, checked, 1)
	wait := s.gate.Why(workitem.JobID{2}, "")
	require.Len(t, wait, 1)
	require.Equal(t, limit.Unknown, wait[0].Wait)
	require.Equal(t, []workitem.CaseID{{1}}, wait[0].HeldBy)
	for range 5 {
		s.pass(quota.Again - time.Nanosecond)
		require.Empty(t, s.gate.Orders(1))
		s.pass(time.Nanosecond)
		s.exchange()
	}
	require.Len(t, checked, 2, "after five seconds")
	require.Empty(t, s.ready)

	s.gate.Release(a, false)
	_, ok = s.gate.HoldOf("crane", workitem.CaseID{1}, "load")
	require.False(t, ok, "another engine may end it from now on")
	s.gate.End("crane", "", quota.End{Hold: a.Holds[0]})
	o := s.exchange()
	require.Len(t, o.Ended, 1)
	require.Equal(t, []int{2}, s.ready)
	require.Empty(t, s.gate.Orders(1))

	// Withdrawn while its order is on the way: the new hold is ended.
	s.ready = nil
	require.True(t, s.gate.Enter(b))
	s.gate.End("crane", "", quota.End{Hold: b.Holds[0]})
	c := holder(3)
	require.False(t, s.gate.Enter(c))
	order := s.order()
	answer := s.decide(order)
	require.EqualValues(t, 2, answer.Grant.N)
	s.gate.Withdraw(c)
	s.gate.Settle(order, answer, nil)
	require.Empty(t, s.ready)
	o = s.exchange()
	require.Equal(t, []quota.End{{Hold: c.Holds[0], Only: true}}, o.Ended)
	require.Zero(t, s.gate.Usage()[0].Used)
}

// Between keys that have room at the same time, the one with fewer jobs before it is expected first; then the first of the pool. A
// paused key is not, wherever it is.
func TestWaitsForTheShorterLineOfAPool(t *testing.T) {
	calls := limit.Rate("calls", 1, time.Minute, limit.SlidingWindow)
	s := newSharer(t, calls)
	for i, key := range []string{"a", "b", "c"} {
		tk := ticket(i+1, workitem.Take{Limit: "calls", Key: key, N: 1})
		require.True(t, s.gate.Enter(tk))
		require.True(t, s.gate.Begin(tk))
	}
	require.False(t, s.gate.Enter(ticket(4, workitem.Take{Limit: "calls", Key: "a", N: 1})))
	require.False(t, s.gate.Enter(ticket(5, workitem.Take{Limit: "calls", Any: []string{"a", "b", "c"}, N: 1})))
	waits := why(t, s.gate, 5, "calls")
	require.Equal(t, "b", waits[0].Key)
	require.Zero(t, waits[0].Ahead)

	paused := calls
	paused.N = 0
	require.True(t, s.gate.Change(calls, map[string]limit.Limit{"c": paused}))
	require.False(t, s.gate.Enter(ticket(6, workitem.Take{Limit: "calls", Any: []string{"b", "c"}, N: 1})))
	waits = why(t, s.gate, 6, "calls")
	require.Equal(t, "b", waits[0].Key)
	require.Equal(t, time.Minute, waits[0].Wait)
}

// Takes of one pool are granted by one key, and listed once.
func TestWaitsOfTakesOfOnePool(t *testing.T) {
	s := newSharer(t, limit.Rate("calls", 1, time.Minute, limit.SlidingWindow), limit.Rate("tokens", 10, time.Hour, limit.SlidingWindow))
	both := []workitem.Take{{Limit: "calls", Any: []string{"a", "b"}, N: 1}, {Limit: "tokens", Any: []string{"a", "b"}, N: 10}}
	for n := 1; n <= 2; n++ {
		tk := ticket(n, both...)
		require.True(t, s.gate.Enter(tk))
		require.True(t, s.gate.Begin(tk))
	}
	require.False(t, s.gate.Enter(ticket(3, both...)))
	waits := why(t, s.gate, 3, "calls", "tokens")
	require.Equal(t, waits[0].Key, waits[1].Key)
	require.Equal(t, time.Hour, waits[1].Wait)
	require.False(t, s.gate.Enter(ticket(4, workitem.Take{Limit: "calls", Key: "a", N: 1})))
	due, ok := s.gate.NextDue()
	require.True(t, ok)
	require.Equal(t, time.Minute, due, "the next of all timers")
}

// A shared limit for which no job waits has a next time only if it is paused: the store knows more than this engine.
func TestUsageOfSharedLimits(t *testing.T) {
	gpus := limit.Resource("gpus", 2).Shared()
	s := newSharer(t, gpus)
	_, _ = s.entered(1, workitem.Take{Limit: "gpus", N: 2})
	usage := s.gate.Usage()[0]
	require.EqualValues(t, 2, usage.Used)
	require.Zero(t, usage.Next)
	require.False(t, s.gate.Enter(ticket(2, workitem.Take{Limit: "gpus", N: 1})))
	s.exchange()
	usage = s.gate.Usage()[0]
	require.Equal(t, 1, usage.Waiting)
	require.Equal(t, limit.Unknown, usage.Next)
}

// Keys of a shared limit are forgotten when everything of them was returned, and no earlier.
func TestIdleSharedKeysAreForgotten(t *testing.T) {
	s := newSharer(t, limit.Resource("gpus", 1).Shared())
	take := func(n int) workitem.Take {
		return workitem.Take{Limit: "gpus", Key: time.Duration(n).String(), N: 1}
	}
	kept, _ := s.entered(1, take(0))
	for n := 1; n < 1500; n++ {
		tk, _ := s.entered(2, take(n))
		s.gate.Release(tk, false)
		s.exchange()
	}
	require.Less(t, s.gate.Usage()[0].Keys, 1100)
	require.EqualValues(t, 1, s.gate.Usage()[0].Used, "the slot that is held")
	s.gate.Release(kept, false)
	o := s.order()
	require.Equal(t, "0s", o.Key)
	require.Zero(t, o.Order.Held)
}
