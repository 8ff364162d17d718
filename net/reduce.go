package net

import "slices"

// A reducer makes a net smaller without changing whether it is sound and safe (no place ever holds two tokens), until
// often nothing is left to search. Every rule below removes something; none is ever needed for a right answer.
//
// What each proof has to show, for a net N and the smaller N':
//
//   - every run of N' is a run of N in which the removed transitions fire at once, so that what goes wrong in N' can be
//     shown in N;
//   - if N' is safe and can always complete, so is and can N; and a transition that was removed can fire in N if those
//     that are left can fire in N'.
//
// Reset arcs. A transition may empty places. Two places are "emptied alike" when the same transitions empty them; the
// rules that merge places ask for it. Murata's rules and, with resets, those of Wynn, Verbeek, van der Aalst, ter
// Hofstede and Edmond ("Soundness-preserving reduction rules for reset workflow nets") have the same shapes; the
// conditions here are those that the short proofs need.
//
// Open ends. An end into which tokens go and from which none comes is no place of the reduced net; a transition knows
// which it spills into. A rule that lets one transition stand for the firing of another lets it spill into the ends of
// both. The first then fires as often as the second, but for as many times as a token waited between the two, so that
// there is a bound on the tokens of an end in N' exactly if there is one in N.
//
// Or-joins and or-splits stay symbolic; see reduce_or.go for the rule that removes them. As long as an or-join is left,
// the result decides nothing.
type reducer struct {
	places []rplace
	trans  []rtrans
	queue  []int32 // transitions t, and places as -1-p
	hubs   []int32 // transitions with very many arcs or neighbours: they come last, for to look at one takes long
	queued []bool  // transitions, then places
	stamp  []int32 // scratch, for sets of places or of transitions
	round  int32
	work   int           // arcs moved about
	most   int           // how much of that is allowed
	unsafe bool          // some place can get a second token, or something is dead: the net is not sound and safe
	joins  []removedJoin // what became of the or-joins that were removed
	trace  *trace        // nil unless runs must be translated back
}

type rplace struct {
	in, out []int32 // transitions
	resetBy []int32 // transitions that empty the place
	marked  bool
	fixed   bool // the end: it must stay
	dead    bool
}

type rtrans struct {
	in      []int32 // places
	out     []rarc
	resets  []int32
	spills  []int32 // open ends that get a token each time it fires; sorted
	orTask  int32   // task whose or-join this is; -1 for a plain one
	orSplit bool    // puts into any non-empty set of its outputs
	alike   bool    // inputs of the or-join were merged because they are always marked together
	dead    bool
	label   int32 // the move of the unreduced net that takes from in: the first one that firing stands for
	seq     int32 // in a trace: the moves that firing stands for
	own     int32 // in a trace: the or-split whose outputs are those chosen here; -1 if none
}

type rarc struct {
	place int32
	seq   int32 // in a trace: the moves that follow at once when this output is marked
	bit   int16 // number of the output in the or-split that it comes from
}

// newReducer makes a reducer without any transition.
func newReducer(places int) *reducer {
	return &reducer{places: make([]rplace, places), most: maxReduction}
}

// finish derives the places' view from the transitions' and puts everything on the queue.
func (r *reducer) finish() {
	ins, outs := 0, 0
	degree := make([]int32, 2*len(r.places))
	for i := range r.trans {
		t := &r.trans[i]
		for _, p := range t.in {
			degree[2*p]++
		}
		for _, a := range t.out {
			degree[2*a.place+1]++
		}
		for _, p := range t.resets {
			r.places[p].resetBy = append(r.places[p].resetBy, int32(i))
		}
		ins, outs = ins+len(t.in), outs+len(t.out)
	}
	room := make([]int32, ins+outs)
	for i := range r.places {
		p := &r.places[i]
		o, n := int(degree[2*i]), int(degree[2*i+1])
		p.out, p.in, room = room[:0:o], room[o:o:o+n], room[o+n:]
	}
	for i := range r.trans {
		t := &r.trans[i]
		for _, p := range t.in {
			r.places[p].out = append(r.places[p].out, int32(i))
		}
		for _, a := range t.out {
			r.places[a.place].in = append(r.places[a.place].in, int32(i))
		}
	}
	r.queued = make([]bool, len(r.trans)+len(r.places))
	r.stamp = make([]int32, max(len(r.trans), len(r.places)))
	r.queue = make([]int32, 0, len(r.trans)+len(r.places))
	for p := range r.places {
		r.pushPlace(int32(p))
	}
	for t := range r.trans {
		r.push(int32(t))
	}
}

// plain reports whether the net has neither or-joins nor resets.
func (r *reducer) plain() bool {
	return !slices.ContainsFunc(r.trans, func(t rtrans) bool { return t.orTask >= 0 || len(t.resets) > 0 })
}

