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

// fleet is several engines with the rows that they share. An engine that is killed takes what it held with it.
type fleet struct {
	t       *testing.T
	r       *rand.Rand
	clock   *virtual.Clock
	limits  []limit.Limit
	rows    map[string][]byte
	members []*member
	numbers int64 // of engines so far
	calls   []call
	job     int
}

// call is what the checker reads: who began what, and when.
type call struct {
	part  workitem.Take
	at    time.Time
	ended bool
	by    *member
}

type member struct {
	f       *fleet
	id      int64
	dead    bool
	mu      sync.Mutex
	gate    *admission.Gate[int]
	ready   []int
	late    []int // admitted, and not begun
	tickets map[int]*admission.Ticket[int]
	running map[int][]int // indexes of the calls of a job
	ended   int
}

func (f *fleet) join() *member {
	f.numbers++
	m := &member{f: f, id: f.numbers, tickets: make(map[int]*admission.Ticket[int]), running: make(map[int][]int)}
	m.gate = admission.New(admission.Options[int]{
		Lock: &m.mu, Clock: f.clock, Limits: f.limits, Before: func(a, b *int) bool { return *a < *b },
		Ready: func(n int) { m.ready = append(m.ready, n) }, Wake: m.turn,
		Shared: func(l limit.Limit) bool { return l.InStore }, Ask: func() {},
	})
	f.members = append(f.members, m)
	return m
}

// exchange has the store answer what a member asks. Sometimes the answer comes late, and sometimes it is lost.
func (m *member) exchange() {
	if m.dead {
		return
	}
	m.mu.Lock()
	orders := m.gate.Orders(100)
	m.mu.Unlock()
	answers := make([]quota.Answer, len(orders))
	var failed error
	for i, o := range orders {
		in := quota.Situation{Self: m.id, Now: m.f.clock.Now().UnixNano()}
		for _, other := range m.f.members {
			if !other.dead {
				in.Live = append(in.Live, other.id)
			}
		}
		key := o.Limit + "/" + o.Key
		after, _, a, err := quota.Decide(m.f.rows[key], o.Order, in)
		require.NoError(m.f.t, err)
		m.f.rows[key], answers[i] = after, a
		if m.f.r.IntN(30) == 0 {
			failed, answers[i] = errors.New("lost"), quota.Answer{}
		}
	}
	m.f.pass(time.Duration(m.f.r.IntN(40)) * time.Millisecond)
	if m.f.r.IntN(30) == 0 {
		m.rejoin()
	}
	m.mu.Lock()
	for i, o := range orders {
		m.gate.Settle(o, answers[i], failed)
	}
	m.mu.Unlock()
	m.turn()
}

// rejoin has a member that the others take for dead join anew: what runs is lost, and does not count.
func (m *member) rejoin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.f.numbers++
	m.id = m.f.numbers
	for _, calls := range m.running {
		for _, i := range calls {
			m.f.calls[i].ended = true
		}
	}
	m.gate.Rejoined()
}

// turn lets jobs begin, at times later than they were admitted, or not at all.
func (m *member) turn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.late
	m.late = nil
	for _, n := range late {
		m.begin(n)
	}
	for len(m.ready) > 0 && !m.dead {
		n := m.ready[0]
		m.ready = m.ready[1:]
		if !m.gate.Enter(m.tickets[n]) {
			continue
		}
		if m.f.r.IntN(5) == 0 {
			m.late = append(m.late, n)
			continue
		}
		m.begin(n)
	}
}

func (m *member) begin(n int) {
	if m.dead {
		return
	}
	t := m.tickets[n]
	if m.f.r.IntN(10) == 0 || !m.gate.Begin(t) {
		m.gate.Undo(t)
		m.ready = append(m.ready, n)
		return
	}
	for _, p := range t.Takes {
		p.Key, _ = t.KeyOf(p.Limit)
		m.running[n] = append(m.running[n], len(m.f.calls))
		m.f.calls = append(m.f.calls, call{part: p, at: m.f.clock.Now(), by: m})
	}
}

func (m *member) end(n int) {
	m.mu.Lock()
	m.gate.Release(m.tickets[n], false)
	for _, i := range m.running[n] {
		m.f.calls[i].ended = true
	}
	delete(m.running, n)
	m.ended++
	m.mu.Unlock()
	m.turn()
}

func (f *fleet) pass(d time.Duration) {
	f.clock.Set(f.clock.Now().Add(d))
	for _, m := range f.members {
		m.turn()
	}
}

// enter has a member do a job.
func (f *fleet) enter(m *member) {
	f.job++
	var id workitem.JobID
	id[0], id[1] = byte(f.job>>8), byte(f.job)
	var takes []workitem.Take
	for _, l := range f.limits {
		if f.r.IntN(3) > 0 || len(takes) == 0 {
			p := workitem.Take{Limit: l.Name, Key: string(rune('a' + f.r.IntN(2))), N: 1 + f.r.Int64N(l.N)}
			if f.r.IntN(3) == 0 {
				p.Key, p.Any = "", []string{"a", "b"}
			}
			takes = append(takes, p)
		}
	}
	m.mu.Lock()
	m.tickets[f.job] = &admission.Ticket[int]{Job: id, Takes: takes, Value: f.job}
	m.ready = append(m.ready, f.job)
	m.mu.Unlock()
	m.turn()
}

