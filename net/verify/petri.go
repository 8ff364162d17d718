package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// Petri decides whether a plain net is sound.
//
// A net with a single sink is judged like a workflow net: a run ends with the first token in the sink, and then nothing
// else may be marked. In any other net a run is complete when every place except the sinks is empty. The tokens in the
// sinks do not matter then, as long as they are bounded. The warning [SeveralEnds] lists the sinks.
//
// A place without any arc is no sink. An empty one changes nothing, and a token in it is left over in every run; the
// warning [Isolated] reports it. A transition without any arc changes nothing either.
//
// A net of ordinary arcs whose places begin with at most one token must also be safe: a second token in a place that is
// no sink is the finding [Unsafe]. That is required of nets with several sinks, as in the literature, and of
// free-choice workflow nets, where soundness implies it. Places of other nets may have any bounded number of tokens.
func Petri(p *net.Petri, opts Options) Report {
	l := newPetriLowering(p)
	lim := opts.budget(defaultMoreStates(len(p.Places)+len(p.Transitions), false))
	j := &analysis{limit: LimitTokens}
	switch {
	case l.tooLarge:
	case l.many != nil:
		j = l.analyzeMany(lim)
	default:
		j = analyze(l, nil, lim)
	}
	rep := report(l, p.Name, j)
	rep.Warnings = l.warnings(opts.Silence)
	return rep
}

// petriLowering is a plain net with its lowered forms.
type petriLowering struct {
	p        *net.Petri
	end      int32    // the only sink; -1 if there are several, or none
	sinks    net.Bits // several; none if there is only one
	open     net.Bits // those of several sinks that may get any number of tokens
	ordinary bool     // weights and initial counts are 0 or 1
	sourced  bool     // a transition without inputs: the rules of reduction would let it fire only once before the end
	strict   bool     // a second token is a violation
	arcCount int
	tooLarge bool     // a weight is too large for the search
	many     net.Bits // places with too many tokens to be counted; nil if there are none
	resting  []int    // by place: the tokens that one token stands for, see [petriLowering.findMany]
}