func (r *reducer) push(t int32) {
	if r.queued[t] {
		return
	}
	r.queued[t] = true
	if tr := &r.trans[t]; len(tr.in)+len(tr.out) > hubArcs {
		r.hubs = append(r.hubs, t)
		return
	}
	r.queue = append(r.queue, t)
}

// later puts off what takes long until nothing else is on the queue, and reports whether anything is.
func (r *reducer) later(t int32) bool {
	if len(r.queue) == 0 || r.queued[t] {
		return false
	}
	r.queued[t] = true
	r.hubs = append(r.hubs, t)
	return true
}

func (r *reducer) pushPlace(p int32) {
	if at := len(r.trans) + int(p); !r.queued[at] {
		r.queued[at] = true
		r.queue = append(r.queue, -1-p)
	}
}

// hubArcs is how many arcs, or neighbours, are very many.
const hubArcs = 64

// maxReduction bounds the arcs that are moved about in reducing one net: some seconds' worth, and less where it is only
// to show a way to what is wrong. What has been reduced by then stays so, for every rule is right by itself.
const (
	maxReduction = 1 << 32
	maxTracing   = 1 << 26
)

// done reports whether reduction has nothing more to show: that the net is not sound and safe needs no more than one
// place.
func (r *reducer) done() bool { return r.work > r.most || r.unsafe && r.trace == nil }

// run applies the rules until none fits.
func (r *reducer) run() {
	r.drain()
	for !r.done() && (r.mergeRounds() || r.removeOrJoins()) {
		r.drain()
	}
}

// drain applies the rules for what is on the queue, and for what that leads to.
func (r *reducer) drain() {
	for len(r.queue)+len(r.hubs) > 0 && !r.done() {
		if len(r.queue) == 0 {
			r.queue, r.hubs = append(r.queue, r.hubs[len(r.hubs)-1]), r.hubs[:len(r.hubs)-1]
		}
		x := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		if x >= 0 {
			r.queued[x] = false
			r.visitTransition(x)
		} else {
			r.queued[len(r.trans)+int(-1-x)] = false
			r.visitPlace(-1 - x)
		}
	}
}

func (r *reducer) visitPlace(p int32) {
	if pl := &r.places[p]; pl.dead || r.tryAround(p) || r.crossProduct(p) {
		return
	}
	r.twinPlaces(p)
	r.racingPlaces(p)
}

// tryAround tries the two rules that remove a place between two transitions or a transition between two places.
func (r *reducer) tryAround(p int32) bool {
	pl := &r.places[p]
	if pl.dead || pl.fixed || len(pl.out) != 1 {
		return false
	}
	t := pl.out[0]
	if tr := &r.trans[t]; tr.orTask >= 0 && len(tr.in) == 1 {
		r.removeJoin(tr, joinAlike)
	}
	return r.seriesPlaces(p, t) || len(pl.in) == 1 && r.seriesTransitions(pl.in[0], p, t)
}

func (r *reducer) visitTransition(t int32) {
	tr := &r.trans[t]
	if tr.dead {
		return
	}
	if len(tr.in) == 1 && tr.orTask >= 0 {
		r.removeJoin(tr, joinAlike)
	}
	if len(tr.out) == 1 && tr.orSplit {
		r.freeze(tr)
	}
	if len(tr.resets) > 0 && tr.orTask < 0 && containsAll(tr.in, tr.resets) {
		r.dropResets(t)
	}
	if r.selfLoop(t) || len(tr.in) == 1 && r.tryAround(tr.in[0]) && tr.dead {
		return
	}
	for i := 0; i < len(tr.out); i++ {
		if p := tr.out[i].place; len(r.places[p].in) == 1 && r.tryAround(p) {
			i = -1 // the outputs are others now
		}
		if tr.dead {
			return
		}
	}
	r.twinTransitions(t)
	for _, p := range tr.in {
		r.pushPlace(p)
	}
	for _, a := range tr.out {
		r.pushPlace(a.place)
	}
}

// selfLoop removes t if it puts back what it takes, and nothing else.
//
// Firing t changes nothing, so runs of N and N' are the same but for t. It can fire in some run if something else shows
// that its inputs can be marked together: for a single input a first token or another producer, for more another
// transition that takes from all of them.
func (r *reducer) selfLoop(t int32) bool {
	tr := &r.trans[t]
	if len(tr.in) != len(tr.out) || len(tr.in) == 0 || len(tr.resets)+len(tr.spills) > 0 || tr.orTask >= 0 || tr.orSplit {
		return false
	}
	for _, a := range tr.out {
		if !slices.Contains(tr.in, a.place) {
			return false
		}
	}
	p := &r.places[tr.in[0]]
	enabled := len(tr.in) == 1 && (len(p.in) > 1 || p.marked) || slices.ContainsFunc(p.out, func(x int32) bool {
		return x != t && r.trans[x].orTask < 0 && containsAll(r.trans[x].in, tr.in)
	})
	if enabled {
		r.kill(t)
	}
	return enabled
}

