package reduce

import "slices"

// dropResets removes the resets of a transition that only resets places from which it takes. In a safe net they are
// empty after that; whether the net is safe is detected when a second token arrives.
func (r *Net) dropResets(t int32) {
	tr := &r.Transitions[t]
	for _, p := range tr.Resets {
		r.Places[p].resetBy = remove(r.Places[p].resetBy, t)
		r.pushPlace(p)
	}
	tr.Resets = nil
}

// racingPlaces keeps one of two places with the same producers and initial token, if a transition that takes from one
// of them takes from the other or resets it, and a transition that resets one does the same: branches of which the
// first to continue cancels the other.
//
// In a safe net they always have the same tokens: both get a token together, and both lose it together. So they are one
// place, from which either branch may continue.
func (r *Net) racingPlaces(p int32) {
	pl := &r.Places[p]
	if pl.Removed || pl.Fixed || len(pl.resetBy) == 0 || len(pl.in) == 0 {
		return
	}
	beside := slices.Clone(r.Transitions[pl.in[0]].Out)
	for _, a := range beside {
		if q := a.Place; q != p && !r.Places[q].Removed && r.racing(p, q) {
			r.mergeRacing(p, q)
		}
	}
}

func (r *Net) racing(p, q int32) bool {
	a, b := &r.Places[p], &r.Places[q]
	if b.Fixed || a.Marked != b.Marked || len(a.in) != len(b.in) || len(b.resetBy) == 0 || !containsAll(b.in, a.in) {
		return false
	}
	plain := func(t int32) bool { return r.Transitions[t].OrTask < 0 }
	uses := func(pl *Place, t int32) bool { return slices.Contains(pl.out, t) || slices.Contains(pl.resetBy, t) }
	for _, t := range a.in {
		if r.Transitions[t].OrSplit {
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

// mergeRacing merges q into p.
func (r *Net) mergeRacing(p, q int32) {
	r.trace.dropPlace(r, p, q)
	a, b := &r.Places[p], &r.Places[q]
	r.detachProducers(q)
	for _, t := range b.out {
		tr := &r.Transitions[t]
		if tr.In = remove(tr.In, q); !slices.Contains(tr.In, p) {
			tr.In = append(tr.In, p)
			a.out = append(a.out, t)
		}
		r.push(t)
	}
	for _, t := range a.out {
		r.push(t)
	}
	r.dropResetArcs(q)
	*b = Place{Removed: true}
	r.pushPlace(p)
}
