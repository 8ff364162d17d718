package reduce

import "slices"

// kill removes a transition from the net, and queues its neighbours.
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

// detachProducers removes the place, which is about to be removed, from the outputs of its producers.
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

// dropResetArcs removes the place, which is about to be removed, from the resets of all transitions.
func (r *Net) dropResetArcs(p int32) {
	for _, t := range r.Places[p].resetBy {
		r.Transitions[t].Resets = remove(r.Transitions[t].Resets, p)
	}
	r.Places[p].resetBy = nil
}

// requeueAround queues a place whose neighbours have changed, and the transitions that take from it.
func (r *Net) requeueAround(p int32) {
	r.pushPlace(p)
	if out := r.Places[p].out; len(out) == 1 {
		r.push(out[0])
	}
}

// sameResets reports whether the same transitions reset both places.
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

// remove removes x from the list, whose order may change. It searches from the end, since rules that process long lists
// remove from there.
func remove(list []int32, x int32) []int32 {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == x {
			list[i] = list[len(list)-1]
			return list[:len(list)-1]
		}
	}
	return list
}

// replace replaces x in the list by y.
func replace(list []int32, x, y int32) {
	if i := slices.Index(list, x); i >= 0 {
		list[i] = y
	}
}

// indexArc returns the index of the arc to the place, which must exist.
func indexArc(arcs []Arc, p int32) int {
	return slices.IndexFunc(arcs, func(a Arc) bool { return a.Place == p })
}

// insertSorted inserts an open end into a sorted list.
func insertSorted(list []int32, p int32) []int32 {
	at, known := slices.BinarySearch(list, p)
	if known {
		return list
	}
	return slices.Insert(slices.Clone(list), at, p)
}

// PutIntoEnd makes a transition put a token into an open end each time it fires.
func (t *Transition) PutIntoEnd(p int32) { t.Ends = insertSorted(t.Ends, p) }

// putIntoEndsOf makes a transition put into the open ends of another one.
func (t *Transition) putIntoEndsOf(other *Transition) {
	for _, p := range other.Ends {
		t.Ends = insertSorted(t.Ends, p)
	}
}

// containsAll reports whether every member of one list is in the other.
func containsAll(list, members []int32) bool {
	return !slices.ContainsFunc(members, func(x int32) bool { return !slices.Contains(list, x) })
}
