package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// shelf is the row of one limit, with the engines that are alive.
type shelf struct {
	t    require.TestingT
	l    limit.Limit
	row  []byte
	live []int64
	now  time.Duration
}

func (s *shelf) order(engine int64, o quota.Order) quota.Answer {
	o.Limit = s.l
	after, _, a, err := quota.Decide(s.row, o, quota.Situation{Self: engine, Live: s.live, Now: int64(s.now)})
	require.NoError(s.t, err)
	s.row = after
	return a
}

func (s *shelf) slots(engine, held, want int64) int64 {
	return s.order(engine, quota.Order{Held: held, Least: min(want, 1), Want: want}).Grant.N
}

func TestSlotsAreCountedForEachEngine(t *testing.T) {
	s := &shelf{t: t, l: limit.Resource("gpus", 4), live: []int64{1, 2}}
	require.EqualValues(t, 3, s.slots(1, 0, 3))
	require.EqualValues(t, 1, s.slots(2, 0, 3), "what is left")
	require.Zero(t, s.slots(1, 3, 1))
	require.Zero(t, s.slots(2, 0, 0), "engine 2 gives its slot back, and needs none")
	require.EqualValues(t, 1, s.slots(1, 3, 5))
}

func TestSlotsOfAnEngineThatIsNotAliveAreFree(t *testing.T) {
	s := &shelf{t: t, l: limit.Resource("gpus", 4), live: []int64{1, 2}}
	require.EqualValues(t, 4, s.slots(1, 0, 4))
	a := s.order(2, quota.Order{Least: 1, Want: 1})
	require.Zero(t, a.Grant.N)
	require.Equal(t, limit.Unknown, a.Wait, "no passing of time gives slots back")
	s.live = []int64{2}
	require.EqualValues(t, 4, s.slots(2, 0, 4))
}

// Engine 1 asks for all four slots while two are taken. What engine 2 gives back is kept for it, although engine 3 asks for less.
func TestALargeOrderIsNotStarvedBySmallOnes(t *testing.T) {
	s := &shelf{t: t, l: limit.Resource("gpus", 4), live: []int64{1, 2, 3}}
	require.EqualValues(t, 2, s.slots(2, 0, 2))
	all := quota.Order{Least: 4, Want: 4}
	require.Zero(t, s.order(1, all).Grant.N)
	require.Zero(t, s.slots(3, 0, 1), "two are free, and wait for engine 1")
	require.Zero(t, s.slots(2, 0, 0))
	require.Zero(t, s.slots(3, 0, 1))
	require.EqualValues(t, 4, s.order(1, all).Grant.N)
}

// An engine that has not asked for three seconds waits no longer, and one that died does not either.
func TestEngineWithoutOrdersLosesItsPlace(t *testing.T) {
	for name, leave := range map[string]func(*shelf){
		"silent": func(s *shelf) { s.now += 3*quota.Again + 1 },
		"dead":   func(s *shelf) { s.live = []int64{2, 3} },
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{t: t, l: limit.Resource("gpus", 4), live: []int64{1, 2, 3}}
			require.EqualValues(t, 2, s.slots(2, 0, 2))
			require.Zero(t, s.order(1, quota.Order{Least: 4, Want: 4}).Grant.N)
			s.now += 3 * quota.Again
			require.Zero(t, s.slots(3, 0, 1), "engine 1 still waits")
			leave(s)
			require.EqualValues(t, 1, s.slots(3, 0, 1))
		})
	}
}

// Who has got what it asked for, or needs nothing any more, is behind those that come later.
func TestServedEngineLeavesTheQueue(t *testing.T) {
	s := &shelf{t: t, l: limit.Resource("gpus", 4), live: []int64{1, 2, 3}}
	require.EqualValues(t, 4, s.slots(2, 0, 4))
	require.Zero(t, s.slots(1, 0, 2))
	require.Zero(t, s.slots(2, 2, 0))
	require.EqualValues(t, 2, s.slots(1, 0, 2))
	require.Zero(t, s.slots(2, 0, 0))
	require.EqualValues(t, 2, s.slots(3, 0, 2), "engine 1 has its slots")
}

