package statespace

import "slices"

// stubborn picks, in a state, some of the enabled moves, such that making those alone still finds the shortest runs to a
// deadlock and to improper completion. Of parallel branches that are independent it follows one after the other,
// instead of every interleaving:
//
//	start -> fork -> a1 -> a2 -> a3 -> join     20 runs, and 16 states, of two branches with three tasks each;
//	         fork -> b1 -> b2 -> b3 -> join     1 run, and 7 states, if the first branch is always completed first
//
// The set that it picks from is closed (Valmari's stubborn sets; here for weighted arcs and inhibitor arcs):
//
//  1. With an enabled move, it holds every move that could disable it or be disabled by it: those that take from the
//     same places, and those that put into a place from which one of the two has an inhibitor arc.
//  2. With a move that is not enabled, it holds every move that could remove one of the reasons: all that put into an
//     input that lacks tokens, or all that take from a place that must be empty.
//  3. It holds every move that ends the run, and an enabled one, if there is any.
//
// Why that suffices: take a shortest run that deadlocks or completes improperly, and the set of the state that it
// starts from. Some move of the run is in the set: the last one if it ends the run (3); else, would none be, the enabled
// one (3) would still be enabled in the deadlock, for nothing had disabled it (1). The first such move is enabled at
// once, since what removes a reason against it would be in the set too (2). It can be swapped with all before it (1):
// the run stays as long, and ends where it did. (If it is the one that ends the run, there is nothing before it: without
// that the run would be shorter, and leave as much.) So one of the shortest runs begins in the set, and the same holds
// for what follows.
//
// Other faults are not preserved: a second token in a place, unbounded places, loops without an exit.
type stubborn struct {
	sys      *System
	from     [][]int32 // by place: the moves that take from it
	into     [][]int32 // by place: the moves that put into it
	inhibits [][]int32 // by place: the moves with an inhibitor arc from it
	in       []bool    // by move: whether the set holds it
	set      []int32
	ready    []int32 // of the set, the enabled moves
	best     []int32 // the smallest ready so far
	work     int     // places that were looked at, and moves that were to be put into sets
}

// maxStubbornWork bounds the work of one search. Most sets are small; where they hold thousands of moves each, as in a
// net of thousands of tasks in a row, it costs less to make all moves.
const maxStubbornWork = 3 << 20

// maxInhibitors bounds the inhibitor arcs of a system. An xor-join of n inputs has n²/2 of them, and each is listed.
const maxInhibitors = 1 << 20

// countInhibitors counts the inhibitor arcs.
func (sys *System) countInhibitors() int {
	n := 0
	for i := range sys.Moves {
		n += len(sys.Moves[i].Inhibitors)
	}
	return n
}

// newStubborn returns nil for a system with moves of other kinds: or-joins and regions depend on many places at once,
// urgent moves disable all others, and a move that takes nothing adds to what is left over in a run that could be
// complete. Nor is it for systems with millions of inhibitor arcs.
func newStubborn(sys *System) *stubborn {
	if sys.countInhibitors() > maxInhibitors {
		return nil
	}
	s := &stubborn{
		sys: sys, from: sys.takers(), into: sys.givers(), inhibits: make([][]int32, sys.Places), in: make([]bool, len(sys.Moves)),
	}
	for k := range sys.Moves {
		m := &sys.Moves[k]
		if m.OrJoin >= 0 || m.Urgent || len(m.Resets)+len(m.MemberResets) > 0 || len(m.In) == 0 {
			return nil
		}
		for _, p := range m.Inhibitors {
			s.inhibits[p] = append(s.inhibits[p], int32(k))
		}
	}
	return s
}

// moves lists moves that it suffices to make in a state: none only if there are none at all. The list is good until
// the next call.
func (s *stubborn) moves(state []uint8, marked []int32) []int32 {
	s.best = s.best[:0]
	s.clear()
	if s.sys.End >= 0 {
		s.addAll(s.into[s.sys.End])
		if s.close(0, state); len(s.ready) > 0 {
			return s.ready // any other set holds these too
		}
	}
	base := len(s.set)
	for _, p := range marked {
		for _, k := range s.sys.candidates(int(p)) {
			if !s.sys.Enabled(&s.sys.Moves[k], state) || slices.Contains(s.best, k) {
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
		m := &s.sys.Moves[k]
		lacks, bar := s.reason(m, state)
		switch {
		case lacks >= 0:
			s.addAll(s.into[lacks])
		case bar >= 0:
			s.addAll(s.from[bar])
		default:
			if s.work > maxStubbornWork {
				return // the search is over
			}
			s.ready = append(s.ready, k)
			s.addRivals(m)
		}
	}
}

// reason says why a move cannot be made: an input that lacks tokens, or a place that must be empty; -1 for none. Of
// several inputs it is the one that the fewest moves put into.
func (s *stubborn) reason(m *Move, state []uint8) (lacks, bar int32) {
	lacks = -1
	s.work += len(m.In)
	for _, a := range m.In {
		if state[a.Place] < a.Weight && (lacks < 0 || len(s.into[a.Place]) < len(s.into[lacks])) {
			lacks = a.Place
		}
	}
	for _, p := range m.Inhibitors {
		if state[p] != 0 {
			return lacks, p
		}
	}
	return lacks, -1
}

// addRivals adds the moves that could disable one, or be disabled by it.
func (s *stubborn) addRivals(m *Move) {
	for _, a := range m.In {
		s.addAll(s.from[a.Place])
	}
	for _, p := range m.Inhibitors {
		s.addAll(s.into[p])
	}
	for _, a := range m.Out {
		s.addAll(s.inhibits[a.Place])
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

// NewStubbornSearch makes a search that leaves out moves; nil if the system is of a kind where none can be left out.
func NewStubbornSearch(sys *System, lim Budget) *Search {
	left := newStubborn(sys)
	if left == nil {
		return nil
	}
	x := NewSearch(sys, lim)
	x.stubborn = left
	return x
}
