package net

import "slices"

// crossProduct removes a place p with several transitions before or behind it, each of which takes from p alone: every
// pair of one before and one behind becomes a transition. It is the rule for series of transitions once more: fire one
// of those behind as soon as p is marked. Which one is open until then and depends on nothing, so it may as well be
// chosen when p is marked.
//
// It is done only where there are not more pairs than there were transitions.
func (r *reducer) crossProduct(p int32) bool {
	pl := &r.places[p]
	n, m := len(pl.in), len(pl.out)
	if pl.marked || pl.fixed || n == 0 || m == 0 || n*m > n+m || !r.crossable(p) {
		return false
	}
	before, behind := slices.Clone(pl.in), slices.Clone(pl.out)
	us, ts := r.copies(before), r.copies(behind)
	free := append(before, behind...)
	for _, t := range free {
		r.kill(t)
	}
	r.unreset(p)
	pl.dead = true
	for i := range us {
		for k := range ts {
			r.revive(free[0], r.pair(&us[i], &ts[k], p))
			free = free[1:]
		}
	}
	return true
}

// maxCross bounds how many arcs the pairs may have: above that the net would hardly get simpler.
const maxCross = 64

// crossable checks what [reducer.seriesTransitions] asks, for every pair.
func (r *reducer) crossable(p int32) bool {
	pl := &r.places[p]
	arcs := 0
	for _, t := range pl.out {
		tr := &r.trans[t]
		if len(tr.in) != 1 || len(tr.resets) > 0 || len(tr.out) == 0 || slices.Contains(pl.in, t) {
			return false
		}
		for _, a := range tr.out {
			if !r.emptiedAlike(pl, &r.places[a.place]) {
				return false
			}
		}
		arcs += len(tr.out)
	}
	for _, u := range pl.in {
		from := &r.trans[u]
		if arcs += len(from.in) + len(from.out); arcs > maxCross || from.orTask >= 0 && len(pl.out) > 1 {
			return false
		}
		for _, t := range pl.out {
			to := &r.trans[t]
			if (from.orSplit || to.orSplit) && len(from.out) > 1 {
				return false
			}
			for _, a := range to.out {
				if a.place != p && indexArc(from.out, a.place) >= 0 {
					return false
				}
			}
		}
	}
	return true
}

// copies keeps what transitions were; their lists are shared, but killing a transition leaves those alone.
func (r *reducer) copies(list []int32) []rtrans {
	all := make([]rtrans, len(list))
	for i, t := range list {
		all[i] = r.trans[t]
	}
	return all
}

// pair is one transition that does what u and then t do, with p between them.
func (r *reducer) pair(u, t *rtrans, p int32) rtrans {
	both := *u
	both.in, both.resets = slices.Clone(u.in), slices.Clone(u.resets)
	if both.orSplit {
		r.freeze(&both)
	}
	both.resets = remove(both.resets, p)
	at := indexArc(both.out, p)
	r.trace.fold(&both, at, t)
	both.spillToo(t)
	both.orSplit = t.orSplit
	out := make([]rarc, 0, len(both.out)-1+len(t.out))
	both.out = append(append(append(out, both.out[:at]...), both.out[at+1:]...), t.out...)
	return both
}

// revive puts a transition where a dead one was.
func (r *reducer) revive(t int32, as rtrans) {
	as.dead = false
	r.trans[t] = as
	for _, p := range as.in {
		r.places[p].out = append(r.places[p].out, t)
		r.pushPlace(p)
	}
	for _, a := range as.out {
		r.places[a.place].in = append(r.places[a.place].in, t)
		r.pushPlace(a.place)
	}
	for _, p := range as.resets {
		r.places[p].resetBy = append(r.places[p].resetBy, t)
	}
	r.push(t)
}