func newPetriLowering(p *net.Petri) *petriLowering {
	l := &petriLowering{p: p, end: -1, sinks: net.NewBits(len(p.Places)), ordinary: true}
	if sinks := p.Sinks(); len(sinks) == 1 {
		l.end = int32(sinks[0])
	} else {
		for _, s := range sinks {
			l.sinks.Add(s)
		}
		l.open = l.openSinks()
	}
	for i := range p.Places {
		l.ordinary = l.ordinary && p.Places[i].Initial <= 1
		l.tooLarge = l.tooLarge || p.Places[i].Initial < 0
	}
	l.findMany()
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

// count notes the weight of an arc.
func (l *petriLowering) count(n int) {
	l.ordinary = l.ordinary && n <= 1
	l.tooLarge = l.tooLarge || n > mostWeight || n < 0
}

// freeChoice reports whether the net is a free-choice workflow net: one source, with the only token, and transitions
// that share an input share all inputs. If such a net is sound, it is safe (van der Aalst 1997: it is covered by state
// machines with one token each).
func (l *petriLowering) freeChoice() bool {
	marked := 0
	for i := range l.p.Places {
		marked += l.p.Places[i].Initial
	}
	sources := l.p.Sources()
	if marked != 1 || len(sources) != 1 || l.p.Places[sources[0]].Initial != 1 {
		return false
	}
	return l.choicesAreFree()
}

// choicesAreFree reports whether transitions that share an input share all inputs, and none has resets or lacks inputs.
func (l *petriLowering) choicesAreFree() bool {
	first := make([]int32, len(l.p.Places)) // by place: 1 + a transition that takes from it
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

func sameInputs(a, b *net.PetriTransition) bool {
	if len(a.In) != len(b.In) {
		return false
	}
	for _, x := range a.In {
		if !slices.ContainsFunc(b.In, func(y net.PetriArc) bool { return y.Place == x.Place }) {
			return false
		}
	}
	return true
}

// kept reports whether a run is not complete while the place has a token, and whether several tokens are too many
// there. Tokens in one of several sinks do not matter.
func (l *petriLowering) kept(place int) bool { return !l.sinks.Has(place) }

// isolated reports whether a transition has no arcs.
func (l *petriLowering) isolated(t int) bool {
	at := &l.p.Transitions[t]
	return len(at.In)+len(at.Out)+len(at.Resets) == 0
}

// counted reports whether the tokens of a place are counted; those of a sink that can get any number are not.
func (l *petriLowering) counted(place int) bool { return l.kept(place) || l.open.Has(place) }

func (l *petriLowering) reducible(traced bool) (*reduce.Net, int32) {
	if !l.ordinary || l.sourced || l.emptiesOpen() {
		return nil, -1
	}
	r := reduce.New(len(l.p.Places), traced)
	for i := range l.p.Places {
		r.Places[i].Marked = l.p.Places[i].Initial > 0 && l.kept(i)
		r.Places[i].Removed = !l.kept(i)
	}
	if l.end >= 0 {
		r.Places[l.end].Fixed = true
	}
	ins, outs := 0, 0
	for i := range l.p.Transitions {
		ins, outs = ins+len(l.p.Transitions[i].In), outs+len(l.p.Transitions[i].Out)
	}
	in, out := make([]int32, 0, ins), make([]reduce.Arc, 0, outs)
	r.Transitions = make([]reduce.Transition, len(l.p.Transitions))
	for i := range l.p.Transitions {
		t, tr := &l.p.Transitions[i], &r.Transitions[i]
		fromIn, fromOut := len(in), len(out)
		for _, a := range t.In {
			in = append(in, int32(a.Place))
		}
		for _, a := range t.Out {
			switch {
			case l.kept(a.Place):
				out = append(out, reduce.Arc{Place: int32(a.Place)})
			case l.open.Has(a.Place):
				tr.PutIntoEnd(int32(a.Place))
			}
		}
		for _, p := range t.Resets {
			if l.kept(p) {
				tr.Resets = append(tr.Resets, int32(p))
			}
		}
		tr.In, tr.Out = in[fromIn:len(in):len(in)], out[fromOut:len(out):len(out)]
		tr.OrTask, tr.SplitLabel, tr.Label, tr.Seq = -1, -1, int32(i), r.Leaf(int32(i))
		tr.Removed = l.isolated(i)
	}
	r.Finish()
	return r, l.end
}

func (l *petriLowering) system() (*statespace.System, Limit) {
	sys := &statespace.System{
		Places: len(l.p.Places), End: l.end, Safe: l.strict, MaxTokens: statespace.MaxCount, Start: make([]uint8, len(l.p.Places)),
		NoLivelock: l.ordinary && l.choicesAreFree() && l.leadsToSinks(),
	}
	if !l.open.Empty() {
		sys.Open = l.open
	}
	for i := range l.p.Places {
		if l.counted(i) {
			sys.Start[i] = uint8(l.p.Places[i].Initial)
		}
		if l.many.Has(i) {
			sys.Start[i] = statespace.Omega
		}
	}
	sys.Moves = make([]statespace.Move, 0, len(l.p.Transitions))
	arcs := make([]statespace.Arc, 0, l.arcCount)
	for i := range l.p.Transitions {
		t := &l.p.Transitions[i]
		if l.isolated(i) {
			continue
		}
		m := statespace.Move{OrJoin: -1, Task: int32(i), Label: int32(i)}
		m.In, arcs = l.arcs(arcs, t.In)
		m.Out, arcs = l.arcs(arcs, t.Out)
		for _, p := range t.Resets {
			if l.counted(p) {
				m.Resets = append(m.Resets, int32(p))
			}
		}
		sys.Moves = append(sys.Moves, m)
	}
	sys.Prepare()
	return sys, NoLimit
}

// arcs appends a list of arcs to another, and returns both.
func (l *petriLowering) arcs(all []statespace.Arc, arcs []net.PetriArc) (list, rest []statespace.Arc) {
	from := len(all)
	for _, a := range arcs {
		if l.counted(a.Place) {
			all = append(all, statespace.Arc{Place: int32(a.Place), Weight: uint8(a.Weight)})
		}
	}
	return all[from:len(all):len(all)], all
}

func (l *petriLowering) taskOf(t reduce.TracedMove) int32 { return t.Label }

func (l *petriLowering) matches(t reduce.TracedMove, m *statespace.Move) bool {
	return t.Label == m.Label
}