// A limit that was made smaller keeps room only for as much as it has.
func TestOrderAboveReducedLimit(t *testing.T) {
	s := &shelf{t: t, l: limit.Resource("gpus", 2), live: []int64{1, 2}}
	require.Zero(t, s.order(1, quota.Order{Least: 3, Want: 3}).Grant.N)
	s.l.N = 3
	require.EqualValues(t, 1, s.slots(2, 0, 1), "two of three wait for engine 1")
}

func TestExpiryOfARow(t *testing.T) {
	gpus, calls := limit.Resource("gpus", 1), limit.Rate("calls", 10, time.Minute, limit.FixedWindow)
	in := quota.Situation{Self: 1, Live: []int64{1, 2}, Now: int64(time.Hour)}
	until := func(row []byte, o quota.Order) ([]byte, int64) {
		after, until, _, err := quota.Decide(row, o, in)
		require.NoError(t, err)
		return after, until
	}
	row, last := until(nil, quota.Order{Limit: gpus, Least: 1, Want: 1})
	require.EqualValues(t, quota.Forever, last, "a slot is taken until it is given back")
	_, last = until(row, quota.Order{Limit: gpus})
	require.Zero(t, last, "nothing is taken, and no engine waits")
	row, last = until(nil, quota.Order{Limit: calls, Least: 10, Want: 10})
	require.Greater(t, last, in.Now)
	require.Less(t, last, in.Now+int64(2*time.Minute), "the window, and as long as a portion may be used")
	paused := calls
	paused.N = 0
	row, last = until(row, quota.Order{Limit: paused})
	require.EqualValues(t, quota.Forever, last, "what was taken counts when it is more again")
	in.Now += int64(2 * time.Minute)
	_, last = until(row, quota.Order{Limit: calls})
	require.Zero(t, last)
	in.Self = 2
	row, _ = until(nil, quota.Order{Limit: gpus, Held: 1})
	in.Self, in.Live = 1, []int64{1, 2}
	row, _ = until(row, quota.Order{Limit: gpus, Least: 1, Want: 1})
	in.Self = 2
	_, last = until(row, quota.Order{Limit: gpus})
	require.Equal(t, in.Now+int64(3*quota.Again), last, "engine 1 waits")
}

func TestAPortionThatWasNotUsedIsGivenBack(t *testing.T) {
	s := &shelf{t: t, l: limit.Rate("tokens", 100, time.Minute, limit.SlidingWindow), live: []int64{1, 2}}
	portion := s.order(1, quota.Order{Least: 100, Want: 100}).Grant
	require.EqualValues(t, 100, portion.N)
	refused := s.order(2, quota.Order{Least: 1, Want: 50})
	require.Zero(t, refused.Grant.N)
	require.Positive(t, refused.Wait)
	s.order(1, quota.Order{Back: &portion, Used: 30})
	require.EqualValues(t, 50, s.order(2, quota.Order{Least: 1, Want: 50}).Grant.N)
}

func TestARowThatCannotBeReadIsAnError(t *testing.T) {
	for _, l := range []limit.Limit{limit.Resource("gpus", 4), limit.Rate("calls", 4, time.Minute, limit.GCRA)} {
		for _, row := range []string{`{`, `[]`, `{"state":"AQ=="}`, `{"held":{"x":1}}`} {
			_, _, a, err := quota.Decide([]byte(row), quota.Order{Limit: l, Least: 1, Want: 1}, quota.Situation{Self: 1, Live: []int64{1}})
			if l.Algorithm == limit.Slots && row == `{"state":"AQ=="}` {
				require.NoError(t, err, "slots have no state of a rate")
				continue
			}
			require.ErrorContains(t, err, l.Name, row)
			require.Zero(t, a)
		}
	}
}

