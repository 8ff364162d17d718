package statespace

import "slices"

// growing returns the moves of which a loop can consist that loses no token and adds some. It is all of them, or fewer,
// by two properties of the structure; with none, every place is bounded.
//
//   - Each move of such a loop takes only from places that the loop puts into, so they are in the largest set of moves
//     with that property. (A move may also take from a place that an earlier loop has filled without bound. Then the
//     moves of both loops together have the property.)
//   - If the places can be given weights above zero such that no move of the set puts more than it takes, none of its
//     loops adds anything.
//
// Resets and inhibitor arcs only prevent loops. An or-join may take from one of its inputs.
func (sys *System) growing(fires []bool) []bool {
	set := sys.selfSupplying(fires)
	if !slices.Contains(set, true) || sys.weighable(set) {
		clear(set)
	}
	return set
}

// selfSupplying returns the largest set of the given moves in which each takes only from places that the set puts into.
func (sys *System) selfSupplying(of []bool) []bool {
	set, from, puts := slices.Clone(of), sys.takers(), make([]int32, sys.Places)
	for k := range sys.Moves {
		for _, a := range sys.Moves[k].Out {
			if set[k] {
				puts[a.Place]++
			}
		}
	}
	var dry []int32 // places that no move of the set puts into
	for p, n := range puts {
		if n == 0 {
			dry = append(dry, int32(p))
		}
	}
	for len(dry) > 0 {
		p := dry[len(dry)-1]
		dry = dry[:len(dry)-1]
		for _, k := range from[p] {
			m := &sys.Moves[k]
			if !set[k] || m.OrJoin >= 0 && slices.ContainsFunc(m.In, func(a Arc) bool { return puts[a.Place] > 0 }) {
				continue
			}
			set[k] = false
			for _, a := range m.Out {
				if puts[a.Place]--; puts[a.Place] == 0 {
					dry = append(dry, a.Place)
				}
			}
		}
	}
	return set
}

// The bounds of the search for weights.
const (
	maxWeighings = 64
	maxWeight    = 1 << 20
)

// weighable looks for weights of the places such that no move of the set puts more than it takes. It begins with one for
// each place, and increases the weight of an input wherever a move puts more.
func (sys *System) weighable(set []bool) bool {
	weight := slices.Repeat([]int{1}, sys.Places)
	for range maxWeighings {
		fine := true
		for k := range sys.Moves {
			if !set[k] {
				continue
			}
			m := &sys.Moves[k]
			p, more := m.surplus(weight)
			switch {
			case more <= 0:
				continue
			case p < 0 || weight[p] > maxWeight:
				return false
			}
			weight[p] += more
			fine = false
		}
		if fine {
			return true
		}
	}
	return false
}

// surplus returns by how much the weight that a move puts exceeds the weight that it takes, and the input whose weight is
// to be increased, or -1.
func (m *Move) surplus(weight []int) (input int32, more int) {
	input = -1
	for _, a := range m.Out {
		more += int(a.Weight) * weight[a.Place]
	}
	for _, a := range m.In {
		if input < 0 || weight[a.Place] < weight[input] {
			input = a.Place
		}
		if m.OrJoin < 0 {
			more -= int(a.Weight) * weight[a.Place]
		}
	}
	if m.OrJoin >= 0 {
		more -= weight[input]
	}
	return input, more
}

// takers lists for each place the moves that take from it.
func (sys *System) takers() [][]int32 {
	return sys.byPlace(func(m *Move) []Arc { return m.In })
}

// givers lists for each place the moves that put into it.
func (sys *System) givers() [][]int32 {
	return sys.byPlace(func(m *Move) []Arc { return m.Out })
}

// byPlace lists the moves that have an arc of some kind, by the place of the arc.
func (sys *System) byPlace(arcs func(*Move) []Arc) [][]int32 {
	count, all := make([]int32, sys.Places), 0
	for k := range sys.Moves {
		for _, a := range arcs(&sys.Moves[k]) {
			count[a.Place]++
			all++
		}
	}
	lists, room := make([][]int32, sys.Places), make([]int32, all)
	for p, n := range count {
		lists[p], room = room[:0:n], room[n:]
	}
	for k := range sys.Moves {
		for _, a := range arcs(&sys.Moves[k]) {
			lists[a.Place] = append(lists[a.Place], int32(k))
		}
	}
	return lists
}
