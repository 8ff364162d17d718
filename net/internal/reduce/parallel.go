package reduce

import "slices"

// parallelTransitions keeps one of several transitions with the same inputs and effects. When one of them can fire, so
// can the others.
func (r *Net) parallelTransitions(t int32) {
	tr := &r.Transitions[t]
	beside := r.besideTransition(tr)
	if len(beside) > manyArcs && r.later(t) {
		return
	}
	r.round++
	for _, p := range tr.In {
		r.stamp[p] = r.round
	}
	r.round++
	for _, a := range tr.Out {
		if r.stamp[a.Place] == r.round-1 {
			return // takes and puts: rare, and not worth a second scratch set
		}
		r.stamp[a.Place] = r.round
	}
	for i := len(beside) - 1; i >= 0; i-- {
		if x := beside[i]; x != t && r.parallel(tr, &r.Transitions[x]) {
			r.kill(x)
			beside = beside[:min(len(beside), i+1)]
		}
	}
}

// besideTransition returns a short list of transitions that contains every parallel one.
func (r *Net) besideTransition(tr *Transition) []int32 {
	var best []int32
	for _, p := range tr.In {
		if l := r.Places[p].out; best == nil || len(l) < len(best) {
			best = l
		}
	}
	for _, a := range tr.Out {
		if l := r.Places[a.Place].in; best == nil || len(l) < len(best) {
			best = l
		}
	}
	return best
}

// parallel compares a transition, whose inputs have the stamp round-1 and whose outputs have round, with another.
func (r *Net) parallel(a, b *Transition) bool {
	if len(a.In) != len(b.In) || len(a.Out) != len(b.Out) || len(a.Resets) != len(b.Resets) ||
		a.OrSplit != b.OrSplit || !slices.Equal(a.Ends, b.Ends) || a.OrTask >= 0 || b.OrTask >= 0 {
		return false
	}
	for _, p := range b.In {
		if r.stamp[p] != r.round-1 {
			return false
		}
	}
	for _, o := range b.Out {
		if r.stamp[o.Place] != r.round {
			return false
		}
	}
	for _, p := range b.Resets {
		if !slices.Contains(a.Resets, p) {
			return false
		}
	}
	return true
}

// parallelPlaces keeps one of several places with the same producers, consumers, initial token and resets.
//
// They always have the same tokens, so the others do not change what can fire. (An or-split marks some outputs without
// the others, so it must not be among the producers.)
func (r *Net) parallelPlaces(p int32) {
	pl := &r.Places[p]
	if pl.Fixed || len(pl.in)+len(pl.out) == 0 {
		return
	}
	var best []int32 // consumers, or the places after a producer: the shorter list
	var arcs []Arc
	if len(pl.out) > 0 {
		best = r.Transitions[pl.out[0]].In
	}
	if len(pl.in) > 0 {
		if arcs = r.Transitions[pl.in[0]].Out; best != nil && len(best) <= len(arcs) {
			arcs = nil
		} else {
			best = nil
		}
	}
	r.round += 2
	for _, t := range pl.in {
		if r.Transitions[t].OrSplit {
			return
		}
		r.stamp[t] = r.round - 1
	}
	for _, t := range pl.out {
		if r.stamp[t] == r.round-1 {
			return // taken from and put into by the same transition: rare
		}
		r.stamp[t] = r.round
	}
	for i := len(best) - 1; i >= 0; i-- {
		best = best[:min(len(best), i+1)]
		r.dropParallelPlace(p, best[i])
	}
	for i := len(arcs) - 1; i >= 0; i-- {
		arcs = arcs[:min(len(arcs), i+1)]
		r.dropParallelPlace(p, arcs[i].Place)
	}
}

// dropParallelPlace removes q if it is parallel to p, whose producers have the stamp round-1 and whose consumers have
// round.
func (r *Net) dropParallelPlace(p, q int32) {
	a, b := &r.Places[p], &r.Places[q]
	if q == p || b.Fixed || a.Marked != b.Marked || len(a.in) != len(b.in) || len(a.out) != len(b.out) ||
		!r.sameResets(a, b) {
		return
	}
	for _, t := range b.in {
		if r.stamp[t] != r.round-1 {
			return
		}
	}
	for _, t := range b.out {
		if r.stamp[t] != r.round {
			return
		}
	}
	r.trace.dropPlace(r, p, q)
	r.detachProducers(q)
	for _, t := range b.out {
		tr := &r.Transitions[t]
		tr.In, tr.merged = remove(tr.In, q), tr.OrTask >= 0
		r.push(t)
	}
	r.dropResetArcs(q)
	b.Removed = true
}
