package reduce

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/graph"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// Firing identifies what a move of the system of a reduced net represents: a transition and, for an or-split, the
// outputs that it marks, as bits.
type Firing struct {
	Transition int32
	outputs    uint32
}

// MaxOrOutputs limits the outputs of an or-split in a search, which has a move for each set of them.
const MaxOrOutputs = 10

// System returns a system for the remaining net. The labels of its moves are indexes of the firings. It returns nil if
// an or-split has too many outputs, or if an or-join remains and guess is false, see [orJoinDecider]. The end is the
// place that must keep the last token, or -1.
func (r *Net) System(end int32, guess bool) (*statespace.System, []Firing) {
	sys := &statespace.System{End: -1, Safe: true, MaxTokens: statespace.MaxCount}
	number := make([]int32, len(r.Places))
	for p := range r.Places {
		pl := &r.Places[p]
		if pl.Removed {
			continue
		}
		number[p] = int32(sys.Places)
		if int32(p) == end {
			sys.End = int32(sys.Places)
		}
		sys.Places++
		sys.Start = append(sys.Start, 0)
		if pl.Marked {
			sys.Start[sys.Places-1] = 1
		}
	}
	r.addOpenEnds(sys, number)
	var firings []Firing
	for i := range r.Transitions {
		t := &r.Transitions[i]
		switch {
		case t.Removed:
		case t.OrTask >= 0 && !guess || t.OrSplit && len(t.Out) > MaxOrOutputs:
			return nil, nil
		default:
			firings = r.addMoves(sys, int32(i), number, firings)
		}
	}
	sys.Prepare()
	sys.Decider = orJoinDecider{sys}
	return sys, firings
}

// addOpenEnds adds a place to the system for each end that a transition puts into.
func (r *Net) addOpenEnds(sys *statespace.System, number []int32) {
	var ends []int32
	for i := range r.Transitions {
		if t := &r.Transitions[i]; !t.Removed {
			for _, p := range t.Ends {
				ends = insertSorted(ends, p)
			}
		}
	}
	if len(ends) == 0 {
		return
	}
	sys.Open = net.NewBits(sys.Places + len(ends))
	for _, p := range ends {
		number[p] = int32(sys.Places)
		sys.Open.Add(sys.Places)
		sys.Places++
		sys.Start = append(sys.Start, 0)
	}
}

// addMoves adds the moves of a transition to a system: one, or for an or-split one for each set of its outputs.
func (r *Net) addMoves(sys *statespace.System, i int32, number []int32, firings []Firing) []Firing {
	t := &r.Transitions[i]
	m := statespace.Move{In: make([]statespace.Arc, len(t.In)), OrJoin: t.OrTask, Task: i}
	for k, p := range t.In {
		m.In[k] = statespace.Arc{Place: number[p], Weight: 1}
	}
	for _, p := range t.Resets {
		m.Resets = append(m.Resets, number[p])
	}
	for set := uint32(1); set == 1 || t.OrSplit && set < 1<<len(t.Out); set++ {
		m.Label = int32(len(firings))
		m.Out = make([]statespace.Arc, 0, len(t.Out))
		for k, a := range t.Out {
			if !t.OrSplit || set>>k&1 != 0 {
				m.Out = append(m.Out, statespace.Arc{Place: number[a.Place], Weight: 1})
			}
		}
		for _, p := range t.Ends {
			m.Out = append(m.Out, statespace.Arc{Place: number[p], Weight: 1})
		}
		sys.Moves = append(sys.Moves, m)
		firings = append(firings, Firing{Transition: i, outputs: set})
	}
	return firings
}

// orJoinDecider is a heuristic for or-joins that reduction could not remove: they fire when no other move is enabled.
// It is mostly right, but a result of the search that depends on it must be verified in the net itself.
type orJoinDecider struct{ g *statespace.System }

func (p orJoinDecider) OrJoinEnabled(_ *statespace.Move, state []uint8) bool {
	return !slices.ContainsFunc(p.g.Moves, func(m statespace.Move) bool { return m.OrJoin < 0 && p.g.Enabled(&m, state) })
}

func (orJoinDecider) MemberEnabled(*statespace.MemberReset, []uint8) bool { return false }
func (orJoinDecider) DependsOn(*statespace.Move, int32) bool              { return true }
func (orJoinDecider) Spent() int                                          { return 0 }
func (orJoinDecider) Undecided() int                                      { return 0 }

// SoundStateMachine reports whether the remaining net is a state machine with one token, in which every transition is
// on a path from the token to the end. Such a net is sound, and a search would only visit the same graph with more
// effort.
func (r *Net) SoundStateMachine(end int32) bool {
	start := int32(-1)
	if r.putsIntoEndsOnCycle() {
		return false
	}
	for p := range r.Places {
		if pl := &r.Places[p]; !pl.Removed && pl.Marked {
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
	for i := range r.Transitions {
		t := &r.Transitions[i]
		switch {
		case t.Removed:
		case len(t.In) != 1 || len(t.Out) > 1 || t.OrSplit || len(t.Out) == 0 && end >= 0:
			return false
		case len(t.Out) == 0:
			last = append(last, t.In[0])
		}
	}
	forth, back := net.NewBits(len(r.Places)), net.NewBits(len(r.Places))
	r.walk(forth, []int32{start}, func(p int32) []int32 { return r.Places[p].out }, func(t *Transition) int32 {
		if len(t.Out) == 0 {
			return -1
		}
		return t.Out[0].Place
	})
	r.walk(back, last, func(p int32) []int32 { return r.Places[p].in }, func(t *Transition) int32 { return t.In[0] })
	for i := range r.Transitions {
		t := &r.Transitions[i]
		if !t.Removed && (!forth.Has(int(t.In[0])) || len(t.Out) == 1 && !back.Has(int(t.Out[0].Place))) {
			return false
		}
	}
	return back.Has(int(start))
}

// putsIntoEndsOnCycle reports whether a transition on a cycle of the remaining net puts into an end, which may then get
// any number of tokens.
func (r *Net) putsIntoEndsOnCycle() bool {
	if !slices.ContainsFunc(r.Transitions, func(t Transition) bool { return !t.Removed && len(t.Ends) > 0 }) {
		return false
	}
	component := graph.Components(len(r.Places), func(p int) []int {
		var next []int
		for _, t := range r.Places[p].out {
			for _, a := range r.Transitions[t].Out {
				next = append(next, int(a.Place))
			}
		}
		return next
	})
	return slices.ContainsFunc(r.Transitions, func(t Transition) bool {
		return !t.Removed && len(t.Ends) > 0 && (len(t.In) != 1 || len(t.Out) == 1 && component[t.In[0]] == component[t.Out[0].Place])
	})
}

// walk collects the places that can be reached from some places: next returns the transitions of a place, and behind
// the places of a transition.
func (r *Net) walk(seen net.Bits, todo []int32, next func(int32) []int32, behind func(*Transition) int32) {
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p < 0 || seen.Has(int(p)) {
			continue
		}
		seen.Add(int(p))
		for _, t := range next(p) {
			todo = append(todo, behind(&r.Transitions[t]))
		}
	}
}
