package statespace

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// accelerate looks for ancestors that the next state covers, where move k of state i makes the next state. It sets the
// counts of the places with more tokens to [Omega] if the moves from the ancestor can be repeated without end. The next
// state is also given in packed form.
func (x *Search) accelerate(i, k int32, packed []uint64) Covering {
	var found Covering
	var grown []int32
	if over, _ := x.sys.Complete(x.next); over {
		return found // nothing happens after the end
	}
	if x.grows == nil {
		x.grows = x.sys.growing(slices.Repeat([]bool{true}, len(x.sys.Moves)))
	}
	back, tries := 64+2*len(x.sys.Moves), MaxCoverings
	for from, via := i, k; via >= 0 && x.grows[via] && back > 0 && tries > 0; from, via = x.States.parent[from], x.States.via[from] {
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

// MaxCoverings bounds the number of loops that are examined for one state; the length of the path back is bounded too.
// A missed loop is found again when it is a little longer, and if it is always missed, the search ends by its own
// budget.
const MaxCoverings = 16

// repeatable reports whether the moves from state from to state i, and then move k, have the same effect with more
// tokens in the grown places. A move tests for enough tokens (more are enough too), for an empty place, or whether an
// or-join may fire. An inhibitor arc from a grown place has the same result if that place is never empty on the way; so
// has the test which routing task must run first.
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

// Disturbs reports whether a move may have another effect when the places have more tokens, apart from inhibitor arcs.
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
