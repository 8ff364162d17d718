package reduce

import "slices"

// seriesPlaces removes p and t if p -> t -> q, only t takes from p, and p and q have the same resets: what marked p
// then marks q.
//
// Move the token of p to q: a marking of N becomes one of N', a firing of t becomes nothing, and every other firing
// remains. N' can fire what N fires, and N can fire what N' fires if t fires immediately. Together p and q have in N
// the tokens that q has in N', so if N' is safe, N is safe. The runs to the end are the same. t can fire, since p is
// marked initially or by a remaining transition. A producer of both p and q would need an arc of weight two in N', so
// it prevents the rule.
//
// For the remaining or-joins: while p is marked, an or-join after q waits for it, since t can always bring the token.
func (r *Net) seriesPlaces(p, t int32) bool {
	tr, pl := &r.Transitions[t], &r.Places[p]
	if len(tr.In) != 1 || len(tr.Out) != 1 || len(tr.Resets) > 0 || tr.Out[0].Place == p {
		return false
	}
	if tr.OrSplit {
		r.freeze(tr)
	}
	q := tr.Out[0].Place
	to := &r.Places[q]
	if !pl.Marked && len(pl.in) == 0 || !r.sameResets(pl, to) {
		return false
	}
	if pl.Marked && to.Marked || r.commonProducer(pl, to) {
		r.Unsafe = true // t fires while q is marked, or the producer never fires
		return false
	}
	r.trace.series(r, p, tr)
	for _, u := range pl.in {
		r.Transitions[u].putIntoEndsOf(tr)
	}
	r.dropResetArcs(p)
	r.kill(t)
	if to.Fixed || r.trace != nil || len(pl.in) <= len(to.in)+len(to.out) {
		r.moveProducers(p, q)
		to.Marked = to.Marked || pl.Marked
		pl.Removed = true
		r.requeueAround(q)
		return true
	}
	// The same in the other direction, if that moves fewer arcs: p replaces q. Both have the same resets, and those of
	// p were just removed, so it takes over those of q.
	r.moveProducers(q, p)
	for _, v := range to.out {
		replace(r.Transitions[v].In, q, p)
		r.push(v)
	}
	pl.out, to.out = to.out, nil
	pl.Marked = pl.Marked || to.Marked
	pl.resetBy, to.resetBy = to.resetBy, nil
	for _, x := range pl.resetBy {
		replace(r.Transitions[x].Resets, q, p)
	}
	to.Removed = true
	r.requeueAround(p)
	return true
}

// moveProducers makes every producer of p a producer of q.
func (r *Net) moveProducers(p, q int32) {
	for _, u := range r.Places[p].in {
		out := r.Transitions[u].Out
		out[indexArc(out, p)].Place = q
		r.push(u)
	}
	r.Places[q].in = append(r.Places[q].in, r.Places[p].in...)
	r.Places[p].in = nil
}

// seriesTransitions removes p and t if u -> p -> t, and p has no other producer or consumer and t no other input: u
// then puts what t would put.
//
// Fire t as soon as p is marked: a marking of N becomes one of N' by moving the token of p to the outputs of t, which
// all have the same resets as p. N' can fire what N fires, since only t takes from p. Some output of t (there must be
// one, or a second token in p would not be detected) has in N' the tokens that it and p have in N, so if N' is safe, N
// is safe. t fires if u does.
//
// An or-split keeps its meaning only if u has no other outputs. Choosing earlier changes nothing for or-joins: one that
// may fire before the choice may also fire after it, since fewer tokens can still arrive.
func (r *Net) seriesTransitions(u, p, t int32) bool {
	from, pl, to := &r.Transitions[u], &r.Places[p], &r.Transitions[t]
	if u == t || pl.Marked || len(to.In) != 1 || len(to.Resets) > 0 || len(to.Out) == 0 {
		return false
	}
	if (from.OrSplit || to.OrSplit) && len(from.Out) > 1 {
		return false
	}
	for _, a := range to.Out {
		if !r.sameResets(pl, &r.Places[a.Place]) {
			return false
		}
	}
	if r.work += len(from.Out); r.shareOutput(u, from, to) {
		r.Unsafe = true // t fires while an output of both is marked, or u never fires
		return false
	}
	if from.OrSplit {
		r.freeze(from)
	}
	at := indexArc(from.Out, p)
	r.trace.fold(from, at, to)
	from.putIntoEndsOf(to)
	r.dropResetArcs(p)
	from.OrSplit = to.OrSplit
	from.Out = append(slices.Delete(from.Out, at, at+1), to.Out...)
	for _, a := range to.Out {
		replace(r.Places[a.Place].in, t, u)
		r.pushPlace(a.Place)
	}
	pl.Removed, to.Removed = true, true
	r.push(u)
	return true
}

// shareOutput reports whether both transitions put into a common place. If one has very many outputs and the other few,
// it checks the places of the few.
func (r *Net) shareOutput(u int32, from, to *Transition) bool {
	if len(from.Out) > 64 && len(to.Out) < 8 {
		return slices.ContainsFunc(to.Out, func(a Arc) bool {
			r.work += len(r.Places[a.Place].in)
			return slices.Contains(r.Places[a.Place].in, u)
		})
	}
	r.round++
	for _, a := range from.Out {
		r.stamp[a.Place] = r.round
	}
	return slices.ContainsFunc(to.Out, func(a Arc) bool { return r.stamp[a.Place] == r.round })
}
