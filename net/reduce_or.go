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
// An or-join is a candidate if its inputs P feed it alone, are empty at first, are emptied alike, and every or-split
// that puts into P can put nowhere else. Let N' be the net in which P is one place z for every candidate, marked when
// any of P is: the join takes from z, and whoever puts into some of P puts into z. A candidate j is free to fire if
// there is a set of places K of N' with z in it and at most one first token, such that every transition that puts into
// K takes from K and puts only one token there. An or-join that is no candidate may fire by any of its inputs here, as
// the engine's own analysis has it, so all of them must be in K if an output is. If every candidate is free, N and N'
// are equally sound.
//
// Proof. Follow a run of N, and suppose that so far every candidate fired exactly when some input was marked, and took
// all: then the run is one of N', in which K never holds more than one token. Let some of P be marked for a candidate
// j. Then nothing else in K is, and no transition but j can put anything there, not even by the rules of the engine's
// analysis, in which a candidate too fires by any one input: its inputs are in K all or none. So no other input of j
// can get a token before j fires: j may fire at once. And with no input marked it may not. So the supposition holds one
// step further.
//
// Joins that were removed before, and places merged by the other rules, do not disturb this: in the net before, K is
// the set of all places that were merged into those of K.
//
// Worked case: in a loop, an or-block within a branch of another has no such K. The outer join, fired by one branch
// alone, would come round the loop and start the inner block again while that is still marked: K holds the inner block,
// the way from the outer split, the loop, and so the outer join with all its branches, of which the split marks
// several. The engine sees it the same way: both joins wait for each other for ever.
//
// A candidate that is free even if the others count as none is removed at once, in the order of the flow, so that what
// lies before the next one is already small. Only what is left after that is looked at together.
func (r *reducer) removeOrJoins() bool {
	return r.removeOneByOne() || r.removeTogether()
}

func (r *reducer) removeOneByOne() bool {
	removed := false
	k := newTokenSet(r)
	more := maxPassSteps
	for _, j := range r.inFlowOrder() {
		if tr := &r.trans[j]; tr.dead || tr.orTask < 0 || !r.mergeable(j) {
			continue
		}
		k.group(j)
		free := k.holdsOneToken(j, max(fewSetSteps, min(maxSetSteps, more)))
		more -= k.spent
		k.ungroup(j)
		if free {
			r.mergeInputs(j)
			r.drain()
			removed = true
		}
	}
	return removed
}

// inFlowOrder lists the or-joins such that, loops aside, each comes behind those that lead to it: a walk in depth from
// the places that are marked at first leaves a transition when it has left all behind it, and the order is the reverse.
func (r *reducer) inFlowOrder() []int32 {
	if !slices.ContainsFunc(r.trans, func(t rtrans) bool { return !t.dead && t.orTask >= 0 }) {
		return nil
	}
	var joins []int32
	seen, next := make([]bool, len(r.trans)), make([]int, len(r.places))
	var path []onWalk
	enter := func(p int32) {
		for out := r.places[p].out; next[p] < len(out); next[p]++ {
			if t := out[next[p]]; !seen[t] {
				seen[t] = true
				path = append(path, onWalk{t: t})
				return
			}
		}
	}
	for p := range r.places {
		for more := r.places[p].marked; more; {
			enter(int32(p))
			more = len(path) > 0
			for len(path) > 0 {
				top := &path[len(path)-1]
				tr := &r.trans[top.t]
				if top.arc == len(tr.out) {
					if tr.orTask >= 0 {
						joins = append(joins, top.t)
					}
					path = path[:len(path)-1]
					continue
				}
				n := len(path)
				if enter(tr.out[top.arc].place); len(path) == n {
					top.arc++
				}
			}
		}
	}
	slices.Reverse(joins)
	for t := range r.trans {
		if tr := &r.trans[t]; !tr.dead && tr.orTask >= 0 && !seen[t] {
			joins = append(joins, int32(t))
		}
	}
	return joins
}

// onWalk is a transition that a walk has entered, and the output that it looks behind.
type onWalk struct {
	t   int32
	arc int
}

func (r *reducer) removeTogether() bool {
	k := newTokenSet(r)
	var candidates []int32
	for t := range r.trans {
		if tr := &r.trans[t]; !tr.dead && tr.orTask >= 0 && r.mergeable(int32(t)) {
			candidates = append(candidates, int32(t))
			k.group(int32(t))
		}
	}
	leans := make(map[int32][]int32) // by candidate shown to be free, the others that its set counts as one
	for i := 0; i < len(candidates); i++ {
		j := candidates[i]
		if _, known := leans[j]; known {
			continue
		}
		if k.holdsOneToken(j, maxSetSteps) {
			leans[j] = k.joins()
			continue
		}
		k.ungroup(j)
		candidates = slices.Delete(candidates, i, i+1)
		for other, on := range leans { // those that leaned on it must be looked at anew
			if slices.Contains(on, j) {
				delete(leans, other)
			}
		}
		i = -1
	}
	for _, j := range candidates {
		r.mergeInputs(j)
	}
	return len(candidates) > 0
}

// guessOrJoins takes the or-joins that are left for such as never have to wait, where their inputs can be merged. That
// is not always so: what a search shows after this has to be seen in the net itself.
func (r *reducer) guessOrJoins() {
	for t := range r.trans {
		tr := &r.trans[t]
		if tr.dead || tr.orTask < 0 || slices.ContainsFunc(tr.in, func(p int32) bool {
			return r.places[p].fixed || r.places[p].marked || len(r.places[p].out) != 1
		}) {
			continue
		}
		r.mergeInputs(int32(t))
		r.drain()
	}
}

// mergeable checks what is asked of the inputs of an or-join and of their producers.
func (r *reducer) mergeable(j int32) bool {
	tr := &r.trans[j]
	for _, p := range tr.in {
		if pl := &r.places[p]; pl.fixed || pl.marked || len(pl.out) != 1 || !r.emptiedAlike(pl, &r.places[tr.in[0]]) {
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
		r.unreset(p)
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
