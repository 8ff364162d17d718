package net

import (
	"slices"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// mergeRounds makes one place of places that a token can go round, and reports whether there were any: from each of
// them transitions that take from one place and put into one lead to every other. That is what is left of loops and of
// choices that are no blocks.
//
// Let p and q be two of them, emptied alike. A token in p can go to q by itself, and back, whatever else happens. Move
// it to the place z that stands for all: a marking of N becomes one of N', a step on the round nothing, every other
// firing itself. N' fires what N fires, and N what N' does after some steps on the round. With p and q marked at once
// N' is not safe, and neither is N, for the one token can follow the other. What can complete in N' can in N. The steps
// become self-loops at z, which can fire if z is ever marked, as they can if p or q is.
//
// A transition that takes from two of them, or puts into two, would need an arc of weight two. An or-join may not take
// from any: at p it would wait for the token in q.
func (r *reducer) mergeRounds() bool {
	steps := 0
	for t := range r.trans {
		if r.isStep(int32(t)) {
			steps++
		}
	}
	if steps < 2 {
		return false
	}
	component := graph.Components(len(r.places), r.stepsFrom)
	rounds := make(map[int][]int32)
	for p := range r.places {
		if !r.places[p].dead {
			rounds[component[p]] = append(rounds[component[p]], int32(p))
		}
	}
	merged := false
	for p := range r.places { // in the order of the places, so that equal nets are reduced alike
		if ps := rounds[component[p]]; len(ps) > 1 && ps[0] == int32(p) && r.isRound(ps) {
			r.mergeRound(ps)
			merged = true
		}
	}
	return merged
}

// isStep reports whether all that the transition does is to move a token from one place to another.
func (r *reducer) isStep(t int32) bool {
	tr := &r.trans[t]
	return !tr.dead && len(tr.in) == 1 && len(tr.out) == 1 && len(tr.resets)+len(tr.spills) == 0 && tr.orTask < 0 && !tr.orSplit &&
		tr.out[0].place != tr.in[0]
}

func (r *reducer) stepsFrom(p int) []int {
	var next []int
	for _, t := range r.places[p].out {
		if r.isStep(t) {
			next = append(next, int(r.trans[t].out[0].place))
		}
	}
	return next
}

// isRound reports whether places that a token can go round may become one.
func (r *reducer) isRound(ps []int32) bool {
	marked := 0
	taken, put := r.round+1, r.round+2 // marks of transitions that were met
	r.round += 2
	for _, p := range ps {
		pl := &r.places[p]
		if pl.marked {
			marked++
		}
		if marked > 1 || !r.emptiedAlike(pl, &r.places[ps[0]]) {
			return false
		}
		for _, t := range pl.out {
			if r.stamp[t] == taken || r.trans[t].orTask >= 0 {
				return false
			}
			r.stamp[t] = taken
		}
	}
	for _, p := range ps {
		for _, t := range r.places[p].in {
			if r.stamp[t] == put {
				return false
			}
			r.stamp[t] = put
		}
	}
	return true
}

// mergeRound makes the first of the places stand for all of them.
func (r *reducer) mergeRound(ps []int32) {
	r.trace.around(r, ps)
	z := ps[0]
	for _, p := range ps[1:] {
		r.moveProducers(p, z)
		pl := &r.places[p]
		for _, t := range pl.out {
			replace(r.trans[t].in, p, z)
			r.push(t)
		}
		r.places[z].out = append(r.places[z].out, pl.out...)
		r.places[z].marked = r.places[z].marked || pl.marked
		r.unreset(p)
		*pl = rplace{dead: true}
	}
	r.dropRounds(z)
	for _, t := range r.places[z].out {
		r.push(t)
	}
	r.touched(z)
}

// dropRounds removes the steps that have become self-loops, all at once: see [reducer.selfLoop].
func (r *reducer) dropRounds(z int32) {
	pl := &r.places[z]
	round := func(t int32) bool {
		tr := &r.trans[t]
		return len(tr.in) == 1 && len(tr.out) == 1 && len(tr.resets)+len(tr.spills) == 0 && tr.orTask < 0 && tr.in[0] == tr.out[0].place
	}
	if !pl.marked && !slices.ContainsFunc(pl.in, func(t int32) bool { return !round(t) }) {
		return // nothing shows that they can fire
	}
	pl.in = slices.DeleteFunc(pl.in, round)
	pl.out = slices.DeleteFunc(pl.out, func(t int32) bool {
		r.trans[t].dead = r.trans[t].dead || round(t)
		return r.trans[t].dead
	})
}
