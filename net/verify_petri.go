package net

import "slices"

// VerifyPetri decides whether a plain net is sound.
//
// A net with a single sink is judged like a workflow net: a run is over with the first token in the sink, and then
// nothing else may be marked. In any other net a run is complete when every place but the sinks is empty. What the
// sinks hold does not matter then, as long as there is a bound. The warning [SeveralEnds] lists them.
//
// A place without any arc is no sink. While it is empty it changes nothing, and a token in it is left over in every
// run; the warning [Isolated] says so. A transition without any arc changes nothing either.
//
// A net of ordinary arcs whose places begin with at most one token must also stay so: a second token in a place that is
// no sink is the finding [Unsafe]. That is asked of nets with several sinks, as it is in the literature on them, and of
// free-choice workflow nets, where soundness implies it. Other nets may hold any number of tokens in a place, as long
// as there is a bound.
func VerifyPetri(p *Petri, opts VerifyOptions) Report {
	l := newPetriLowering(p)
	rep := report(l, p.Name, judge(l, nil, opts.limits(defaultMore)))
	rep.Warnings = l.warnings(opts.Silence)
	return rep
}

// petriLowering is a plain net on its way to verification.
type petriLowering struct {
	p        *Petri
	end      int32 // the only sink; -1 if there are several, or none
	sinks    Bits  // several; none if there is only one
	open     Bits  // those of several sinks that may get any number of tokens
	ordinary bool  // weights and initial counts are 0 or 1
	sourced  bool  // a transition takes nothing: the rules of reduction would have it fire only once before the end
	strict   bool  // a second token is a violation
	arcCount int
	tooLarge bool // a weight or count that a search cannot hold
}

func newPetriLowering(p *Petri) *petriLowering {
	l := &petriLowering{p: p, end: -1, sinks: NewBits(len(p.Places)), ordinary: true}
	if sinks := p.Sinks(); len(sinks) == 1 {
		l.end = int32(sinks[0])
	} else {
		for _, s := range sinks {
			l.sinks.Add(s)
		}
		l.open = l.openSinks()
	}
	for i := range p.Places {
		l.count(p.Places[i].Initial)
	}
	for i := range p.Transitions {
		l.sourced = l.sourced || len(p.Transitions[i].In) == 0 && !l.isolated(i)
		l.arcCount += len(p.Transitions[i].In) + len(p.Transitions[i].Out)
		for _, a := range p.Transitions[i].In {
			l.count(a.Weight)
		}
		for _, a := range p.Transitions[i].Out {
			l.count(a.Weight)
		}
	}
	l.strict = l.ordinary && (l.end < 0 || l.freeChoice())
	return l
}

func (l *petriLowering) count(n int) {
	l.ordinary = l.ordinary && n <= 1
	l.tooLarge = l.tooLarge || n > maxCount/2 || n < 0
}

// freeChoice reports whether the net is a free-choice workflow net: one source, with the only token, and transitions
// that share an input share them all. If such a net is sound, it is safe (van der Aalst 1997; it is then covered by
// state machines that hold one token each).
func (l *petriLowering) freeChoice() bool {
	marked := 0
	for i := range l.p.Places {
		marked += l.p.Places[i].Initial
	}
	sources := l.p.Sources()
	if marked != 1 || len(sources) != 1 || l.p.Places[sources[0]].Initial != 1 {
		return false
	}
	first := make([]int32, len(l.p.Places)) // by place, 1 + a transition that takes from it
	for i := range l.p.Transitions {
		t := &l.p.Transitions[i]
		if len(t.Resets) > 0 || len(t.In) == 0 {
			return false
		}
		for _, a := range t.In {
			if first[a.Place] == 0 {
				first[a.Place] = int32(i) + 1
			} else if !sameInputs(t, &l.p.Transitions[first[a.Place]-1]) {
				return false
			}
		}
	}
	return true
}

func sameInputs(a, b *PetriTransition) bool {
	if len(a.In) != len(b.In) {
		return false
	}
	for _, x := range a.In {
		if !slices.ContainsFunc(b.In, func(y PetriArc) bool { return y.Place == x.Place }) {
			return false
		}
	}
	return true
}

