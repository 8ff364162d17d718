package net

import (
	"slices"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// reducedFiring is what a move of a reduced game stands for: a transition, and the outputs that it marks, as bits, if
// it is an or-split.
type reducedFiring struct {
	trans   int32
	outputs uint32
}

// maxOrOutputs bounds the outputs of an or-split in a search: it has a move for every set of them.
const maxOrOutputs = 10

// game makes a game of what is left of the net. The labels of its moves are numbers of the firings. It returns nil if
// an or-split is too wide, or if an or-join is left and those are not to be guessed, see [patience]. The end is the
// place that must keep the last token, or -1.
func (r *reducer) game(end int32, guess bool) (*game, []reducedFiring) {
	g := &game{end: -1, safe: true, most: maxCount}
	number := make([]int32, len(r.places))
	for p := range r.places {
		pl := &r.places[p]
		if pl.dead {
			continue
		}
		number[p] = int32(g.places)
		if int32(p) == end {
			g.end = int32(g.places)
		}
		g.places++
		g.start = append(g.start, 0)
		if pl.marked {
			g.start[g.places-1] = 1
		}
	}
	r.openEnds(g, number)
	var firings []reducedFiring
	for i := range r.trans {
		t := &r.trans[i]
		switch {
		case t.dead:
		case t.orTask >= 0 && !guess || t.orSplit && len(t.out) > maxOrOutputs:
			return nil, nil
		default:
			firings = r.addMoves(g, int32(i), number, firings)
		}
	}
	g.index()
	g.ask = patience{g}
	return g, firings
}

// openEnds gives a place in the game to each end that a transition spills into.
func (r *reducer) openEnds(g *game, number []int32) {
	var ends []int32
	for i := range r.trans {
		if t := &r.trans[i]; !t.dead {
			for _, p := range t.spills {
				ends = withSpill(ends, p)
			}
		}
	}
	if len(ends) == 0 {
		return
	}
	g.open = NewBits(g.places + len(ends))
	for _, p := range ends {
		number[p] = int32(g.places)
		g.open.Add(g.places)
		g.places++
		g.start = append(g.start, 0)
	}
}

// addMoves adds the moves of a transition to a game: one, or for an or-split one for every set of its outputs.
func (r *reducer) addMoves(g *game, i int32, number []int32, firings []reducedFiring) []reducedFiring {
	t := &r.trans[i]
	m := gameMove{in: make([]gameArc, len(t.in)), or: t.orTask, task: i}
	for k, p := range t.in {
		m.in[k] = gameArc{place: number[p], n: 1}
	}
	for _, p := range t.resets {
		m.resets = append(m.resets, number[p])
	}
	for set := uint32(1); set == 1 || t.orSplit && set < 1<<len(t.out); set++ {
		m.label = int32(len(firings))
		m.out = make([]gameArc, 0, len(t.out))
		for k, a := range t.out {
			if !t.orSplit || set>>k&1 != 0 {
				m.out = append(m.out, gameArc{place: number[a.place], n: 1})
			}
		}
		for _, p := range t.spills {
			m.out = append(m.out, gameArc{place: number[p], n: 1})
		}
		g.moves = append(g.moves, m)
		firings = append(firings, reducedFiring{trans: i, outputs: set})
	}
	return firings
}

// patience is a guess at or-joins where nobody can be asked: they start when nothing else can happen. It is a good one,
// but what a search shows that relies on it has to be seen in the net itself.
type patience struct{ g *game }

func (p patience) orEnabled(_ *gameMove, state []uint8) bool {
	return !slices.ContainsFunc(p.g.moves, func(m gameMove) bool { return m.or < 0 && p.g.enabled(&m, state) })
}

func (patience) memberEnabled(*gameSpare, []uint8) bool { return false }
func (patience) awaits(*gameMove, int32) bool           { return true }
func (patience) spent() int                             { return 0 }
func (patience) guesses() int                           { return 0 }

// oneTokenSound reports whether what is left is a state machine that holds one token, every transition of which lies on
// a way from there to the end. Such a net is sound, and a search of it would only walk the same graph with more effort.
func (r *reducer) oneTokenSound(end int32) bool {
	start := int32(-1)
	if r.spillsAround() {
		return false
	}
	for p := range r.places {
		if pl := &r.places[p]; !pl.dead && pl.marked {
			if start >= 0 {
				return false
			}
			start = int32(p)
		}
	}
	if start < 0 {
		return false
	}
	last := []int32{end}
	for i := range r.trans {
		t := &r.trans[i]
		switch {
		case t.dead:
		case len(t.in) != 1 || len(t.out) > 1 || t.orSplit || len(t.out) == 0 && end >= 0:
			return false
		case len(t.out) == 0:
			last = append(last, t.in[0])
		}
	}
	forth, back := NewBits(len(r.places)), NewBits(len(r.places))
	r.walk(forth, []int32{start}, func(p int32) []int32 { return r.places[p].out }, func(t *rtrans) int32 {
		if len(t.out) == 0 {
			return -1
		}
		return t.out[0].place
	})
	r.walk(back, last, func(p int32) []int32 { return r.places[p].in }, func(t *rtrans) int32 { return t.in[0] })
	for i := range r.trans {
		t := &r.trans[i]
		if !t.dead && (!forth.Has(int(t.in[0])) || len(t.out) == 1 && !back.Has(int(t.out[0].place))) {
			return false
		}
	}
	return back.Has(int(start))
}

// spillsAround reports whether a transition on a circle of what is left spills, so that some end may get any number of
// tokens.
func (r *reducer) spillsAround() bool {
	if !slices.ContainsFunc(r.trans, func(t rtrans) bool { return !t.dead && len(t.spills) > 0 }) {
		return false
	}
	component := graph.Components(len(r.places), func(p int) []int {
		var next []int
		for _, t := range r.places[p].out {
			for _, a := range r.trans[t].out {
				next = append(next, int(a.place))
			}
		}
		return next
	})
	return slices.ContainsFunc(r.trans, func(t rtrans) bool {
		return !t.dead && len(t.spills) > 0 && (len(t.in) != 1 || len(t.out) == 1 && component[t.in[0]] == component[t.out[0].place])
	})
}

// walk collects the places that can be reached from some, by the transitions next to a place and the place behind each.
func (r *reducer) walk(seen Bits, todo []int32, next func(int32) []int32, behind func(*rtrans) int32) {
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p < 0 || seen.Has(int(p)) {
			continue
		}
		seen.Add(int(p))
		for _, t := range next(p) {
			todo = append(todo, behind(&r.trans[t]))
		}
	}
}
