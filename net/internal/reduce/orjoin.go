package reduce

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// JoinKind is the actual behaviour of an or-join that reduction has removed. The zero value is JoinMixed.
type JoinKind uint8

// The kinds.
const (
	JoinMixed JoinKind = iota // sometimes one input is marked, sometimes several
	JoinAnd                   // all inputs are always marked together: an and-join
	JoinXor                   // never two inputs are marked: an xor-join
)

// RemovedJoin is an or-join that reduction has replaced by a plain transition.
type RemovedJoin struct {
	Task net.TaskID
	Kind JoinKind
}

// removeJoin turns an or-join into a plain transition.
func (r *Net) removeJoin(tr *Transition, kind JoinKind) {
	r.Joins = append(r.Joins, RemovedJoin{Task: net.TaskID(tr.OrTask), Kind: kind})
	tr.OrTask = -1
}

// removeOrJoins merges the inputs of or-joins that never have to wait once one of them is marked, and reports whether
// there was such an or-join.
//
// An or-join is a candidate if its inputs P feed it alone, are empty at first, have the same resets, and every or-split
// that puts into P can put nowhere else. Let N' be the net in which P is one place z for every candidate, marked when
// any of P is: the join takes from z, and a transition that puts into some of P puts into z. A candidate j is free to
// fire if there is a set of places K of N' with z in it and at most one first token, such that every transition that
// puts into K takes from K (K is a siphon) and puts only one token there. An or-join that is no candidate may fire by
// any of its inputs here, as the engine's own analysis has it, so all of them must be in K if an output is. If every
// candidate is free, N and N' are equally sound.
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
// several. The engine sees it the same way: both joins wait for each other without end.
//
// A candidate that is free even if the others count as none is removed at once, in the order of the flow, so that what
// lies before the next one is already small. Only what is left after that is looked at together.
func (r *Net) removeOrJoins() bool {
	return r.removeOneByOne() || r.removeTogether()
}

func (r *Net) removeOneByOne() bool {
	removed := false
	k := newSiphon(r)
	more := maxPassSteps
	for _, j := range r.inFlowOrder() {
		if tr := &r.Transitions[j]; tr.Removed || tr.OrTask < 0 || !r.mergeable(j) {
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

// inFlowOrder lists the or-joins such that, except for loops, each comes after those that lead to it: the reverse
// postorder of a depth-first search from the places that are marked initially.
func (r *Net) inFlowOrder() []int32 {
	if !slices.ContainsFunc(r.Transitions, func(t Transition) bool { return !t.Removed && t.OrTask >= 0 }) {
		return nil
	}
	var joins []int32
	seen, next := make([]bool, len(r.Transitions)), make([]int, len(r.Places))
	var path []frame
	enter := func(p int32) {
		for out := r.Places[p].out; next[p] < len(out); next[p]++ {
			if t := out[next[p]]; !seen[t] {
				seen[t] = true
				path = append(path, frame{t: t})
				return
			}
		}
	}
	for p := range r.Places {
		for more := r.Places[p].Marked; more; {
			enter(int32(p))
			more = len(path) > 0
			for len(path) > 0 {
				top := &path[len(path)-1]
				tr := &r.Transitions[top.t]
				if top.arc == len(tr.Out) {
					if tr.OrTask >= 0 {
						joins = append(joins, top.t)
					}
					path = path[:len(path)-1]
					continue
				}
				n := len(path)
				if enter(tr.Out[top.arc].Place); len(path) == n {
					top.arc++
				}
			}
		}
	}
	slices.Reverse(joins)
	for t := range r.Transitions {
		if tr := &r.Transitions[t]; !tr.Removed && tr.OrTask >= 0 && !seen[t] {
			joins = append(joins, int32(t))
		}
	}
	return joins
}

// frame is a transition on the path of a depth-first search, with its current output.
type frame struct {
	t   int32
	arc int
}

func (r *Net) removeTogether() bool {
	k := newSiphon(r)
	var candidates []int32
	for t := range r.Transitions {
		if tr := &r.Transitions[t]; !tr.Removed && tr.OrTask >= 0 && r.mergeable(int32(t)) {
			candidates = append(candidates, int32(t))
			k.group(int32(t))
		}
	}
	leans := make(map[int32][]int32) // by free candidate, the others that its set counts as one place
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
		for other, on := range leans { // those that depend on it must be checked again
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

// AssumeOrJoins assumes that the remaining or-joins never have to wait, if their inputs can be merged. The assumption
// may be wrong: what a later search shows must be verified in the net itself.
func (r *Net) AssumeOrJoins() {
	for t := range r.Transitions {
		tr := &r.Transitions[t]
		if tr.Removed || tr.OrTask < 0 || slices.ContainsFunc(tr.In, func(p int32) bool {
			return r.Places[p].Fixed || r.Places[p].Marked || len(r.Places[p].out) != 1
		}) {
			continue
		}
		r.mergeInputs(int32(t))
		r.drain()
	}
}

// mergeable checks the conditions for the inputs of an or-join and their producers.
func (r *Net) mergeable(j int32) bool {
	tr := &r.Transitions[j]
	for _, p := range tr.In {
		if pl := &r.Places[p]; pl.Fixed || pl.Marked || len(pl.out) != 1 || !r.sameResets(pl, &r.Places[tr.In[0]]) {
			return false
		}
	}
	for _, p := range tr.In {
		for _, u := range r.Places[p].in {
			if from := &r.Transitions[u]; from.OrSplit && slices.ContainsFunc(from.Out, func(a Arc) bool {
				return !slices.Contains(tr.In, a.Place)
			}) {
				return false // it may also choose none of the inputs
			}
		}
	}
	return true
}

// mergeInputs merges the inputs of an or-join into one place.
func (r *Net) mergeInputs(j int32) {
	tr := &r.Transitions[j]
	r.removeJoin(tr, r.joinKindOf(tr))
	z, others := tr.In[0], tr.In[1:]
	for _, p := range others {
		for _, u := range r.Places[p].in {
			r.mergeArc(u, p, z)
		}
		r.dropResetArcs(p)
		r.Places[p] = Place{Removed: true}
	}
	tr.In = tr.In[:1]
	for _, u := range r.Places[z].in {
		r.push(u)
	}
	r.push(j)
	r.pushPlace(z)
}

// mergeArc turns the arc from u to p into one to z, unless there is one already.
func (r *Net) mergeArc(u, p, z int32) {
	from := &r.Transitions[u]
	at, to := indexArc(from.Out, p), indexArc(from.Out, z)
	if to < 0 {
		from.Out[at].Place = z
		r.Places[z].in = append(r.Places[z].in, u)
		return
	}
	if !from.OrSplit { // an or-split chooses one of them; any other transition marks both
		r.trace.join(&from.Out[to], &from.Out[at])
	}
	from.Out = slices.Delete(from.Out, at, at+1)
}

// joinKindOf derives the behaviour of an or-join from the producers of its inputs.
func (r *Net) joinKindOf(j *Transition) JoinKind {
	one, all := true, true
	for _, p := range j.In {
		for _, u := range r.Places[p].in {
			n := 0
			for _, a := range r.Transitions[u].Out {
				if slices.Contains(j.In, a.Place) {
					n++
				}
			}
			one = one && n == 1
			all = all && n == len(j.In) && !r.Transitions[u].OrSplit
		}
	}
	switch {
	case all:
		return JoinAnd
	case one && !j.merged:
		return JoinXor
	}
	return JoinMixed
}
