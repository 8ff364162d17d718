package net

// trace remembers what the transitions of a reduced net stand for, so that a run of it can be told as a run of the net
// that it came from. It is kept only when such a run is wanted. Sequences of moves are ropes: firing a transition
// stands for its own sequence and then that of each output that it marked.
//
// The methods do nothing on a nil trace.
type trace struct {
	nodes []traceNode // number 0 is the empty sequence
	start int32       // moves before the first one: those that lead from the first marking to the reduced one
}

// traceNode is one move, or two sequences after each other.
type traceNode struct {
	left, right int32
	label       int32  // of the move in the unreduced net
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

// series: whoever marks p makes tr fire.
func (t *trace) series(r *reducer, p int32, tr *rtrans) {
	if t == nil {
		return
	}
	after := t.concat(tr.seq, tr.out[0].seq)
	for _, u := range r.places[p].in {
		out := r.trans[u].out
		a := &out[indexArc(out, p)]
		a.seq = t.concat(a.seq, after)
	}
	if r.places[p].marked {
		t.start = t.concat(t.start, after)
	}
}

// around: a token in one of the places, which lie on rounds, stands in the first of them. Whoever puts one into another
// moves it there, and whoever takes it from another has it moved back.
func (t *trace) around(r *reducer, ps []int32) {
	if t == nil {
		return
	}
	inRound := make(map[int32]bool, len(ps))
	for _, p := range ps {
		inRound[p] = true
	}
	there, back := map[int32]int32{ps[0]: 0}, map[int32]int32{ps[0]: 0} // ways from the first place, and to it
	for todo := ps[:1:1]; len(todo) > 0; todo = todo[1:] {
		for _, s := range r.places[todo[0]].out {
			if tr := &r.trans[s]; r.isStep(s) && inRound[tr.out[0].place] {
				if q := tr.out[0].place; !has(there, q) {
					there[q] = t.concat(there[todo[0]], tr.seq, tr.out[0].seq)
					todo = append(todo, q)
				}
			}
		}
	}
	for todo := ps[:1:1]; len(todo) > 0; todo = todo[1:] {
		for _, s := range r.places[todo[0]].in {
			if tr := &r.trans[s]; r.isStep(s) && inRound[tr.in[0]] {
				if q := tr.in[0]; !has(back, q) {
					back[q] = t.concat(tr.seq, tr.out[0].seq, back[todo[0]])
					todo = append(todo, q)
				}
			}
		}
	}
	for _, p := range ps[1:] {
		pl := &r.places[p]
		for _, u := range pl.in {
			a := &r.trans[u].out[indexArc(r.trans[u].out, p)]
			a.seq = t.concat(a.seq, back[p])
		}
		for _, v := range pl.out {
			r.trans[v].seq = t.concat(there[p], r.trans[v].seq)
		}
		if pl.marked {
			t.start = t.concat(t.start, back[p])
		}
	}
}

func has(m map[int32]int32, k int32) bool {
	_, ok := m[k]
	return ok
}

// fold: firing the one transition makes the other fire by its output number at.
func (t *trace) fold(from *rtrans, at int, to *rtrans) {
	if t == nil {
		return
	}
	from.seq = t.concat(from.seq, from.out[at].seq, to.seq)
	from.own = to.own
}

// dropPlace: what follows a token in q now follows one in its twin p.
func (t *trace) dropPlace(r *reducer, p, q int32) {
	if t == nil {
		return
	}
	for _, u := range r.places[p].in {
		out := r.trans[u].out
		t.join(&out[indexArc(out, p)], &out[indexArc(out, q)])
	}
}

// join: what follows the one output follows the other too.
func (t *trace) join(a, b *rarc) {
	if t != nil {
		a.seq = t.concat(a.seq, b.seq)
	}
}

// freeze makes a plain transition of an or-split with one output left.
func (r *reducer) freeze(tr *rtrans) {
	tr.orSplit = false
	if r.trace != nil && tr.own >= 0 {
		tr.seq = r.trace.concat(tr.seq, r.trace.leaf(tr.own, 1<<tr.out[0].bit))
	}
	tr.own = -1
}

// tracedMove is a move of the unreduced net.
type tracedMove struct {
	label  int32
	chosen uint64
}

// unroll appends the moves of a sequence.
func (t *trace) unroll(dst []tracedMove, seq int32) []tracedMove {
	todo := []int32{seq}
	for len(todo) > 0 {
		n := t.nodes[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		switch {
		case n.leaf:
			dst = append(dst, tracedMove{label: n.label, chosen: n.chosen})
		case n.right != 0:
			todo = append(todo, n.right, n.left)
		}
	}
	return dst
}

// firing appends what a firing of the transition stands for, with the outputs marked that are in the set.
func (r *reducer) firing(dst []tracedMove, f reducedFiring) []tracedMove {
	tr := &r.trans[f.trans]
	dst = r.trace.unroll(dst, tr.seq)
	if tr.own >= 0 {
		var chosen uint64
		for i, a := range tr.out {
			if f.outputs>>i&1 != 0 {
				chosen |= 1 << a.bit
			}
		}
		dst = append(dst, tracedMove{label: tr.own, chosen: chosen})
	}
	for i, a := range tr.out {
		if !tr.orSplit || f.outputs>>i&1 != 0 {
			dst = r.trace.unroll(dst, a.seq)
		}
	}
	return dst
}
