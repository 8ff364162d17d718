package net

import "slices"

// kill removes a transition from the net; what was next to it is looked at again.
func (r *reducer) kill(t int32) {
	tr := &r.trans[t]
	for _, p := range tr.in {
		r.places[p].out = remove(r.places[p].out, t)
		r.pushPlace(p)
	}
	for _, a := range tr.out {
		r.places[a.place].in = remove(r.places[a.place].in, t)
		r.pushPlace(a.place)
	}
	for _, p := range tr.resets {
		r.places[p].resetBy = remove(r.places[p].resetBy, t)
		r.pushPlace(p)
	}
	tr.dead = true
}

// starve takes the place, which is about to go, from the outputs of the transitions that feed it.
func (r *reducer) starve(p int32) {
	for _, t := range r.places[p].in {
		tr := &r.trans[t]
		at := len(tr.out) - 1
		for tr.out[at].place != p {
			at--
		}
		tr.out = slices.Delete(tr.out, at, at+1)
		r.push(t)
	}
}

// unreset says that no transition empties the place any more, because it is about to go.
func (r *reducer) unreset(p int32) {
	for _, t := range r.places[p].resetBy {
		r.trans[t].resets = remove(r.trans[t].resets, p)
	}
	r.places[p].resetBy = nil
}

// touched queues a place whose neighbours changed, and the transitions that take from it.
func (r *reducer) touched(p int32) {
	r.pushPlace(p)
	if out := r.places[p].out; len(out) == 1 {
		r.push(out[0])
	}
}

// emptiedAlike reports whether the same transitions empty both places.
func (r *reducer) emptiedAlike(a, b *rplace) bool {
	if len(a.resetBy) != len(b.resetBy) {
		return false
	}
	for _, t := range a.resetBy {
		if !slices.Contains(b.resetBy, t) {
			return false
		}
	}
	return true
}

// commonProducer reports whether a transition puts into both places.
func (r *reducer) commonProducer(a, b *rplace) bool {
	few, many := a.in, b.in
	if len(few) > len(many) {
		few, many = many, few
	}
	r.work += len(few) + len(many)
	if len(few) > 8 {
		r.round++
		for _, t := range many {
			r.stamp[t] = r.round
		}
		return slices.ContainsFunc(few, func(t int32) bool { return r.stamp[t] == r.round })
	}
	for _, t := range few {
		if slices.Contains(many, t) {
			return true
		}
	}
	return false
}

// remove takes x out of the list; the order of the others may change. It looks from the back, as the rules do that go
// through long lists.
func remove(list []int32, x int32) []int32 {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == x {
			list[i] = list[len(list)-1]
			return list[:len(list)-1]
		}
	}
	return list
}

// replace puts y where x is in the list.
func replace(list []int32, x, y int32) {
	if i := slices.Index(list, x); i >= 0 {
		list[i] = y
	}
}

// indexArc finds the arc to the place, which must be there.
func indexArc(arcs []rarc, p int32) int {
	return slices.IndexFunc(arcs, func(a rarc) bool { return a.place == p })
}

// withSpill adds an open end to a sorted list.
func withSpill(list []int32, p int32) []int32 {
	at, known := slices.BinarySearch(list, p)
	if known {
		return list
	}
	return slices.Insert(slices.Clone(list), at, p)
}

// spillToo lets a transition spill wherever another one does.
func (t *rtrans) spillToo(other *rtrans) {
	for _, p := range other.spills {
		t.spills = withSpill(t.spills, p)
	}
}

// containsAll reports whether every member of one list is in the other.
func containsAll(list, members []int32) bool {
	return !slices.ContainsFunc(members, func(x int32) bool { return !slices.Contains(list, x) })
}
