package net

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Leaving out moves keeps the shortest runs that get stuck and that complete improperly: on random games, with weights,
// tests for emptiness, and an end or none, they are as long as those that a search of all moves finds.
func TestStubbornSetsKeepShortestRuns(t *testing.T) {
	compared, spared := 0, 0
	for seed := range uint64(40_000) {
		g := wildGame(rand.New(rand.NewPCG(seed, 1)))
		all := newExplorer(g, searchLimits{states: 2000, more: 2000, bytes: fewBytes})
		all.run(2000, fewBytes)
		if !all.whole || len(all.crowds)+len(all.pumps) > 0 {
			continue // runs that leave the search are not comparable
		}
		few := spare(g, searchLimits{states: 2000, more: 2000, bytes: fewBytes})
		require.Equal(t, all.length(all.stuck), few.length(few.stuck), "seed %d: stuck\n%s", seed, g)
		require.Equal(t, all.length(all.spilled), few.length(few.spilled), "seed %d: improper completion\n%s", seed, g)
		require.False(t, few.exact(), "what was left out is not known")
		if compared++; few.s.len() < all.s.len() {
			spared++
		}
	}
	require.Greater(t, compared, 10_000)
	require.Greater(t, spared, 1000)
}

// Moves whose effect on others cannot be told from their places are never left out.
func TestStubbornSetsAskForPlainMoves(t *testing.T) {
	plain := gameMove{or: -1, in: []gameArc{{place: 0, n: 1}}, out: []gameArc{{place: 1, n: 1}}}
	for name, change := range map[string]func(*gameMove){
		"an or-join":           func(m *gameMove) { m.or = 0 },
		"a routing task":       func(m *gameMove) { m.urgent = true },
		"a region's places":    func(m *gameMove) { m.resets = []int32{1} },
		"a region's tasks":     func(m *gameMove) { m.spares = make([]gameSpare, 1) },
		"a move from nothing":  func(m *gameMove) { m.in = nil },
		"none of all of these": func(*gameMove) {},
	} {
		m := plain
		change(&m)
		g := &game{places: 2, end: 1, moves: []gameMove{plain, m}}
		require.Equal(t, name == "none of all of these", newStubborn(g) != nil, name)
	}
}

// length is that of the run to a state, -1 if there is none.
func (x *explorer) length(state int32) int {
	if state < 0 {
		return -1
	}
	return len(x.runTo(state))
}

// String lists the moves of a game.
func (g *game) String() string {
	s := fmt.Sprintf("start %v, end %d, safe %v\n", g.start, g.end, g.safe)
	for i := range g.moves {
		m := &g.moves[i]
		s += fmt.Sprintf("  %v, none in %v -> %v\n", m.in, m.empty, m.out)
	}
	return s
}

// wildGame makes a game of some places and moves at random. Most take as much as they put, so that most games end.
func wildGame(rng *rand.Rand) *game {
	g := &game{places: 3 + rng.IntN(6), end: -1, most: maxCount, safe: rng.IntN(2) == 0}
	if rng.IntN(3) > 0 {
		g.end = int32(g.places - 1)
	}
	g.start = make([]uint8, g.places)
	for range 1 + rng.IntN(4) {
		g.start[rng.IntN(g.places-1)] = 1
	}
	arcs := func(n, places int) []gameArc {
		var list []gameArc
		for _, p := range rng.Perm(places)[:min(n, places)] {
			a := gameArc{place: int32(p), n: 1}
			if !g.safe && rng.IntN(8) == 0 {
				a.n = 2
			}
			list = append(list, a)
		}
		return list
	}
	open := g.places
	if g.end >= 0 {
		open-- // nothing takes from the end
	}
	for k := range 3 + rng.IntN(8) {
		m := gameMove{or: -1, task: int32(k), label: int32(k)}
		m.in, m.out = arcs(1+rng.IntN(2), open), arcs(rng.IntN(3), g.places)
		for range rng.IntN(2) * rng.IntN(2) {
			if p := int32(rng.IntN(open)); indexGameArc(m.in, p) < 0 {
				m.empty = append(m.empty, p)
			}
		}
		g.moves = append(g.moves, m)
	}
	g.index()
	return g
}

func indexGameArc(arcs []gameArc, place int32) int {
	for i, a := range arcs {
		if a.place == place {
			return i
		}
	}
	return -1
}
