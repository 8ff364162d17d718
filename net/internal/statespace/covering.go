package statespace

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// accelerate looks for ancestors that the next state, which move k makes of state i, covers, and sets the count of the
// places with more tokens to [Omega] where the moves from the ancestor can be repeated without end. The next state is
// given in packed form too.
func (x *Search) accelerate(i, k int32, packed []uint64) Covering {
	var found Covering
	var grown []int32
	if over, _ := x.sys.Complete(x.next); over {
		return found // nothing is repeated after the end
	}
	back, tries := 64+2*len(x.sys.Moves), MaxCoverings
	for from := i; from >= 0 && back > 0 && tries > 0; from = x.States.parent[from] {
		back--
		var more bool
		if grown, more = x.States.grew(grown, from, packed); !more {
			continue
		}
		if tries--; !x.repeatable(from, i, k, grown) {
			continue
		}
		for _, p := range grown {
			if x.next[p] != Omega {
				x.next[p] = Omega
				found.Places = append(found.Places, p)
			}
		}
		if len(found.Places) > 0 {
			found.Ancestor = from
			return found
		}
	}
	return found
}

// MaxCoverings bounds how many loops that end in one state are looked at; the way back is bounded too. A loop that is
// missed so comes again, a little longer, and if it is always missed the search ends by its own budget.
const MaxCoverings = 16

// repeatable reports whether the moves from state from to state i, and then move k, do the same when the grown places
// hold more. Each test that a move makes is one of "enough here" (more is enough too), "nothing here" and "this or-join
// may fire". An inhibitor arc from a grown place comes out the same if that place is never empty on the
// way; so does the question which routing task must run first.
func (x *Search) repeatable(from, i, k int32, grown []int32) bool {
	if x.sys.Disturbs(&x.sys.Moves[k], grown) {
		return false
	}
	for j := i; j != from; j = x.States.parent[j] {
		if x.sys.Disturbs(&x.sys.Moves[x.States.via[j]], grown) {
			return false
		}
	}
	for _, p := range grown {
		if !x.Tested.Has(int(p)) {
			continue
		}
		for j := i; ; j = x.States.parent[j] {
			if x.States.get(j, p) == 0 {
				return false
			}
			if j == from {
				break
			}
		}
	}
	return true
}

// Disturbs reports whether a move may act otherwise when the places hold more, inhibitor arcs apart.
func (sys *System) Disturbs(m *Move, grown []int32) bool {
	for _, p := range grown {
		if slices.Contains(m.Resets, p) || m.OrJoin >= 0 && sys.Decider.DependsOn(m, p) {
			return true
		}
		for i := range m.MemberResets {
			if slices.Contains(m.MemberResets[i].Inputs, net.ConditionID(p)) {
				return true
			}
		}
	}
	return false
}
