package net

import "slices"

// joinKind says what an or-join that reduction removed really does.
type joinKind uint8

const (
	joinMixed     joinKind = iota // sometimes one input is marked, sometimes several
	joinAlike                     // all inputs are always marked together: an and-join
	joinExclusive                 // never two inputs are marked: an xor-join
)

type removedJoin struct {
	task TaskID
	kind joinKind
}

// removeJoin makes a plain transition of an or-join.
func (r *reducer) removeJoin(tr *rtrans, kind joinKind) {
	r.joins = append(r.joins, removedJoin{task: TaskID(tr.orTask), kind: kind})
	tr.orTask = -1
}

// removeOrJoins merges the inputs of or-joins that never have to wait once one of them is marked, and reports whether
// there was such a join.
//
// The or-join j has the inputs P, which feed j alone, are empty at first and never emptied by a reset. Let z be P seen as
// one place, marked when any of P is. Suppose there is a set of places K with z in it, at most one token in it at first,
// such that every transition that puts into K takes from K and puts no more than one token there, where
//
//   - an or-split puts into all its outputs, those in P counting as one;
//   - an or-join other than j fires by any one of its inputs, as the engine's own analysis has it, so all of them must be in
//     K if an output is.
//
// Then K never holds more than one token. So when some of P is marked, nothing else in K is, and no transition but j, not even
// by the generous rules of the analysis, can put a token into K: no other input of j can still get one, and j may fire at
// once. And until then no input is marked, so it may not. Hence j takes from z, and whoever puts into some of P puts into z.
//
// Other or-joins J may look at j's surroundings in N with j firing once for every marked input, but as the proof for J
// speaks only of "any transition that puts into K takes from K", which holds of j in N as in N', it stands.
//
// Worked case: in a loop, an or-block within a branch of another has no such K. The outer join, fired by one branch alone,
// would come round the loop and start the inner block again while that is still marked: K holds the inner block, the way
// from the outer split, the loop, and so the outer join with all its branches, of which the split marks several. The engine
// sees it the same way: both joins wait for each other for ever.
func (r *reducer) removeOrJoins() bool {
	changed := false
	for t := range r.trans {
		if tr := &r.trans[t]; !tr.dead && tr.orTask >= 0 && r.mergeable(int32(t)) && r.holdsOneToken(int32(t)) {
			r.mergeInputs(int32(t))
			changed = true
		}
	}
	return changed
}

// mergeable checks what is asked of the inputs of an or-join and of their producers.
func (r *reducer) mergeable(j int32) bool {
	tr := &r.trans[j]
	for _, p := range tr.in {
		if pl := &r.places[p]; pl.fixed || pl.marked || len(pl.out) != 1 || len(pl.resetBy) > 0 {
			return false
		}
	}
	for _, p := range tr.in {
		for _, u := range r.places[p].in {
			if from := &r.trans[u]; from.orSplit && slices.ContainsFunc(from.out, func(a rarc) bool {
				return !slices.Contains(tr.in, a.place)
			}) {
				return false // it may also choose none of the inputs
			}
		}
	}
	return true
}

// mergeInputs makes one place of the inputs of an or-join.
func (r *reducer) mergeInputs(j int32) {
	tr := &r.trans[j]
	r.removeJoin(tr, r.joinKindOf(tr))
	z, others := tr.in[0], tr.in[1:]
	for _, p := range others {
		for _, u := range r.places[p].in {
			r.mergeArc(u, p, z)
		}
		r.places[p] = rplace{dead: true}
	}
	tr.in = tr.in[:1]
	for _, u := range r.places[z].in {
		r.push(u)
	}
	r.push(j)
	r.pushPlace(z)
}

// mergeArc turns the arc from u to p into one to z, if there is none yet.
func (r *reducer) mergeArc(u, p, z int32) {
	from := &r.trans[u]
	at, to := indexArc(from.out, p), indexArc(from.out, z)
	if to < 0 {
		from.out[at].place = z
		r.places[z].in = append(r.places[z].in, u)
		return
	}
	if !from.orSplit { // an or-split chooses one of them; any other transition marks both
		r.trace.join(&from.out[to], &from.out[at])
	}
	from.out = slices.Delete(from.out, at, at+1)
}

// joinKindOf looks at the producers of an or-join's inputs.
func (r *reducer) joinKindOf(j *rtrans) joinKind {
	one, all := true, true
	for _, p := range j.in {
		for _, u := range r.places[p].in {
			n := 0
			for _, a := range r.trans[u].out {
				if slices.Contains(j.in, a.place) {
					n++
				}
			}
			one = one && n == 1
			all = all && n == len(j.in) && !r.trans[u].orSplit
		}
	}
	switch {
	case all:
		return joinAlike
	case one && !j.alike:
		return joinExclusive
	}
	return joinMixed
}