// seriesPlaces removes p and t where p -> t -> q, t is the only one to take from p, and p and q are emptied alike: what
// marked p marks q.
//
// Move the token of p to q: a marking of N becomes one of N', the firing of t nothing, every other firing itself. N'
// fires what N fires, and N what N' does with t fired at once. p and q together hold in N what q holds in N', so safe
// N' means safe N; the runs to the end are the same; t fires since p is marked at the start or by a transition that is
// left. A producer of both p and q would need an arc of weight two in N', so it forbids the rule.
//
// For the or-joins that are left: while p is marked, an or-join behind q waits for it just as t can always bring it.
func (r *reducer) seriesPlaces(p, t int32) bool {
	tr, pl := &r.trans[t], &r.places[p]
	if len(tr.in) != 1 || len(tr.out) != 1 || len(tr.resets) > 0 || tr.out[0].place == p {
		return false
	}
	if tr.orSplit {
		r.freeze(tr)
	}
	q := tr.out[0].place
	to := &r.places[q]
	if !pl.marked && len(pl.in) == 0 || !r.emptiedAlike(pl, to) {
		return false
	}
	if pl.marked && to.marked || r.commonProducer(pl, to) {
		r.unsafe = true // t fires while q is marked, or the producer never does
		return false
	}
	r.trace.series(r, p, tr)
	for _, u := range pl.in {
		r.trans[u].spillToo(tr)
	}
	r.unreset(p)
	r.kill(t)
	if to.fixed || r.trace != nil || len(pl.in) <= len(to.in)+len(to.out) {
		r.moveProducers(p, q)
		to.marked = to.marked || pl.marked
		pl.dead = true
		r.touched(q)
		return true
	}
	// The same the other way round, where that touches fewer arcs: p takes the place of q. Both are emptied alike, and
	// p's own resets were just taken away, so it takes over those of q.
	r.moveProducers(q, p)
	for _, v := range to.out {
		replace(r.trans[v].in, q, p)
		r.push(v)
	}
	pl.out, to.out = to.out, nil
	pl.marked = pl.marked || to.marked
	pl.resetBy, to.resetBy = to.resetBy, nil
	for _, x := range pl.resetBy {
		replace(r.trans[x].resets, q, p)
	}
	to.dead = true
	r.touched(p)
	return true
}

// moveProducers makes every producer of p one of q.
func (r *reducer) moveProducers(p, q int32) {
	for _, u := range r.places[p].in {
		out := r.trans[u].out
		out[indexArc(out, p)].place = q
		r.push(u)
	}
	r.places[q].in = append(r.places[q].in, r.places[p].in...)
	r.places[p].in = nil
}

// seriesTransitions removes p and t where u -> p -> t and there is no other way into p, out of p or into t: u puts what
// t would.
//
// Fire t as soon as p is marked: a marking of N becomes one of N' by moving the token of p to the outputs of t, which
// are all emptied exactly when p is. N' fires what N fires, since nothing but t takes from p. Some output of t (there
// must be one, or a second token in p would go unseen) holds in N' what it and p hold in N, so safe N' means safe N. t
// fires when u has.
//
// An or-split keeps its meaning only if nothing else leaves u. Choosing early is no loss: an or-join that may fire
// before the choice may fire after it, since less can still come.
func (r *reducer) seriesTransitions(u, p, t int32) bool {
	from, pl, to := &r.trans[u], &r.places[p], &r.trans[t]
	if u == t || pl.marked || len(to.in) != 1 || len(to.resets) > 0 || len(to.out) == 0 {
		return false
	}
	if (from.orSplit || to.orSplit) && len(from.out) > 1 {
		return false
	}
	for _, a := range to.out {
		if !r.emptiedAlike(pl, &r.places[a.place]) {
			return false
		}
	}
	if r.work += len(from.out); r.shareOutput(u, from, to) {
		r.unsafe = true // t fires while what both put into is marked, or u never does
		return false
	}
	if from.orSplit {
		r.freeze(from)
	}
	at := indexArc(from.out, p)
	r.trace.fold(from, at, to)
	from.spillToo(to)
	r.unreset(p)
	from.orSplit = to.orSplit
	from.out = append(slices.Delete(from.out, at, at+1), to.out...)
	for _, a := range to.out {
		replace(r.places[a.place].in, t, u)
		r.pushPlace(a.place)
	}
	pl.dead, to.dead = true, true
	r.push(u)
	return true
}

// shareOutput reports whether both transitions put into one place. Where one has very many outputs and the other few,
// it asks the places of the few.
func (r *reducer) shareOutput(u int32, from, to *rtrans) bool {
	if len(from.out) > 64 && len(to.out) < 8 {
		return slices.ContainsFunc(to.out, func(a rarc) bool {
			r.work += len(r.places[a.place].in)
			return slices.Contains(r.places[a.place].in, u)
		})
	}
	r.round++
	for _, a := range from.out {
		r.stamp[a.place] = r.round
	}
	return slices.ContainsFunc(to.out, func(a rarc) bool { return r.stamp[a.place] == r.round })
}
