package net

import "slices"

// dropResets takes the resets away from a transition that empties only places that it takes from. In a safe net nothing
// is left there, and whether the net is safe shows when a second token comes.
func (r *reducer) dropResets(t int32) {
	tr := &r.trans[t]
	for _, p := range tr.resets {
		r.places[p].resetBy = remove(r.places[p].resetBy, t)
		r.pushPlace(p)
	}
	tr.resets = nil
}

// racingPlaces keeps one of two places with the same producers and first token where whoever takes from the one takes
// from or empties the other, and whoever empties the one does so too: branches of which the first to go on cancels the
// other.
//
// In a safe net they always hold the same: both get a token together, and both lose it together. So it is one place,
// from which either may go on.
func (r *reducer) racingPlaces(p int32) {
	pl := &r.places[p]
	if pl.dead || pl.fixed || len(pl.resetBy) == 0 || len(pl.in) == 0 {
		return
	}
	beside := slices.Clone(r.trans[pl.in[0]].out)
	for _, a := range beside {
		if q := a.place; q != p && !r.places[q].dead && r.racing(p, q) {
			r.mergeRacing(p, q)
		}
	}
}

func (r *reducer) racing(p, q int32) bool {
	a, b := &r.places[p], &r.places[q]
	if b.fixed || a.marked != b.marked || len(a.in) != len(b.in) || len(b.resetBy) == 0 || !containsAll(b.in, a.in) {
		return false
	}
	plain := func(t int32) bool { return r.trans[t].orTask < 0 }
	uses := func(pl *rplace, t int32) bool { return slices.Contains(pl.out, t) || slices.Contains(pl.resetBy, t) }
	for _, t := range a.in {
		if r.trans[t].orSplit {
			return false
		}
	}
	for _, t := range a.out {
		if !plain(t) || !uses(b, t) {
			return false
		}
	}
	for _, t := range b.out {
		if !plain(t) || !uses(a, t) {
			return false
		}
	}
	return !slices.ContainsFunc(a.resetBy, func(t int32) bool { return !uses(b, t) }) &&
		!slices.ContainsFunc(b.resetBy, func(t int32) bool { return !uses(a, t) })
}

// mergeRacing makes p stand for q too.
func (r *reducer) mergeRacing(p, q int32) {
	r.trace.dropPlace(r, p, q)
	a, b := &r.places[p], &r.places[q]
	r.starve(q)
	for _, t := range b.out {
		tr := &r.trans[t]
		if tr.in = remove(tr.in, q); !slices.Contains(tr.in, p) {
			tr.in = append(tr.in, p)
			a.out = append(a.out, t)
		}
		r.push(t)
	}
	for _, t := range a.out {
		r.push(t)
	}
	r.unreset(q)
	*b = rplace{dead: true}
	r.pushPlace(p)
}