// check is the reference: it looks at what began and ended, and knows no rows.
func (f *fleet) check() {
	for _, l := range f.limits {
		for _, key := range []string{"a", "b"} {
			var held int64
			for i, c := range f.calls {
				if c.part.Limit != l.Name || c.part.Key != key {
					continue
				}
				if l.Algorithm == limit.Slots {
					if !c.ended && !c.by.dead {
						held += c.part.N
					}
					continue
				}
				var n int64
				for _, other := range f.calls[i:] {
					if other.part.Limit == l.Name && other.part.Key == key && other.at.Before(c.at.Add(l.Per)) {
						n += other.part.N
					}
				}
				require.LessOrEqual(f.t, n, l.AnyWindow(l.N), "%v of %s", l, key)
			}
			require.LessOrEqual(f.t, held, l.N, "%v of %s", l, key)
		}
	}
}

// Random histories of several engines, of which some are killed and some are taken for dead and join anew, and of answers that are late or lost: no limit is exceeded, and
// in the end every job of those that live is done.
func TestRandomHistoriesOfSharedLimits(t *testing.T) {
	algorithms := []limit.Algorithm{limit.SlidingWindow, limit.GCRA, limit.TokenBucket, limit.FixedWindow, limit.LeakyBucket}
	for seed := range testsize.Pick(10, 40, 2000) {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		f := &fleet{t: t, r: r, clock: virtual.NewClock(), rows: make(map[string][]byte), limits: []limit.Limit{
			limit.Resource("slots", 1+r.Int64N(3)).Shared(),
			limit.Rate("rate", 2+r.Int64N(40), time.Duration(1+r.IntN(20))*time.Second, algorithms[seed%len(algorithms)]).Shared(),
		}}
		f.join()
		f.join()
		for range 120 {
			m := f.members[r.IntN(len(f.members))]
			switch r.IntN(8) {
			case 0, 1, 2:
				if !m.dead {
					f.enter(m)
				}
			case 3, 4:
				m.exchange()
			case 5:
				f.pass(time.Duration(r.IntN(3000)) * time.Millisecond)
			case 6:
				f.endOne(m)
			case 7:
				switch how := r.IntN(6); {
				case m.dead:
				case how == 0:
					m.kill()
					f.join()
				case how < 3:
					m.rejoin()
				}
			}
			f.check()
		}
		left := func() (n int) {
			for _, m := range f.members {
				if !m.dead {
					n += len(m.tickets) - m.ended
				}
			}
			return n
		}
		for range 100_000 {
			for _, m := range f.members {
				m.exchange()
				f.endOne(m)
			}
			f.pass(20 * time.Millisecond)
			if left() == 0 {
				break
			}
		}
		require.Zero(t, left(), "seed %d", seed)
		f.check()
	}
}

func (f *fleet) endOne(m *member) {
	if m.dead || len(m.running) == 0 {
		return
	}
	var all []int
	for n := range m.running {
		all = append(all, n)
	}
	m.end(slices.Min(all))
}

// kill ends a member with all it runs.
func (m *member) kill() {
	m.mu.Lock()
	m.dead = true
	m.gate.Stop()
	m.mu.Unlock()
}

// What a lowered limit has granted before is returned, also if the grant was on its way: a limit that is set to 0 admits nothing.
func TestALoweredLimitReturnsItsPortion(t *testing.T) {
	for name, late := range map[string]bool{"granted before": false, "granted after": true} {
		t.Run(name, func(t *testing.T) {
			rate := limit.Rate("calls", 100, time.Minute, limit.SlidingWindow).Shared()
			var mu sync.Mutex
			var ready []int
			g := admission.New(admission.Options[int]{
				Lock: &mu, Clock: virtual.NewClock(), Limits: []limit.Limit{rate}, Before: func(a, b *int) bool { return *a < *b },
				Ready: func(n int) { ready = append(ready, n) }, Wake: func() {}, Shared: func(limit.Limit) bool { return true }, Ask: func() {},
			})
			paused := rate
			paused.N = 0
			ticket := func(n int) *admission.Ticket[int] {
				return &admission.Ticket[int]{Job: workitem.JobID{byte(n)}, Takes: []workitem.Take{{Limit: "calls", N: 1}}, Value: n}
			}
			first := ticket(1)
			require.False(t, g.Enter(first))
			orders := g.Orders(1)
			require.Len(t, orders, 1)
			if late {
				require.True(t, g.Change(paused, nil))
			}
			g.Settle(orders[0], quota.Answer{Grant: limit.Grant{N: 3, Mark: 1}}, nil)
			if !late {
				require.Equal(t, []int{1}, ready)
				require.True(t, g.Enter(first))
				require.True(t, g.Change(paused, nil))
			}
			require.False(t, g.Enter(ticket(2)))
			again := g.Orders(1)
			require.Len(t, again, 1)
			require.NotNil(t, again[0].Order.Back, "what is left is returned")
		})
	}
}
