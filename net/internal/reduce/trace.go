package reduce

// trace records what the transitions of a reduced net represent, so that its runs can be translated to runs of the
// original net. It is kept only if such a run is needed. Sequences of moves are ropes: firing a transition represents
// its own sequence, followed by that of each output that it marked.
//
// The methods do nothing on a nil trace.
type trace struct {
	nodes []traceNode // number 0 is the empty sequence
	start int32       // moves before the first one, from the initial marking to the reduced one
}

// traceNode is one move, or the concatenation of two sequences.
type traceNode struct {
	left, right int32
	label       int32  // of the move in the original net
	chosen      uint64 // outputs of an or-split, as bits
	leaf        bool
}

func newTrace() *trace { return &trace{nodes: make([]traceNode, 1)} }

func (t *trace) leaf(label int32, chosen uint64) int32 {
	if t == nil {
		return 0
	}
	t.nodes = append(t.nodes, traceNode{label: label, chosen: chosen, leaf: true})
	return int32(len(t.nodes) - 1)
}

func (t *trace) concat(seqs ...int32) int32 {
	all := int32(0)
	for _, s := range seqs {
		switch {
		case all == 0:
			all = s
		case s != 0:
			t.nodes = append(t.nodes, traceNode{left: all, right: s})
			all = int32(len(t.nodes) - 1)
		}
	}
	return all
}

// series records that a transition which marks p makes tr fire.
func (t *trace) series(r *Net, p int32, tr *Transition) {
	if t == nil {
		return
	}
	after := t.concat(tr.Seq, tr.Out[0].seq)
	for _, u := range r.Places[p].in {
		out := r.Transitions[u].Out
		a := &out[indexArc(out, p)]
		a.seq = t.concat(a.seq, after)
	}
	if r.Places[p].Marked {
		t.start = t.concat(t.start, after)
	}
}

// cycle records that places on a cycle are merged into the first of them. A transition that puts a token into another
// one also moves it to the first, and one that takes from another also moves it back.
func (t *trace) cycle(r *Net, ps []int32) {
	if t == nil {
		return
	}
	inRound := make(map[int32]bool, len(ps))
	for _, p := range ps {
		inRound[p] = true
	}
	there, back := map[int32]int32{ps[0]: 0}, map[int32]int32{ps[0]: 0} // paths from the first place, and to it
	for todo := ps[:1:1]; len(todo) > 0; todo = todo[1:] {
		for _, s := range r.Places[todo[0]].out {
			if tr := &r.Transitions[s]; r.isStep(s) && inRound[tr.Out[0].Place] {
				if q := tr.Out[0].Place; !has(there, q) {
					there[q] = t.concat(there[todo[0]], tr.Seq, tr.Out[0].seq)
					todo = append(todo, q)
				}
			}
		}
	}
	for todo := ps[:1:1]; len(todo) > 0; todo = todo[1:] {
		for _, s := range r.Places[todo[0]].in {
			if tr := &r.Transitions[s]; r.isStep(s) && inRound[tr.In[0]] {
				if q := tr.In[0]; !has(back, q) {
					back[q] = t.concat(tr.Seq, tr.Out[0].seq, back[todo[0]])
					todo = append(todo, q)
				}
			}
		}
	}
	for _, p := range ps[1:] {
		pl := &r.Places[p]
		for _, u := range pl.in {
			a := &r.Transitions[u].Out[indexArc(r.Transitions[u].Out, p)]
			a.seq = t.concat(a.seq, back[p])
		}
		for _, v := range pl.out {
			r.Transitions[v].Seq = t.concat(there[p], r.Transitions[v].Seq)
		}
		if pl.Marked {
			t.start = t.concat(t.start, back[p])
		}
	}
}

func has(m map[int32]int32, k int32) bool {
	_, ok := m[k]
	return ok
}

// fold records that firing one transition makes the other fire, by its output number at.
func (t *trace) fold(from *Transition, at int, to *Transition) {
	if t == nil {
		return
	}
	from.Seq = t.concat(from.Seq, from.Out[at].seq, to.Seq)
	from.SplitLabel = to.SplitLabel
}

// dropPlace records that what follows a token in q now follows one in the parallel place p.
func (t *trace) dropPlace(r *Net, p, q int32) {
	if t == nil {
		return
	}
	for _, u := range r.Places[p].in {
		out := r.Transitions[u].Out
		t.join(&out[indexArc(out, p)], &out[indexArc(out, q)])
	}
}

// join records that what follows one output also follows the other.
func (t *trace) join(a, b *Arc) {
	if t != nil {
		a.seq = t.concat(a.seq, b.seq)
	}
}

// freeze turns an or-split with one remaining output into a plain transition.
func (r *Net) freeze(tr *Transition) {
	tr.OrSplit = false
	if r.trace != nil && tr.SplitLabel >= 0 {
		tr.Seq = r.trace.concat(tr.Seq, r.trace.leaf(tr.SplitLabel, 1<<tr.Out[0].Bit))
	}
	tr.SplitLabel = -1
}

// TracedMove is a move of the original net.
type TracedMove struct {
	Label  int32
	Chosen uint64
}

// unroll appends the moves of a sequence.
func (t *trace) unroll(dst []TracedMove, seq int32) []TracedMove {
	todo := []int32{seq}
	for len(todo) > 0 {
		n := t.nodes[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		switch {
		case n.leaf:
			dst = append(dst, TracedMove{Label: n.label, Chosen: n.chosen})
		case n.right != 0:
			todo = append(todo, n.right, n.left)
		}
	}
	return dst
}

// Leaf returns the sequence of one move; empty without a trace.
func (r *Net) Leaf(label int32) int32 { return r.trace.leaf(label, 0) }

// Prefix returns the moves from the initial marking of the original net to that of the reduced net.
func (r *Net) Prefix() []TracedMove { return r.trace.unroll(nil, r.trace.start) }

// Firing appends the moves that a firing represents, with the marked outputs in its set.
func (r *Net) Firing(dst []TracedMove, f Firing) []TracedMove {
	tr := &r.Transitions[f.Transition]
	dst = r.trace.unroll(dst, tr.Seq)
	if tr.SplitLabel >= 0 {
		var chosen uint64
		for i, a := range tr.Out {
			if f.outputs>>i&1 != 0 {
				chosen |= 1 << a.Bit
			}
		}
		dst = append(dst, TracedMove{Label: tr.SplitLabel, Chosen: chosen})
	}
	for i, a := range tr.Out {
		if !tr.OrSplit || f.outputs>>i&1 != 0 {
			dst = r.trace.unroll(dst, a.seq)
		}
	}
	return dst
}
