package net

import "slices"

// twinTransitions keeps one of the transitions that do the same.
//
// Either can fire when the other can, with the same effect.
func (r *reducer) twinTransitions(t int32) {
	tr := &r.trans[t]
	beside := r.besideTransition(tr)
	if len(beside) > hubArcs && r.later(t) {
		return
	}
	r.round++
	for _, p := range tr.in {
		r.stamp[p] = r.round
	}
	r.round++
	for _, a := range tr.out {
		if r.stamp[a.place] == r.round-1 {
			return // takes and puts: rare, and not worth a second scratch set
		}
		r.stamp[a.place] = r.round
	}
	for i := len(beside) - 1; i >= 0; i-- {
		if x := beside[i]; x != t && r.twins(tr, &r.trans[x]) {
			r.kill(x)
			beside = beside[:min(len(beside), i+1)]
		}
	}
}

// besideTransition is a short list of transitions in which every twin must be.
func (r *reducer) besideTransition(tr *rtrans) []int32 {
	var best []int32
	for _, p := range tr.in {
		if l := r.places[p].out; best == nil || len(l) < len(best) {
			best = l
		}
	}
	for _, a := range tr.out {
		if l := r.places[a.place].in; best == nil || len(l) < len(best) {
			best = l
		}
	}
	return best
}

// twins compares a transition whose inputs carry the stamp round-1, and outputs round, with another.
func (r *reducer) twins(a, b *rtrans) bool {
	if len(a.in) != len(b.in) || len(a.out) != len(b.out) || len(a.resets) != len(b.resets) ||
		a.orSplit != b.orSplit || !slices.Equal(a.spills, b.spills) || a.orTask >= 0 || b.orTask >= 0 {
		return false
	}
	for _, p := range b.in {
		if r.stamp[p] != r.round-1 {
			return false
		}
	}
	for _, o := range b.out {
		if r.stamp[o.place] != r.round {
			return false
		}
	}
	for _, p := range b.resets {
		if !slices.Contains(a.resets, p) {
			return false
		}
	}
	return true
}

// twinPlaces keeps one of the places with the same producers, consumers, first token and resets.
//
// They always hold the same, so the ones removed neither forbid nor allow anything. (An or-split marks some outputs
// without the others, so it may not be among the producers.)
func (r *reducer) twinPlaces(p int32) {
	pl := &r.places[p]
	if pl.fixed || len(pl.in)+len(pl.out) == 0 {
		return
	}
	var best []int32 // consumers or the places behind a producer: whichever are fewer
	var arcs []rarc
	if len(pl.out) > 0 {
		best = r.trans[pl.out[0]].in
	}
	if len(pl.in) > 0 {
		if arcs = r.trans[pl.in[0]].out; best != nil && len(best) <= len(arcs) {
			arcs = nil
		} else {
			best = nil
		}
	}
	r.round += 2
	for _, t := range pl.in {
		if r.trans[t].orSplit {
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
		r.dropTwin(p, best[i])
	}
	for i := len(arcs) - 1; i >= 0; i-- {
		arcs = arcs[:min(len(arcs), i+1)]
		r.dropTwin(p, arcs[i].place)
	}
}

// dropTwin removes q if it is the twin of p, whose producers carry the stamp round-1, and consumers round.
func (r *reducer) dropTwin(p, q int32) {
	a, b := &r.places[p], &r.places[q]
	if q == p || b.fixed || a.marked != b.marked || len(a.in) != len(b.in) || len(a.out) != len(b.out) ||
		!r.emptiedAlike(a, b) {
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
	r.starve(q)
	for _, t := range b.out {
		tr := &r.trans[t]
		tr.in, tr.alike = remove(tr.in, q), tr.orTask >= 0
		r.push(t)
	}
	r.unreset(q)
	b.dead = true
}
