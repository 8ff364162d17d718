package admission_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// decide has the store answer what a member asks, of which two are live.
func (m *member) decide() (orders []admission.Order[int], answers []quota.Answer) {
	orders = m.gate.Orders(10)
	for _, o := range orders {
		after, _, a, err := quota.Decide(m.f.rows[o.Limit], o.Order, quota.Situation{Self: m.id, Live: []int64{m.f.members[0].id, m.f.members[1].id}, Now: 1})
		require.NoError(m.f.t, err)
		m.f.rows[o.Limit], answers = after, append(answers, a)
	}
	return orders, answers
}

func (m *member) settle(orders []admission.Order[int], answers []quota.Answer) {
	for i := range orders {
		m.gate.Settle(orders[i], answers[i], nil)
	}
}

// A slot that an engine was granted before the others took it for dead is not used by it: it may be another engine's. The engine asks for it
// again as the one that it is now.
func TestASlotOfAnEngineThatJoinsAnewIsNotUsed(t *testing.T) {
	for _, when := range []string{"before the answer", "before its job enters", "before its job begins"} {
		t.Run(when, func(t *testing.T) {
			f := &fleet{t: t, r: rand.New(rand.NewPCG(1, 1)), clock: virtual.NewClock(), rows: make(map[string][]byte),
				limits: []limit.Limit{limit.Resource("slots", 1).Shared()}}
			job := func() *admission.Ticket[int] {
				f.job++
				return &admission.Ticket[int]{Job: workitem.JobID{byte(f.job)}, Takes: []workitem.Take{{Limit: "slots", N: 1}}, Value: f.job}
			}
			a, b := f.join(), f.join()
			mine, other := job(), job()

			require.False(t, a.gate.Enter(mine))
			orders, answers := a.decide()
			if when == "before the answer" {
				a.rejoin()
			}
			a.settle(orders, answers)
			if when == "before its job enters" {
				a.rejoin()
			}
			entered := a.gate.Enter(mine)
			require.Equal(t, when == "before its job begins", entered)
			if entered {
				a.rejoin()
				require.False(t, a.gate.Begin(mine), "with a slot that another engine may have")
				a.gate.Undo(mine)
				mine = mine.Again()
			}

			require.False(t, b.gate.Enter(other))
			b.settle(b.decide())
			require.Len(t, b.ready, 1, "what the dead engine had is free")
			require.True(t, b.gate.Enter(other))
			require.True(t, b.gate.Begin(other))

			a.ready = nil
			if !mine.Waits() {
				require.False(t, a.gate.Enter(mine))
			}
			a.settle(a.decide())
			require.Empty(t, a.ready, "the other engine has it")
			b.gate.Release(other, false)
			b.settle(b.decide())
			f.clock.Set(f.clock.Now().Add(time.Second))
			a.settle(a.decide())
			require.Len(t, a.ready, 1)
			require.True(t, a.gate.Enter(mine))
			require.True(t, a.gate.Begin(mine))
		})
	}
}