// However engines ask, give back, die and come: no more slots are used than there are, and an engine alone gets all that are free.
func TestSlotsAreNeverGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &shelf{t: t, l: limit.Resource("gpus", rapid.Int64Range(1, 8).Draw(t, "slots")), live: []int64{1, 2, 3}}
		held := make(map[int64]int64)
		total := func() (n int64) {
			for _, h := range held {
				n += h
			}
			return n
		}
		engine := func() int64 { return rapid.SampledFrom(s.live).Draw(t, "engine") }
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				e, least := engine(), rapid.Int64Range(1, s.l.N).Draw(t, "least")
				want := rapid.Int64Range(least, s.l.N).Draw(t, "want")
				free := s.l.N - total()
				a := s.order(e, quota.Order{Held: held[e], Least: least, Want: want})
				got := a.Grant.N
				require.Equal(t, total()+got, a.Taken)
				require.True(t, got == 0 || got >= least && got <= min(want, free), "%d of %d to %d, %d free", got, least, want, free)
				if len(s.live) == 1 && free >= least {
					require.Equal(t, min(want, free), got)
				}
				held[e] += got
			},
			"give back": func(t *rapid.T) {
				e := engine()
				held[e] = rapid.Int64Range(0, held[e]).Draw(t, "left")
				require.Equal(t, total(), s.order(e, quota.Order{Held: held[e]}).Taken)
			},
			"die": func(*rapid.T) {
				if len(s.live) > 1 {
					delete(held, s.live[0])
					s.live = s.live[1:]
				}
			},
			"come": func(*rapid.T) { s.live = append(s.live, s.live[len(s.live)-1]+1) },
			"wait": func(t *rapid.T) {
				s.now += time.Duration(rapid.Int64Range(0, int64(2*quota.Again)).Draw(t, "wait"))
			},
		})
	})
}

// Who looks at a row learns what an engine would that asked last, and changes nothing.
func TestLookReturnsWait(t *testing.T) {
	in := quota.Situation{Self: 1, Live: []int64{1, 2}, Now: 1e18}
	slots, calls := limit.Resource("db", 3).Shared(), limit.Calls(10, time.Minute).Shared()
	wait := func(row []byte, l limit.Limit, n int64) time.Duration {
		t.Helper()
		before := string(row)
		out, err := quota.Look(row, l, n, nil, in)
		require.NoError(t, err)
		require.Equal(t, before, string(row))
		return out.Wait
	}
	require.Zero(t, wait(nil, slots, 3))
	row, _, _, err := quota.Decide(nil, quota.Order{Limit: slots, Least: 2, Want: 2}, in)
	require.NoError(t, err)
	require.Zero(t, wait(row, slots, 1))
	require.Equal(t, limit.Unknown, wait(row, slots, 2), "the slots of the engine that looks count, too")
	row, _, _, err = quota.Decide(nil, quota.Order{Limit: calls, Least: 8, Want: 8}, in)
	require.NoError(t, err)
	require.Zero(t, wait(row, calls, 2))
	in.Now += int64(20 * time.Second)
	require.InDelta(t, 40*time.Second, wait(row, calls, 3), float64(2*time.Second))
}

// Who looks learns which cases hold slots, and that a case which holds them waits for nothing.
func TestLookReturnsHolders(t *testing.T) {
	in := quota.Situation{Self: 1, Live: []int64{1}, Now: 1e18}
	crane, of := limit.Resource("crane", 2), quota.Hold{Case: workitem.CaseID{1}, Task: "load", N: 2, Activation: 1}
	row, until, _, err := quota.Decide(nil, quota.Order{Limit: crane, Least: 2, Want: 2, For: &of}, in)
	require.NoError(t, err)
	require.EqualValues(t, quota.Forever, until)
	require.Contains(t, string(row), quota.HasHolds)
	out, err := quota.Look(row, crane, 1, nil, in)
	require.NoError(t, err)
	require.Equal(t, quota.Outlook{Wait: limit.Unknown, Taken: 2, Holds: []quota.Hold{of}}, out)
	out, err = quota.Look(row, crane, 2, &quota.Hold{Case: of.Case, Task: "load", N: 2}, in)
	require.NoError(t, err)
	require.Zero(t, out.Wait, "it has them")
	require.EqualValues(t, 2, out.Taken)

	row, _, _, err = quota.Decide(row, quota.Order{Limit: crane, Ended: []quota.End{{Hold: of}}}, in)
	require.NoError(t, err)
	require.NotContains(t, string(row), quota.HasHolds)
	_, err = quota.Look([]byte("{"), crane, 1, nil, in)
	require.ErrorContains(t, err, "the row of limit crane cannot be read")
}
