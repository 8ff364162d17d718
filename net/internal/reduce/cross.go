package reduce

import "slices"

// crossProduct removes a place p with several transitions before or after it, if each transition after it takes from p
// alone: every pair of one before and one after becomes a transition. This generalizes the rule for series of
// transitions: fire one of those after p as soon as p is marked. The choice between them does not depend on anything
// else, so it may as well be made when p is marked.
//
// The rule applies only if there are no more pairs than there were transitions.
func (r *Net) crossProduct(p int32) bool {
	pl := &r.Places[p]
	n, m := len(pl.in), len(pl.out)
	if pl.Marked || pl.Fixed || n == 0 || m == 0 || n*m > n+m || !r.crossable(p) {
		return false
	}
	before, behind := slices.Clone(pl.in), slices.Clone(pl.out)
	us, ts := r.copies(before), r.copies(behind)
	free := append(before, behind...)
	for _, t := range free {
		r.kill(t)
	}
	r.dropResetArcs(p)
	pl.Removed = true
	for i := range us {
		for k := range ts {
			r.reinsert(free[0], r.pair(&us[i], &ts[k], p))
			free = free[1:]
		}
	}
	return true
}

// maxCross limits the number of arcs of the pairs: with more, the net would hardly become simpler.
const maxCross = 64

// crossable checks the conditions of [Net.seriesTransitions] for every pair.
func (r *Net) crossable(p int32) bool {
	pl := &r.Places[p]
	arcs := 0
	for _, t := range pl.out {
		tr := &r.Transitions[t]
		if len(tr.In) != 1 || len(tr.Resets) > 0 || len(tr.Out) == 0 || slices.Contains(pl.in, t) {
			return false
		}
		for _, a := range tr.Out {
			if !r.sameResets(pl, &r.Places[a.Place]) {
				return false
			}
		}
		arcs += len(tr.Out)
	}
	for _, u := range pl.in {
		from := &r.Transitions[u]
		if arcs += len(from.In) + len(from.Out); arcs > maxCross || from.OrTask >= 0 && len(pl.out) > 1 {
			return false
		}
		for _, t := range pl.out {
			to := &r.Transitions[t]
			if (from.OrSplit || to.OrSplit) && len(from.Out) > 1 {
				return false
			}
			for _, a := range to.Out {
				if a.Place != p && indexArc(from.Out, a.Place) >= 0 {
					return false
				}
			}
		}
	}
	return true
}

// copies returns copies of transitions. They share the lists, which killing a transition does not change.
func (r *Net) copies(list []int32) []Transition {
	all := make([]Transition, len(list))
	for i, t := range list {
		all[i] = r.Transitions[t]
	}
	return all
}

// pair returns a transition with the effect of u and then t, with p between them.
func (r *Net) pair(u, t *Transition, p int32) Transition {
	both := *u
	both.In, both.Resets = slices.Clone(u.In), slices.Clone(u.Resets)
	if both.OrSplit {
		r.freeze(&both)
	}
	both.Resets = remove(both.Resets, p)
	at := indexArc(both.Out, p)
	r.trace.fold(&both, at, t)
	both.putIntoEndsOf(t)
	both.OrSplit = t.OrSplit
	out := make([]Arc, 0, len(both.Out)-1+len(t.Out))
	both.Out = append(append(append(out, both.Out[:at]...), both.Out[at+1:]...), t.Out...)
	return both
}

// reinsert replaces a removed transition.
func (r *Net) reinsert(t int32, as Transition) {
	as.Removed = false
	r.Transitions[t] = as
	for _, p := range as.In {
		r.Places[p].out = append(r.Places[p].out, t)
		r.pushPlace(p)
	}
	for _, a := range as.Out {
		r.Places[a.Place].in = append(r.Places[a.Place].in, t)
		r.pushPlace(a.Place)
	}
	for _, p := range as.Resets {
		r.Places[p].resetBy = append(r.Places[p].resetBy, t)
	}
	r.push(t)
}
