package statespace

import (
	"cmp"
	"slices"
)

// Violated reports whether anything was found.
func (x *Search) Violated() bool {
	return x.Deadlock >= 0 || x.Improper >= 0 || len(x.SecondTokens) > 0 || len(x.Coverings) > 0
}

// Undecided reports whether the search found nothing and is not complete.
func (x *Search) Undecided() bool {
	return (x.Limit == LimitStates || x.Limit == LimitMemory) && !x.Violated()
}

// Exact reports whether the search has seen every possible behavior: it is complete, and no place that is tested for
// emptiness was taken for unbounded.
func (x *Search) Exact() bool {
	if !x.whole || len(x.SecondTokens) > 0 && !x.BeyondUnsafe {
		return false
	}
	for _, p := range x.Coverings {
		for _, q := range p.Places {
			if x.Tested.Has(int(q)) {
				return false
			}
		}
	}
	return true
}

// Conclusive reports whether the search shows from which states a run can complete. It does not if it has not continued
// behind a second token, nor if a complete state has no tokens and counts were taken for unbounded, since such a count
// is never 0 again.
func (x *Search) Conclusive() bool { return x.Exact() && (x.sys.End >= 0 || !x.unbounded()) }

// unbounded reports whether counts of places that are not open were taken for unbounded. A state then represents many,
// some of which may be deadlocks while others are not.
func (x *Search) unbounded() bool {
	return slices.ContainsFunc(x.Coverings, func(p Covering) bool {
		return slices.ContainsFunc(p.Places, func(q int32) bool { return !x.sys.isOpen(q) })
	})
}

// Settled reports whether the search has found everything.
func (x *Search) Settled() bool {
	return x.Exact() && (!x.unbounded() || x.Deadlock >= 0 || x.Hopeless >= 0)
}

// findHopeless walks backwards from the complete states. No run completes from a state that it does not reach.
func (x *Search) findHopeless() {
	if !x.Conclusive() {
		return
	}
	n := x.States.Len()
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
	todo := append([]int32(nil), x.Final...)
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
		x.Hopeless = int32(i)
	}
}

// Faultless reports whether the search is complete and has found no violation.
func (x *Search) Faultless() bool { return x.AlwaysCompletes() && !slices.Contains(x.Fired, false) }

// AlwaysCompletes reports whether the search is complete and has found no violation except moves that never fire.
func (x *Search) AlwaysCompletes() bool { return x.Exact() && !x.Violated() && x.Hopeless < 0 }

// RunTo returns the moves to a state.
func (x *Search) RunTo(state int32) []int32 {
	path := x.States.Path(state)
	moves := make([]int32, 0, len(path))
	for _, i := range path[1:] {
		moves = append(moves, x.States.via[i])
	}
	return moves
}

// Suspects returns runs to the violations of the search.
func (x *Search) Suspects() [][]int32 {
	var runs [][]int32
	for _, state := range []int32{x.Improper, x.Deadlock, x.Hopeless} {
		if state >= 0 {
			runs = append(runs, x.RunTo(state))
		}
	}
	for _, c := range x.SecondTokens {
		runs = append(runs, append(x.RunTo(c.State), c.Move)) // a reduced net is not searched behind a second token
	}
	for _, p := range x.Coverings {
		runs = append(runs, x.RunTo(p.State))
	}
	return runs
}

// Loop is a loop on a path of states: the moves from one step of the path to a later one.
type Loop struct{ From, To int }

// LoopsOn returns the loops on a path of states that make counts unbounded, in the order of their ends. (Coverings are
// sorted by their states, and a state has at most one.)
func (x *Search) LoopsOn(path []int32) []Loop {
	var loops []Loop
	for i, state := range path {
		at, is := slices.BinarySearchFunc(x.Coverings, state, func(p Covering, state int32) int { return cmp.Compare(p.State, state) })
		if !is {
			continue
		}
		if from := slices.Index(path[:i], x.Coverings[at].Ancestor); from >= 0 {
			loops = append(loops, Loop{from, i})
		}
	}
	return loops
}
