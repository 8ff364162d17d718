package net

import "slices"

// accelerate looks for ancestors of the next state, which move k makes of state i, that hold no more anywhere and less
// somewhere, and sets the count of the places that grew to unbounded where the way from there can be repeated without
// end. The next state is given in packed form too.
func (x *explorer) accelerate(i, k int32, packed []uint64) pump {
	var found pump
	var grown []int32
	if over, _ := x.g.complete(x.next); over {
		return found // nothing is repeated after the end
	}
	back, tries := 64+2*len(x.g.moves), maxPumpTries
	for from := i; from >= 0 && back > 0 && tries > 0; from = x.s.parent[from] {
		back--
		var more bool
		if grown, more = x.s.grew(grown, from, packed); !more {
			continue
		}
		if tries--; !x.repeatable(from, i, k, grown) {
			continue
		}
		for _, p := range grown {
			if x.next[p] != unbounded {
				x.next[p] = unbounded
				found.places = append(found.places, p)
			}
		}
		if len(found.places) > 0 {
			found.from = from
			return found
		}
	}
	return found
}

// maxPumpTries bounds how many loops that end in one state are looked at; the way back is bounded too. A loop that is
// missed so comes round again, a little longer, and if it is missed for ever the search ends by its own budget.
const maxPumpTries = 16

// repeatable reports whether the moves from state from to state i, and then move k, do the same when the grown places
// hold more. Each test that a move makes is one of "enough here" (more is enough too), "nothing here" and "this or-join
// may fire". A test for emptiness that depends on a grown place comes out the same if that place is never empty on the
// way; so does the question which routing task must run first.
func (x *explorer) repeatable(from, i, k int32, grown []int32) bool {
	if x.g.disturbs(&x.g.moves[k], grown) {
		return false
	}
	for j := i; j != from; j = x.s.parent[j] {
		if x.g.disturbs(&x.g.moves[x.s.via[j]], grown) {
			return false
		}
	}
	for _, p := range grown {
		if !x.touchy.Has(int(p)) {
			continue
		}
		for j := i; ; j = x.s.parent[j] {
			if x.s.get(j, p) == 0 {
				return false
			}
			if j == from {
				break
			}
		}
	}
	return true
}

// disturbs reports whether a move may act otherwise when the places hold more, tests for emptiness apart.
func (g *game) disturbs(m *gameMove, grown []int32) bool {
	for _, p := range grown {
		if slices.Contains(m.resets, p) || m.or >= 0 && g.ask.awaits(m, p) {
			return true
		}
		for i := range m.spares {
			if slices.Contains(m.spares[i].inputs, ConditionID(p)) {
				return true
			}
		}
	}
	return false
}

// exact reports whether the search has seen all that can happen: it is whole, and no place whose emptiness is tested
// was taken for unbounded.
func (x *explorer) exact() bool {
	if !x.whole || len(x.crowds) > 0 && !x.behind {
		return false
	}
	for _, p := range x.pumps {
		for _, q := range p.places {
			if x.touchy.Has(int(q)) {
				return false
			}
		}
	}
	return true
}

// conclusive reports whether the search shows which states can be completed from. A safe game with a crowded state is
// not looked behind there, so nothing is said about it; nor where completion means that no token is left and counts
// were taken for unbounded, which never come to nothing again.
func (x *explorer) conclusive() bool { return x.exact() && (x.g.end >= 0 || !x.infinite()) }

// infinite reports whether counts of places that are not open were taken for unbounded. A state then stands for many,
// and some of those may be stuck where others go on.
func (x *explorer) infinite() bool {
	return slices.ContainsFunc(x.pumps, func(p pump) bool {
		return slices.ContainsFunc(p.places, func(q int32) bool { return !x.g.isOpen(q) })
	})
}

// settled reports whether the search has found whatever there is to find.
func (x *explorer) settled() bool {
	return x.exact() && (!x.infinite() || x.stuck >= 0 || x.doomed >= 0)
}

// findDoomed looks from the complete states backwards: a state that is not met cannot be completed from.
func (x *explorer) findDoomed() {
	if !x.conclusive() {
		return
	}
	n := x.s.len()
	first := make([]int32, n+2) // by state, where the states before it begin
	for _, to := range x.edges {
		first[to+2]++
	}
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	before := make([]int32, len(x.edges))
	e := int32(0)
	for from, end := range x.ends {
		for ; e < end; e++ {
			to := x.edges[e]
			before[first[to+1]] = int32(from)
			first[to+1]++
		}
	}
	met := make([]bool, n)
	todo := append([]int32(nil), x.final...)
	for _, i := range todo {
		met[i] = true
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range before[first[i]:first[i+1]] {
			if !met[b] {
				met[b] = true
				todo = append(todo, b)
			}
		}
	}
	if i := slices.Index(met, false); i >= 0 {
		x.doomed = int32(i)
	}
}
