package reduce

import "slices"

// Net is a net during reduction. The caller sets Marked, Fixed and Removed of its places, appends its transitions, and
// then calls [Net.Finish] and [Net.Run].
//
// For a net N and the reduced N', the proof of each rule must show:
//
//   - every run of N' is a run of N in which the removed transitions fire immediately, so that an error in N' can be
//     shown in N;
//   - if N' is safe and can always complete, N is safe and can always complete; and a removed transition can fire in N
//     if the remaining ones can fire in N'.
//
// Reset arcs. A transition may reset places, which removes their tokens. Two places have the same resets if the same
// transitions reset them; the rules that merge places require that. The rules have the forms of Murata's and, with
// resets, of those by Wynn, Verbeek, van der Aalst, ter Hofstede and Edmond ("Soundness-preserving reduction rules for
// reset workflow nets"). The conditions here are those that the short proofs need.
//
// Open ends. An end that only gets tokens is not a place of the reduced net; instead, a transition has a list of the
// ends that it puts into. If a rule makes one transition represent the firing of another, it puts into the ends of
// both. The first then fires as often as the second, except for the tokens that waited between the two, so the number
// of tokens in an end is bounded in N' if and only if it is bounded in N.
//
// Or-joins and or-splits stay symbolic; see [Net.Run] and orjoin.go for the rule that removes them. While an or-join
// remains, the result is not a verdict.
type Net struct {
	Places      []Place
	Transitions []Transition
	Unsafe      bool          // a place can get a second token, or a transition is dead: the net is not sound and safe
	Joins       []RemovedJoin // the or-joins that were removed

	queue  []int32 // transitions t, and places as -1-p
	large  []int32 // transitions with very many arcs or neighbours, which are processed last since they take long
	queued []bool  // transitions, then places
	stamp  []int32 // scratch, for sets of places or of transitions
	round  int32   // the number of the last set in stamp
	work   int     // arcs moved
	most   int     // limit of work
	trace  *trace  // nil unless runs must be translated back
}

// Place is a place of the net.
type Place struct {
	in, out []int32 // transitions
	resetBy []int32 // transitions that empty the place

	Marked  bool // it has a token initially
	Fixed   bool // the end: it must stay
	Removed bool
}

// Transition is a transition of the net: a task, a part of a task, or a transition of a plain net.
type Transition struct {
	In         []int32 // places
	Out        []Arc
	Resets     []int32 // places whose tokens it removes
	Ends       []int32 // open ends that get a token each time it fires; sorted
	OrTask     int32   // the task whose or-join this is; -1 for a plain transition
	OrSplit    bool    // it puts into any non-empty set of its outputs
	merged     bool    // inputs of the or-join were merged because they are always marked together
	Removed    bool
	Label      int32 // the move of the original net that takes from In: the first of those that a firing represents
	Seq        int32 // in a trace: the moves that a firing represents; see [Net.Leaf]
	SplitLabel int32 // in a trace: the or-split whose outputs are chosen here; -1 if none
}

// Arc is an output of a transition.
type Arc struct {
	Place int32
	seq   int32 // in a trace: the moves that follow immediately when this output is marked
	Bit   int16 // number of the output in its or-split
}

// New returns a net without transitions. With a trace, runs of the reduced net can be translated to runs of the
// original one. A trace takes memory, so less is reduced.
func New(places int, traced bool) *Net {
	r := &Net{Places: make([]Place, places), most: maxReduction}
	if traced {
		r.trace, r.most = newTrace(), maxTracing
	}
	return r
}

// Finish must be called after all transitions were set. It computes the transitions of each place, and queues
// everything.
func (r *Net) Finish() {
	ins, outs := 0, 0
	degree := make([]int32, 2*len(r.Places))
	for i := range r.Transitions {
		t := &r.Transitions[i]
		for _, p := range t.In {
			degree[2*p]++
		}
		for _, a := range t.Out {
			degree[2*a.Place+1]++
		}
		for _, p := range t.Resets {
			r.Places[p].resetBy = append(r.Places[p].resetBy, int32(i))
		}
		ins, outs = ins+len(t.In), outs+len(t.Out)
	}
	room := make([]int32, ins+outs)
	for i := range r.Places {
		p := &r.Places[i]
		o, n := int(degree[2*i]), int(degree[2*i+1])
		p.out, p.in, room = room[:0:o], room[o:o:o+n], room[o+n:]
	}
	for i := range r.Transitions {
		t := &r.Transitions[i]
		for _, p := range t.In {
			r.Places[p].out = append(r.Places[p].out, int32(i))
		}
		for _, a := range t.Out {
			r.Places[a.Place].in = append(r.Places[a.Place].in, int32(i))
		}
	}
	r.queued = make([]bool, len(r.Transitions)+len(r.Places))
	r.stamp = make([]int32, max(len(r.Transitions), len(r.Places)))
	r.queue = make([]int32, 0, len(r.Transitions)+len(r.Places))
	for p := range r.Places {
		r.pushPlace(int32(p))
	}
	for t := range r.Transitions {
		r.push(int32(t))
	}
}

// Plain reports whether the net has neither or-joins nor resets.
func (r *Net) Plain() bool {
	return !slices.ContainsFunc(r.Transitions, func(t Transition) bool { return t.OrTask >= 0 || len(t.Resets) > 0 })
}

