package admission_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// port is several engines that do the jobs of cases which hold berths. An engine that is killed forgets all; the row and the cases stay.
type port struct {
	t       *testing.T
	r       *rand.Rand
	clock   *virtual.Clock
	berths  limit.Limit
	again   time.Duration // of the gates
	row     []byte
	engines []*berthEngine
	cases   []*ship
	begun   int
}

// ship is a case: it waits for its hold, has it, or has ended.
type ship struct {
	n          int64 // how much it holds
	activation int
	since      int          // which begin of all its activation was
	at         *berthEngine // which does its job; nil if none does
	holds      bool
	ended      int // how many of its activations are over
}

type berthEngine struct {
	p     *port
	id    int64
	dead  bool
	mu    sync.Mutex
	gate  *admission.Gate[int]
	ready []int
	jobs  map[int]*admission.Ticket[int] // by ship
}

func (p *port) join() {
	e := &berthEngine{p: p, id: int64(len(p.engines) + 1), jobs: make(map[int]*admission.Ticket[int])}
	e.gate = admission.New(admission.Options[int]{
		Lock: &e.mu, Clock: p.clock, Limits: []limit.Limit{p.berths}, Before: func(a, b *int) bool { return p.cases[*a].since < p.cases[*b].since },
		Ready: func(n int) { e.ready = append(e.ready, n) }, Wake: func() {}, Ask: func() {},
		Shared: func(limit.Limit) bool { return true }, Again: p.again,
		Check: func(name, key string, holds []quota.Hold) {
			for _, h := range holds {
				if s := p.cases[h.Case[0]]; s.ended >= h.Activation {
					e.gate.End(name, key, quota.End{Hold: h})
				}
			}
		},
	})
	p.engines = append(p.engines, e)
}

func (p *port) live() (ids []int64) {
	for _, e := range p.engines {
		if !e.dead {
			ids = append(ids, e.id)
		}
	}
	return ids
}

func (p *port) holdOf(i int) quota.Hold {
	return quota.Hold{Case: workitem.CaseID{byte(i)}, Task: "arrive", N: p.cases[i].n, Activation: p.cases[i].activation}
}

// exchange has the row answer what an engine asks. Sometimes the answer is lost.
func (e *berthEngine) exchange() {
	for _, o := range e.gate.Orders(10) {
		after, _, a, err := quota.Decide(e.p.row, o.Order, quota.Situation{Self: e.id, Live: e.p.live(), Now: e.p.clock.Now().UnixNano()})
		require.NoError(e.p.t, err)
		e.p.row = after
		if e.p.r.IntN(10) == 0 {
			a, err = quota.Answer{}, errors.New("lost")
		}
		e.gate.Settle(o, a, err)
	}
	for _, i := range e.ready {
		if t := e.jobs[i]; t != nil && e.gate.Enter(t) {
			e.p.cases[i].holds = true
		}
	}
	e.ready = nil
}

// begin has an engine do the job of a ship: the first of an activation, or another attempt.
func (p *port) begin(e *berthEngine, i int) {
	s := p.cases[i]
	if s.at != nil {
		return
	}
	if s.activation == s.ended {
		p.begun++
		s.activation, s.since = s.activation+1, p.begun
	}
	s.at = e
	t := &admission.Ticket[int]{Job: workitem.JobID{byte(i)}, Value: i, Takes: []workitem.Take{{Limit: "berths", N: s.n}}, Own: 1, Holds: []quota.Hold{p.holdOf(i)}}
	e.jobs[i] = t
	if e.gate.Enter(t) {
		s.holds = true
	}
}

// leave ends the job of a ship that holds its berths; it may continue elsewhere.
func (p *port) leave(i int) {
	if s := p.cases[i]; s.at != nil && s.at.jobs[i].Held() {
		s.at.gate.Release(s.at.jobs[i], false)
		delete(s.at.jobs, i)
		s.at = nil
	}
}

// end ends a hold, as an engine sees that whichever did.
func (p *port) end(e *berthEngine, i int) {
	s := p.cases[i]
	if s.at != nil || !s.holds {
		return
	}
	s.holds, s.ended = false, s.activation
	if p.r.IntN(10) > 0 { // otherwise it dies before it can say so
		e.gate.End("berths", "", quota.End{Hold: p.holdOf(i)})
	}
}

func (p *port) kill(e *berthEngine) {
	e.gate.Stop()
	e.dead = true
	for i, t := range e.jobs {
		if t != nil {
			p.cases[i].at = nil
		}
	}
	p.join()
}

func (p *port) check() {
	var n int64
	for _, s := range p.cases {
		if s.holds {
			n += s.n
		}
	}
	require.LessOrEqual(p.t, n, p.berths.N)
}

