package reduce

import "slices"

// Net is a net that is being reduced. The caller sets Marked, Fixed and Removed of its places and appends its
// transitions, and then calls [Net.Finish] and [Net.Run].
//
// What the proof of each rule has to show, for a net N and the smaller N':
//
//   - every run of N' is a run of N in which the removed transitions fire at once, so that what goes wrong in N' can be
//     shown in N;
//   - if N' is safe and can always complete, so is and can N; and a transition that was removed can fire in N if those
//     that are left can fire in N'.
//
// Reset arcs. A transition may empty places. Two places have the same resets if the same transitions empty them; the
// rules that merge places require it. Murata's rules and, with resets, those of Wynn, Verbeek, van der Aalst, ter
// Hofstede and Edmond ("Soundness-preserving reduction rules for reset workflow nets") have the same shapes; the
// conditions here are those that the short proofs need.
//
// Open ends. An end into which tokens go and from which none comes is no place of the reduced net; a transition knows
// the ends that it puts into. A rule that lets one transition stand for the firing of another lets it put into the ends
// of both. The first then fires as often as the second, except for as many times as a token waited between the two, so
// there is a bound on the tokens of an end in N' exactly if there is one in N.
//
// Or-joins and or-splits stay symbolic; see [Net.Run] and orjoin.go for the rule that removes them. As long as an
// or-join is left, the result decides nothing.
type Net struct {
	Places      []Place
	Transitions []Transition
	Unsafe      bool          // some place can get a second token, or something is dead: the net is not sound and safe
	Joins       []RemovedJoin // the or-joins that were removed

	queue  []int32 // transitions t, and places as -1-p
	large  []int32 // transitions with very many arcs or neighbours: they come last, for to look at one takes long
	queued []bool  // transitions, then places
	stamp  []int32 // scratch, for sets of places or of transitions
	round  int32   // the number of the set that stamp holds last
	work   int     // arcs moved
	most   int     // how much of that is allowed
	trace  *trace  // nil unless runs must be translated back
}

// Place is a place of the net.
type Place struct {
	in, out []int32 // transitions
	resetBy []int32 // transitions that empty the place

	Marked  bool // it holds a token at first
	Fixed   bool // the end: it must stay
	Removed bool
}

// Transition is a transition of the net: a task, a part of one, or a transition of a plain net.
type Transition struct {
	In         []int32 // places
	Out        []Arc
	Resets     []int32 // places that it empties
	Ends       []int32 // open ends that get a token each time it fires; sorted
	OrTask     int32   // the task whose or-join this is; -1 for a plain transition
	OrSplit    bool    // it puts into any non-empty set of its outputs
	merged     bool    // inputs of the or-join were merged because they are always marked together
	Removed    bool
	Label      int32 // the move of the unreduced net that takes from In: the first one that firing stands for
	Seq        int32 // in a trace: the moves that firing stands for; see [Net.Leaf]
	SplitLabel int32 // in a trace: the or-split whose outputs are those chosen here; -1 if none
}

// Arc is an output of a transition.
type Arc struct {
	Place int32
	seq   int32 // in a trace: the moves that follow at once when this output is marked
	Bit   int16 // number of the output in the or-split that it comes from
}

// New makes a net without any transition. With a trace, runs of what is left can be translated to runs of the net that
// it came from; that takes memory, so less is reduced.
func New(places int, traced bool) *Net {
	r := &Net{Places: make([]Place, places), most: maxReduction}
	if traced {
		r.trace, r.most = newTrace(), maxTracing
	}
	return r
}

// Finish must be called when all transitions are set. It lists for each place its transitions, and queues everything.
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

// later puts off what takes long until nothing else is on the queue, and reports whether anything is.
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

// manyArcs is how many arcs, or neighbours, are very many.
const manyArcs = 64

// maxReduction bounds the arcs that are moved about in reducing one net: some seconds' worth, and less where it is only
// to show a way to what is wrong. What has been reduced by then stays so, for every rule is right by itself.
const (
	maxReduction = 1 << 32
	maxTracing   = 1 << 26
)

// done reports whether reduction has nothing more to show: that the net is not sound and safe needs no more than one
// place.
func (r *Net) done() bool { return r.work > r.most || r.Unsafe && r.trace == nil }

// Run applies the rules until none fits.
func (r *Net) Run() {
	r.drain()
	for !r.done() && (r.mergeCycles() || r.removeOrJoins()) {
		r.drain()
	}
}

// drain applies the rules for what is on the queue, and for what that leads to.
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
			i = -1 // the outputs are others now
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

// selfLoop removes t if it puts back what it takes, and nothing else.
//
// Firing t changes nothing, so runs of N and N' are the same but for t. It can fire in some run if something else shows
// that its inputs can be marked together: for a single input a first token or another producer, for more another
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