func (r *Net) push(t int32) {
	if r.queued[t] {
		return
	}
	r.queued[t] = true
	if tr := &r.Transitions[t]; len(tr.In)+len(tr.Out) > manyArcs {
		r.large = append(r.large, t)
		return
	}
	r.queue = append(r.queue, t)
}

// later delays a transition that takes long until the queue is otherwise empty, and reports whether it did.
func (r *Net) later(t int32) bool {
	if len(r.queue) == 0 || r.queued[t] {
		return false
	}
	r.queued[t] = true
	r.large = append(r.large, t)
	return true
}

func (r *Net) pushPlace(p int32) {
	if at := len(r.Transitions) + int(p); !r.queued[at] {
		r.queued[at] = true
		r.queue = append(r.queue, -1-p)
	}
}

// manyArcs is the number of arcs or neighbours above which a transition is delayed.
const manyArcs = 64

// maxReduction limits the number of arcs that are moved in reducing one net: some seconds of work, and less if the net
// is only reduced to find a run. The reductions up to that limit remain valid, since each rule is correct by itself.
const (
	maxReduction = 1 << 32
	maxTracing   = 1 << 26
)

// done reports whether reduction can stop. A net that is known not to be sound and safe needs no further reduction,
// unless there is a trace.
func (r *Net) done() bool { return r.work > r.most || r.Unsafe && r.trace == nil }

// Run applies the rules until none applies.
func (r *Net) Run() {
	r.drain()
	for !r.done() && (r.mergeCycles() || r.removeOrJoins()) {
		r.drain()
	}
}

// drain applies the rules to the queue, and to what they add to it.
func (r *Net) drain() {
	for len(r.queue)+len(r.large) > 0 && !r.done() {
		if len(r.queue) == 0 {
			r.queue, r.large = append(r.queue, r.large[len(r.large)-1]), r.large[:len(r.large)-1]
		}
		x := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		if x >= 0 {
			r.queued[x] = false
			r.visitTransition(x)
		} else {
			r.queued[len(r.Transitions)+int(-1-x)] = false
			r.visitPlace(-1 - x)
		}
	}
}

func (r *Net) visitPlace(p int32) {
	if pl := &r.Places[p]; pl.Removed || r.tryAround(p) || r.crossProduct(p) {
		return
	}
	r.parallelPlaces(p)
	r.racingPlaces(p)
}

// tryAround tries the two rules that remove a place between two transitions or a transition between two places.
func (r *Net) tryAround(p int32) bool {
	pl := &r.Places[p]
	if pl.Removed || pl.Fixed || len(pl.out) != 1 {
		return false
	}
	t := pl.out[0]
	if tr := &r.Transitions[t]; tr.OrTask >= 0 && len(tr.In) == 1 {
		r.removeJoin(tr, JoinAnd)
	}
	return r.seriesPlaces(p, t) || len(pl.in) == 1 && r.seriesTransitions(pl.in[0], p, t)
}

func (r *Net) visitTransition(t int32) {
	tr := &r.Transitions[t]
	if tr.Removed {
		return
	}
	if len(tr.In) == 1 && tr.OrTask >= 0 {
		r.removeJoin(tr, JoinAnd)
	}
	if len(tr.Out) == 1 && tr.OrSplit {
		r.freeze(tr)
	}
	if len(tr.Resets) > 0 && tr.OrTask < 0 && containsAll(tr.In, tr.Resets) {
		r.dropResets(t)
	}
	if r.selfLoop(t) || len(tr.In) == 1 && r.tryAround(tr.In[0]) && tr.Removed {
		return
	}
	for i := 0; i < len(tr.Out); i++ {
		if p := tr.Out[i].Place; len(r.Places[p].in) == 1 && r.tryAround(p) {
			i = -1 // the outputs have changed
		}
		if tr.Removed {
			return
		}
	}
	r.parallelTransitions(t)
	for _, p := range tr.In {
		r.pushPlace(p)
	}
	for _, a := range tr.Out {
		r.pushPlace(a.Place)
	}
}

// selfLoop removes t if its outputs are its inputs and it has no other effect.
//
// Firing t changes nothing, so the runs of N and N' differ only in t. It can fire in some run if it is known that its
// inputs can be marked together: for a single input by an initial token or another producer, for several by another
// transition that takes from all of them.
func (r *Net) selfLoop(t int32) bool {
	tr := &r.Transitions[t]
	if len(tr.In) != len(tr.Out) || len(tr.In) == 0 || len(tr.Resets)+len(tr.Ends) > 0 || tr.OrTask >= 0 || tr.OrSplit {
		return false
	}
	for _, a := range tr.Out {
		if !slices.Contains(tr.In, a.Place) {
			return false
		}
	}
	p := &r.Places[tr.In[0]]
	enabled := len(tr.In) == 1 && (len(p.in) > 1 || p.Marked) || slices.ContainsFunc(p.out, func(x int32) bool {
		return x != t && r.Transitions[x].OrTask < 0 && containsAll(r.Transitions[x].In, tr.In)
	})
	if enabled {
		r.kill(t)
	}
	return enabled
}
