package reduce

import "slices"

// kill removes a transition from the net; its neighbours are queued.
func (r *Net) kill(t int32) {
	tr := &r.Transitions[t]
	for _, p := range tr.In {
		r.Places[p].out = remove(r.Places[p].out, t)
		r.pushPlace(p)
	}
	for _, a := range tr.Out {
		r.Places[a.Place].in = remove(r.Places[a.Place].in, t)
		r.pushPlace(a.Place)
	}
	for _, p := range tr.Resets {
		r.Places[p].resetBy = remove(r.Places[p].resetBy, t)
		r.pushPlace(p)
	}
	tr.Removed = true
}

// detachProducers takes the place, which is about to go, from the outputs of the transitions that feed it.
func (r *Net) detachProducers(p int32) {
	for _, t := range r.Places[p].in {
		tr := &r.Transitions[t]
		at := len(tr.Out) - 1
		for tr.Out[at].Place != p {
			at--
		}
		tr.Out = slices.Delete(tr.Out, at, at+1)
		r.push(t)
	}
}

// dropResetArcs says that no transition empties the place any more, because it is about to go.
func (r *Net) dropResetArcs(p int32) {
	for _, t := range r.Places[p].resetBy {
		r.Transitions[t].Resets = remove(r.Transitions[t].Resets, p)
	}
	r.Places[p].resetBy = nil
}

// requeueAround queues a place whose neighbours changed, and the transitions that take from it.
func (r *Net) requeueAround(p int32) {
	r.pushPlace(p)
	if out := r.Places[p].out; len(out) == 1 {
		r.push(out[0])
	}
}

// sameResets reports whether the same transitions empty both places.
func (r *Net) sameResets(a, b *Place) bool {
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
func (r *Net) commonProducer(a, b *Place) bool {
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
func indexArc(arcs []Arc, p int32) int {
	return slices.IndexFunc(arcs, func(a Arc) bool { return a.Place == p })
}

// insertSorted adds an open end to a sorted list.
func insertSorted(list []int32, p int32) []int32 {
	at, known := slices.BinarySearch(list, p)
	if known {
		return list
	}
	return slices.Insert(slices.Clone(list), at, p)
}

// PutIntoEnd lets a transition put a token into an open end each time it fires.
func (t *Transition) PutIntoEnd(p int32) { t.Ends = insertSorted(t.Ends, p) }

// putIntoEndsOf lets a transition put into the open ends that another one puts into.
func (t *Transition) putIntoEndsOf(other *Transition) {
	for _, p := range other.Ends {
		t.Ends = insertSorted(t.Ends, p)
	}
}

// containsAll reports whether every member of one list is in the other.
func containsAll(list, members []int32) bool {
	return !slices.ContainsFunc(members, func(x int32) bool { return !slices.Contains(list, x) })
}