// kept reports whether a run is not complete while the place holds a token, and whether several are too many there:
// what several sinks hold does not matter.
func (l *petriLowering) kept(place int) bool { return !l.sinks.Has(place) }

// isolated reports whether a transition has no arcs.
func (l *petriLowering) isolated(t int) bool {
	at := &l.p.Transitions[t]
	return len(at.In)+len(at.Out)+len(at.Resets) == 0
}

// counted reports whether the tokens of a place are counted: where a sink cannot get any number of them they are not.
func (l *petriLowering) counted(place int) bool { return l.kept(place) || l.open.Has(place) }

func (l *petriLowering) reducer(traced bool) (*reducer, int32) {
	if !l.ordinary || l.sourced || l.emptiesOpen() {
		return nil, -1
	}
	r := newReducer(len(l.p.Places))
	if traced {
		r.trace, r.most = newTrace(), maxTracing
	}
	for i := range l.p.Places {
		r.places[i].marked = l.p.Places[i].Initial > 0 && l.kept(i)
		r.places[i].dead = !l.kept(i)
	}
	if l.end >= 0 {
		r.places[l.end].fixed = true
	}
	ins, outs := 0, 0
	for i := range l.p.Transitions {
		ins, outs = ins+len(l.p.Transitions[i].In), outs+len(l.p.Transitions[i].Out)
	}
	in, out := make([]int32, 0, ins), make([]rarc, 0, outs)
	r.trans = make([]rtrans, len(l.p.Transitions))
	for i := range l.p.Transitions {
		t, tr := &l.p.Transitions[i], &r.trans[i]
		fromIn, fromOut := len(in), len(out)
		for _, a := range t.In {
			in = append(in, int32(a.Place))
		}
		for _, a := range t.Out {
			switch {
			case l.kept(a.Place):
				out = append(out, rarc{place: int32(a.Place)})
			case l.open.Has(a.Place):
				tr.spills = withSpill(tr.spills, int32(a.Place))
			}
		}
		for _, p := range t.Resets {
			if l.kept(p) {
				tr.resets = append(tr.resets, int32(p))
			}
		}
		tr.in, tr.out = in[fromIn:len(in):len(in)], out[fromOut:len(out):len(out)]
		tr.orTask, tr.own, tr.label, tr.seq = -1, -1, int32(i), r.trace.leaf(int32(i), 0)
		tr.dead = l.isolated(i)
	}
	r.finish()
	return r, l.end
}

func (l *petriLowering) game() (*game, Limit) {
	if l.tooLarge {
		return nil, LimitGrowth
	}
	g := &game{places: len(l.p.Places), end: l.end, safe: l.strict, most: maxCount, start: make([]uint8, len(l.p.Places))}
	if !l.open.Empty() {
		g.open = l.open
	}
	for i := range l.p.Places {
		if l.counted(i) {
			g.start[i] = uint8(l.p.Places[i].Initial)
		}
	}
	g.moves = make([]gameMove, 0, len(l.p.Transitions))
	arcs := make([]gameArc, 0, l.arcCount)
	for i := range l.p.Transitions {
		t := &l.p.Transitions[i]
		if l.isolated(i) {
			continue
		}
		m := gameMove{or: -1, task: int32(i), label: int32(i)}
		m.in, arcs = l.arcs(arcs, t.In)
		m.out, arcs = l.arcs(arcs, t.Out)
		for _, p := range t.Resets {
			if l.counted(p) {
				m.resets = append(m.resets, int32(p))
			}
		}
		g.moves = append(g.moves, m)
	}
	g.index()
	return g, NoLimit
}

// arcs puts a list of arcs behind others, and returns both.
func (l *petriLowering) arcs(all []gameArc, arcs []PetriArc) (list, rest []gameArc) {
	from := len(all)
	for _, a := range arcs {
		if l.counted(a.Place) {
			all = append(all, gameArc{place: int32(a.Place), n: uint8(a.Weight)})
		}
	}
	return all[from:len(all):len(all)], all
}

func (l *petriLowering) taskOf(t tracedMove) int32 { return t.label }

func (l *petriLowering) matches(t tracedMove, m *gameMove) bool { return t.label == m.label }
