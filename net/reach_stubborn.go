package net

import "slices"

// stubborn picks, in a state, some of the moves that can be made there, such that looking at those alone still finds
// the shortest runs that get stuck or complete improperly. Of branches that run side by side and have nothing to do
// with each other it follows one after the other, instead of every way to mix them:
//
//	start -> fork -> a1 -> a2 -> a3 -> join     20 ways, and 16 states, of two branches with three tasks each;
//	         fork -> b1 -> b2 -> b3 -> join     1 way, and 7 states, if the first branch is always gone first
//
// The set that it picks from is closed (Valmari's stubborn sets; here for weighted arcs and tests for emptiness):
//
//  1. With a move that can be made, it holds every move that could disable it or be disabled by it: those that take
//     from the same places, and those that put where one of the two asks for nothing.
//  2. With a move that cannot be made, it holds every move that could mend one of the reasons: all that put into an
//     input that lacks tokens, or all that take from a place that must be empty.
//  3. It holds every move that ends the run, and one that can be made, if there is any.
//
// Why that suffices: take a shortest run that gets stuck or completes improperly, and the set of the state that it
// starts from. Some move of the run is in the set: the last one if it ends the run (3); else, would none be, the one
// that can be made (3) could still be made when the run is stuck, for nothing had disabled it (1). The first such move
// can be made at once, since what mends a reason against it would be in the set too (2). It can be swapped with all
// before it (1): the run stays as long, and ends where it did. (If it is the one that ends the run, there is nothing
// before it: without that the run would be shorter, and leave as much.) So one of the shortest runs begins in the set,
// and the same holds for what follows.
//
// What else may be wrong is not kept: a second token in a place, growth, loops that never end.
type stubborn struct {
	g     *game
	from  [][]int32 // by place, the moves that take from it
	into  [][]int32 // by place, the moves that put into it
	asks  [][]int32 // by place, the moves that ask for it to be empty
	in    []bool    // by move, whether the set holds it
	set   []int32
	ready []int32 // of the set, those that can be made
	best  []int32
	work  int // places that were asked, and moves that were to be put into sets
}

// maxSparing bounds the work of one search. Most sets are small; where they hold thousands of moves each, as in a net of
// thousands of tasks in a row, it costs less to make all moves.
const maxSparing = 3 << 20

// maxTests bounds the tests for emptiness of a game. An xor-join of n inputs has n²/2 of them, and a set knows every one
// by itself.
const maxTests = 1 << 20

// tests counts the places that moves ask to be empty.
func (g *game) tests() int {
	n := 0
	for i := range g.moves {
		n += len(g.moves[i].empty)
	}
	return n
}

// newStubborn returns nil for a game with moves of other kinds: or-joins and regions look at many places at once,
// urgent moves let the others wait, and what takes nothing adds to what is left of a case that could be complete. Nor is
// it for games with millions of tests for emptiness, see [game.tests].
func newStubborn(g *game) *stubborn {
	if g.tests() > maxTests {
		return nil
	}
	s := &stubborn{
		g: g, from: make([][]int32, g.places), into: make([][]int32, g.places), asks: make([][]int32, g.places),
		in: make([]bool, len(g.moves)),
	}
	for k := range g.moves {
		m := &g.moves[k]
		if m.or >= 0 || m.urgent || len(m.resets)+len(m.spares) > 0 || len(m.in) == 0 {
			return nil
		}
		for _, a := range m.in {
			s.from[a.place] = append(s.from[a.place], int32(k))
		}
		for _, a := range m.out {
			s.into[a.place] = append(s.into[a.place], int32(k))
		}
		for _, p := range m.empty {
			s.asks[p] = append(s.asks[p], int32(k))
		}
	}
	return s
}

// moves lists moves that it suffices to make in a state: none only if there are none at all. The list is good until
// the next call.
func (s *stubborn) moves(state []uint8, marked []int32) []int32 {
	s.best = s.best[:0]
	s.clear()
	if s.g.end >= 0 {
		s.addAll(s.into[s.g.end])
		if s.close(0, state); len(s.ready) > 0 {
			return s.ready // any other set holds these too
		}
	}
	base := len(s.set)
	for _, p := range marked {
		for _, k := range s.g.candidates(int(p)) {
			if !s.g.enabled(&s.g.moves[k], state) || slices.Contains(s.best, k) {
				continue
			}
			s.add(k)
			s.close(base, state)
			if len(s.best) == 0 || len(s.ready) < len(s.best) {
				s.best = append(s.best[:0], s.ready...)
			}
			if len(s.best) == 1 {
				return s.best
			}
			s.cut(base)
		}
	}
	return s.best
}

// close adds what the members of the set from a position on ask for.
func (s *stubborn) close(from int, state []uint8) {
	for at := from; at < len(s.set); at++ {
		k := s.set[at]
		m := &s.g.moves[k]
		lacks, bar := s.reason(m, state)
		switch {
		case lacks >= 0:
			s.addAll(s.into[lacks])
		case bar >= 0:
			s.addAll(s.from[bar])
		default:
			if s.work > maxSparing {
				return // the search is over
			}
			s.ready = append(s.ready, k)
			s.addRivals(m)
		}
	}
}

// reason says why a move cannot be made: an input that lacks tokens, or a place that must be empty; -1 for none. Of
// several inputs it is the one that the fewest moves put into.
func (s *stubborn) reason(m *gameMove, state []uint8) (lacks, bar int32) {
	lacks = -1
	s.work += len(m.in)
	for _, a := range m.in {
		if state[a.place] < a.n && (lacks < 0 || len(s.into[a.place]) < len(s.into[lacks])) {
			lacks = a.place
		}
	}
	for _, p := range m.empty {
		if state[p] != 0 {
			return lacks, p
		}
	}
	return lacks, -1
}

// addRivals adds the moves that could disable one, or be disabled by it.
func (s *stubborn) addRivals(m *gameMove) {
	for _, a := range m.in {
		s.addAll(s.from[a.place])
	}
	for _, p := range m.empty {
		s.addAll(s.into[p])
	}
	for _, a := range m.out {
		s.addAll(s.asks[a.place])
	}
}

func (s *stubborn) addAll(moves []int32) {
	s.work += len(moves)
	for _, k := range moves {
		s.add(k)
	}
}

func (s *stubborn) add(k int32) {
	if !s.in[k] {
		s.in[k] = true
		s.set = append(s.set, k)
	}
}

// clear empties the set.
func (s *stubborn) clear() { s.cut(0) }

// cut leaves the first n members of the set, none of which can be made.
func (s *stubborn) cut(n int) {
	for _, k := range s.set[n:] {
		s.in[k] = false
	}
	s.set, s.ready = s.set[:n], s.ready[:0]
}
