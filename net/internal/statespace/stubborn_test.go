package statespace

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Leaving out moves keeps the shortest runs to a deadlock and to improper completion: on random systems, with
// weights, inhibitor arcs, and an end or none, they are as long as those that a search of all moves finds.
func TestStubbornSetsKeepShortestRuns(t *testing.T) {
	compared, spared := 0, 0
	for seed := range uint64(40_000) {
		sys := randomSystem(rand.New(rand.NewPCG(seed, 1)))
		all := NewSearch(sys, Budget{States: 2000, MoreStates: 2000, Bytes: testBytes})
		all.Run(2000, testBytes)
		if !all.whole || len(all.SecondTokens)+len(all.Coverings) > 0 {
			continue // runs that leave the search are not comparable
		}
		few := NewStubbornSearch(sys, Budget{States: 2000, MoreStates: 2000, Bytes: testBytes})
		few.Run(2000, testBytes)
		require.Equal(t, all.length(all.Deadlock), few.length(few.Deadlock), "seed %d: deadlock\n%s", seed, sys)
		require.Equal(t, all.length(all.Improper), few.length(few.Improper), "seed %d: improper completion\n%s", seed, sys)
		require.False(t, few.Exact(), "what was left out is not known")
		if compared++; few.States.Len() < all.States.Len() {
			spared++
		}
	}
	require.Greater(t, compared, 10_000)
	require.Greater(t, spared, 1000)
}

// Moves whose effect on others does not show in their arcs are never left out.
func TestStubbornSetsRequirePlainMoves(t *testing.T) {
	plain := Move{OrJoin: -1, In: []Arc{{Place: 0, Weight: 1}}, Out: []Arc{{Place: 1, Weight: 1}}}
	for name, change := range map[string]func(*Move){
		"an or-join":           func(m *Move) { m.OrJoin = 0 },
		"a routing task":       func(m *Move) { m.Urgent = true },
		"a region's places":    func(m *Move) { m.Resets = []int32{1} },
		"a region's tasks":     func(m *Move) { m.MemberResets = make([]MemberReset, 1) },
		"a move from nothing":  func(m *Move) { m.In = nil },
		"none of all of these": func(*Move) {},
	} {
		m := plain
		change(&m)
		sys := &System{Places: 2, End: 1, Moves: []Move{plain, m}}
		require.Equal(t, name == "none of all of these", newStubborn(sys) != nil, name)
	}
}

const testBytes = 8 << 20

// length is that of the run to a state, -1 if there is none.
func (x *Search) length(state int32) int {
	if state < 0 {
		return -1
	}
	return len(x.RunTo(state))
}

// String lists the moves of a system.
func (sys *System) String() string {
	s := fmt.Sprintf("start %v, end %d, safe %v\n", sys.Start, sys.End, sys.Safe)
	for i := range sys.Moves {
		m := &sys.Moves[i]
		s += fmt.Sprintf("  %v, none in %v -> %v\n", m.In, m.Inhibitors, m.Out)
	}
	return s
}

// randomSystem makes a system of some places and moves at random. Most take as much as they put, so that most runs end.
func randomSystem(rng *rand.Rand) *System {
	sys := &System{Places: 3 + rng.IntN(6), End: -1, MaxTokens: MaxCount, Safe: rng.IntN(2) == 0}
	if rng.IntN(3) > 0 {
		sys.End = int32(sys.Places - 1)
	}
	sys.Start = make([]uint8, sys.Places)
	for range 1 + rng.IntN(4) {
		sys.Start[rng.IntN(sys.Places-1)] = 1
	}
	arcs := func(n, places int) []Arc {
		var list []Arc
		for _, p := range rng.Perm(places)[:min(n, places)] {
			a := Arc{Place: int32(p), Weight: 1}
			if !sys.Safe && rng.IntN(8) == 0 {
				a.Weight = 2
			}
			list = append(list, a)
		}
		return list
	}
	open := sys.Places
	if sys.End >= 0 {
		open-- // nothing takes from the end
	}
	for k := range 3 + rng.IntN(8) {
		m := Move{OrJoin: -1, Task: int32(k), Label: int32(k)}
		m.In, m.Out = arcs(1+rng.IntN(2), open), arcs(rng.IntN(3), sys.Places)
		for range rng.IntN(2) * rng.IntN(2) {
			if p := int32(rng.IntN(open)); indexArc(m.In, p) < 0 {
				m.Inhibitors = append(m.Inhibitors, p)
			}
		}
		sys.Moves = append(sys.Moves, m)
	}
	sys.Prepare()
	return sys
}

func indexArc(arcs []Arc, place int32) int {
	for i, a := range arcs {
		if a.Place == place {
			return i
		}
	}
	return -1
}
