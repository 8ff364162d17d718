package reduce

import (
	"slices"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// mergeCycles merges the places of a strongly connected set into one, and reports whether there was such a set:
// transitions that take from one place and put into one lead from each place of the set to every other. Such sets
// remain of loops and of unstructured choices.
//
// Let p and q be two of the places, with the same resets. A token in p can move to q and back at any time. Map it to
// the merged place z: a marking of N becomes one of N', a step on the cycle becomes nothing, and every other firing
// remains. N' can fire what N fires, and N can fire what N' fires after some steps on the cycle. If p and q are marked
// together, N' is not safe; neither is N, since one token can move to the place of the other. If N' can complete, so
// can N. The steps become self-loops at z, which can fire if z is ever marked, as they can if p or q is.
//
// A transition that takes from two of the places, or puts into two, would need an arc of weight two, so it prevents the
// rule. So does an or-join that takes from one of them: at p it would wait for the token in q.
func (r *Net) mergeCycles() bool {
	steps := 0
	for t := range r.Transitions {
		if r.isStep(int32(t)) {
			steps++
		}
	}
	if steps < 2 {
		return false
	}
	component := graph.Components(len(r.Places), r.stepsFrom)
	cycles := make(map[int][]int32)
	for p := range r.Places {
		if !r.Places[p].Removed {
			cycles[component[p]] = append(cycles[component[p]], int32(p))
		}
	}
	merged := false
	for p := range r.Places { // in the order of the places, so that the result is deterministic
		if ps := cycles[component[p]]; len(ps) > 1 && ps[0] == int32(p) && r.isMergeable(ps) {
			r.mergeCycle(ps)
			merged = true
		}
	}
	return merged
}

// isStep reports whether the transition only moves a token from one place to another.
func (r *Net) isStep(t int32) bool {
	tr := &r.Transitions[t]
	return !tr.Removed && len(tr.In) == 1 && len(tr.Out) == 1 && len(tr.Resets)+len(tr.Ends) == 0 && tr.OrTask < 0 && !tr.OrSplit &&
		tr.Out[0].Place != tr.In[0]
}

func (r *Net) stepsFrom(p int) []int {
	var next []int
	for _, t := range r.Places[p].out {
		if r.isStep(t) {
			next = append(next, int(r.Transitions[t].Out[0].Place))
		}
	}
	return next
}

// isMergeable reports whether the places of a cycle may be merged.
func (r *Net) isMergeable(ps []int32) bool {
	marked := 0
	taken, put := r.round+1, r.round+2 // marks of visited transitions
	r.round += 2
	for _, p := range ps {
		pl := &r.Places[p]
		if pl.Marked {
			marked++
		}
		if marked > 1 || !r.sameResets(pl, &r.Places[ps[0]]) {
			return false
		}
		for _, t := range pl.out {
			if r.stamp[t] == taken || r.Transitions[t].OrTask >= 0 {
				return false
			}
			r.stamp[t] = taken
		}
	}
	for _, p := range ps {
		for _, t := range r.Places[p].in {
			if r.stamp[t] == put {
				return false
			}
			r.stamp[t] = put
		}
	}
	return true
}

// mergeCycle merges the places into the first of them.
func (r *Net) mergeCycle(ps []int32) {
	r.trace.cycle(r, ps)
	z := ps[0]
	for _, p := range ps[1:] {
		r.moveProducers(p, z)
		pl := &r.Places[p]
		for _, t := range pl.out {
			replace(r.Transitions[t].In, p, z)
			r.push(t)
		}
		r.Places[z].out = append(r.Places[z].out, pl.out...)
		r.Places[z].Marked = r.Places[z].Marked || pl.Marked
		r.dropResetArcs(p)
		*pl = Place{Removed: true}
	}
	r.dropSelfLoops(z)
	for _, t := range r.Places[z].out {
		r.push(t)
	}
	r.requeueAround(z)
}

// dropSelfLoops removes all steps that have become self-loops: see [Net.selfLoop].
func (r *Net) dropSelfLoops(z int32) {
	pl := &r.Places[z]
	selfLoop := func(t int32) bool {
		tr := &r.Transitions[t]
		return len(tr.In) == 1 && len(tr.Out) == 1 && len(tr.Resets)+len(tr.Ends) == 0 && tr.OrTask < 0 && tr.In[0] == tr.Out[0].Place
	}
	if !pl.Marked && !slices.ContainsFunc(pl.in, func(t int32) bool { return !selfLoop(t) }) {
		return // it is not known that they can fire
	}
	pl.in = slices.DeleteFunc(pl.in, selfLoop)
	pl.out = slices.DeleteFunc(pl.out, func(t int32) bool {
		r.Transitions[t].Removed = r.Transitions[t].Removed || selfLoop(t)
		return r.Transitions[t].Removed
	})
}