// Whatever engines do, die and lose, no more is held than there is, and each case comes to its end.
func TestRandomHistoriesOfHolds(t *testing.T) {
	for seed := range testsize.Pick(60, 600, 3000) {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		p := &port{t: t, r: r, clock: virtual.NewClock(), berths: limit.Resource("berths", int64(1+r.IntN(3))), again: quota.Again}
		for range 1 + r.IntN(5) {
			p.cases = append(p.cases, &ship{n: 1 + r.Int64N(p.berths.N)})
		}
		p.join()
		p.join()
		step := func(i int) {
			live := slices.DeleteFunc(slices.Clone(p.engines), func(e *berthEngine) bool { return e.dead })
			e := live[r.IntN(len(live))]
			switch r.IntN(8) {
			case 0, 1:
				p.begin(e, i)
			case 2:
				p.leave(i)
			case 3:
				p.end(e, i)
			case 4:
				if r.IntN(10) == 0 && len(p.engines) < 20 {
					p.kill(e)
				}
			default:
				e.exchange()
			}
			p.clock.Set(p.clock.Now().Add(time.Duration(r.IntN(1500)) * time.Millisecond))
			p.check()
		}
		for range 300 {
			step(r.IntN(len(p.cases)))
		}
		want := make([]int, len(p.cases))
		for i, s := range p.cases {
			want[i] = s.ended + 2
		}
		for n := 0; slices.ContainsFunc(p.cases, func(s *ship) bool { return s.ended < want[slices.Index(p.cases, s)] }); n++ {
			require.Less(t, n, 20_000, "seed %d: a case does not go on", seed)
			step(r.IntN(len(p.cases)))
		}
	}
}

// A case has its hold from before the only engine was opened, and its job comes first in a line in which others wait already. It is asked
// for: nothing that is returned would advance the line.
func TestHolderThatComesFirstAfterARestart(t *testing.T) {
	p := &port{t: t, r: rand.New(rand.NewPCG(1, 1)), clock: virtual.NewClock(), berths: limit.Resource("berths", 1), again: limit.Unknown}
	p.cases = []*ship{{n: 1}, {n: 1}}
	p.join()
	p.begin(p.engines[0], 0)
	p.engines[0].exchange()
	require.True(t, p.cases[0].holds)
	p.kill(p.engines[0])
	e := p.engines[1]
	p.begin(e, 1)
	e.exchange()
	require.False(t, p.cases[1].holds)
	p.begin(e, 0)
	e.exchange()
	require.True(t, e.jobs[0].Held())
}

// A case that has its hold is not done for a moment, between two attempts or in a sleep, while others wait for the hold. It goes on at once: it
// does not wait until the store is asked again, though other engines could have ended the hold meanwhile.
func TestHolderThatComesBackDoesNotWaitForThePause(t *testing.T) {
	p := &port{t: t, r: rand.New(rand.NewPCG(1, 1)), clock: virtual.NewClock(), berths: limit.Resource("berths", 1), again: quota.Again}
	p.cases = []*ship{{n: 1}, {n: 1}, {n: 1}}
	p.join()
	e := p.engines[0]
	p.begin(e, 1)
	e.exchange()
	require.True(t, p.cases[1].holds)
	p.begin(e, 0)
	p.begin(e, 2)
	e.exchange()
	require.False(t, p.cases[0].holds)
	for range 3 {
		p.leave(1)
		p.cases[1].since = 100 // its next attempt is the last in the line
		p.begin(e, 1)
		e.exchange() // no time passes
		require.True(t, e.jobs[1].Held())
		e.exchange() // the first in the line is refused
		require.False(t, p.cases[0].holds)
	}
	p.leave(1)
	p.end(e, 1)
	e.exchange()
	e.exchange()
	require.True(t, p.cases[0].holds)
	p.check()
}

// A limit is raised while the order of a hold is on its way. The refusal is of the old number, so the line asks again: no end of a hold would.
func TestLimitIsRaisedWhileAHoldIsOrdered(t *testing.T) {
	p := &port{t: t, r: rand.New(rand.NewPCG(1, 1)), clock: virtual.NewClock(), berths: limit.Resource("berths", 1), again: limit.Unknown}
	p.cases = []*ship{{n: 1}, {n: 1}}
	p.join()
	e := p.engines[0]
	p.begin(e, 0)
	e.exchange()
	p.begin(e, 1)
	orders := e.gate.Orders(10)
	require.Len(t, orders, 1)
	require.True(t, e.gate.Change(limit.Resource("berths", 2), nil))
	after, _, a, err := quota.Decide(p.row, orders[0].Order, quota.Situation{Self: e.id, Live: p.live(), Now: p.clock.Now().UnixNano()})
	require.NoError(t, err)
	p.row = after
	e.gate.Settle(orders[0], a, nil)
	e.exchange()
	require.True(t, p.cases[1].holds)
}
