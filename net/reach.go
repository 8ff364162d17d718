package net

// A game is what verification plays: places that hold counted tokens, and moves that fire in one step. A [Net] and a
// [Petri] are both lowered to it, and so is what is left of either after reduction. It knows no joins and splits any
// more: an xor-split is several moves with the same input, an or-split one move for every set of outputs, an xor-join
// one move for every input that holds only while the earlier inputs are empty (the engine takes the first marked one).
type game struct {
	places int
	start  []uint8
	moves  []gameMove
	end    int32   // the place whose first token ends the run; -1: a run is complete when every place but the open ones is empty
	open   Bits    // ends of which each may hold any tokens when a run is complete, but not without bound; nil for none
	safe   bool    // a second token in a place is a violation, other than in an open one
	most   int     // more tokens than this in a place stop the search there; at most maxCount
	ask    referee // nil if no move needs it

	firstOf  []int32 // by place, offset into byFirst
	byFirst  []int32 // moves by the first place that they take from
	anytime  []int32 // or-joins, and moves that take nothing
	urgentAt bool    // some move is urgent
	cleared  []int32 // scratch
}

// referee answers what the marking alone does not say.
type referee interface {
	// orEnabled decides an or-join move.
	orEnabled(m *gameMove, state []uint8) bool
	// memberEnabled reports whether a task of a region is enabled, with the owner of the region busy.
	memberEnabled(s *gameSpare, state []uint8) bool
	// awaits reports whether a token in the place can matter to the or-join of the move.
	awaits(m *gameMove, place int32) bool
	// spent says what the answers have cost so far, in states that could have been looked at instead.
	spent() int
	// guesses counts the answers that are a "no" for lack of a decision.
	guesses() int
}

// guesses counts the answers so far that were not decided.
func (g *game) guesses() int {
	if g.ask == nil {
		return 0
	}
	return g.ask.guesses()
}

// spent says what answers have cost so far, in states.
func (g *game) spent() int {
	if g.ask == nil {
		return 0
	}
	return g.ask.spent()
}

// gameMove is one atomic change: if the places of in hold enough and those of empty hold nothing, it takes, spares,
// resets and puts, in this order.
type gameMove struct {
	in, out []gameArc
	resets  []int32
	empty   []int32
	spares  []gameSpare
	or      int32 // task whose or-join decides: takes one token from each marked place of in; -1 for other moves
	task    int32 // the task or transition that moves
	label   int32 // what the move stands for, by the maker of the game
	urgent  bool  // a routing task: the engine runs it before anything else
	alone   bool  // urgent, not the last, and nobody else can use its tokens: no other task need be tried beside it
}

type gameArc struct {
	place int32
	n     uint8
}

// gameSpare is what a region does to an enabled member task: the tokens in its private inputs go.
type gameSpare struct {
	task   TaskID
	owner  TaskID
	inputs []ConditionID // of the member
	clears []int32       // those that feed nobody else
}

// Counts are bytes: unbounded stands for "as many as you like".
const (
	unbounded = 255
	maxCount  = 254
)

// index sorts the moves by the first place that they take from, so that a state need only look at moves whose first
// input is marked.
func (g *game) index() {
	g.anytime, g.urgentAt = nil, false
	g.firstOf = make([]int32, g.places+2)
	for i := range g.moves {
		if m := &g.moves[i]; m.or < 0 && len(m.in) > 0 {
			g.firstOf[m.in[0].place+2]++
		} else {
			g.anytime = append(g.anytime, int32(i))
		}
		g.urgentAt = g.urgentAt || g.moves[i].urgent
	}
	for p := 2; p < len(g.firstOf); p++ {
		g.firstOf[p] += g.firstOf[p-1]
	}
	g.byFirst = make([]int32, len(g.moves)-len(g.anytime))
	for i := range g.moves {
		if m := &g.moves[i]; m.or < 0 && len(m.in) > 0 {
			at := &g.firstOf[m.in[0].place+1]
			g.byFirst[*at] = int32(i)
			*at++
		}
	}
}

// candidates are the moves whose first input is the place.
func (g *game) candidates(place int) []int32 { return g.byFirst[g.firstOf[place]:g.firstOf[place+1]] }

// enabled reports whether the move can be made.
func (g *game) enabled(m *gameMove, state []uint8) bool {
	if m.or >= 0 {
		if !anyMarked(m.in, state) {
			return false
		}
	} else {
		for _, a := range m.in {
			if state[a.place] < a.n {
				return false
			}
		}
	}
	for _, p := range m.empty {
		if state[p] != 0 {
			return false
		}
	}
	return m.or < 0 || g.ask.orEnabled(m, state)
}

func anyMarked(arcs []gameArc, state []uint8) bool {
	for _, a := range arcs {
		if state[a.place] != 0 {
			return true
		}
	}
	return false
}

// outcome says what happened to the counts when a move was made.
type outcome struct {
	second  bool  // some place got a second token
	crowded int32 // one that is not open; -1 if there is none
	over    int32 // a place that would hold more than can be counted; -1 if none
}

// narrow reports whether no state has more than one token in a place, up to what is a violation.
func (g *game) narrow() bool { return g.safe && g.open == nil }

// isOpen reports whether the place is an open one.
func (g *game) isOpen(p int32) bool { return g.open != nil && g.open.Has(int(p)) }

// play makes the move on the state, in place.
func (g *game) play(m *gameMove, state []uint8) outcome {
	for _, a := range m.in {
		if c := state[a.place]; c != unbounded && (m.or < 0 || c > 0) {
			state[a.place] = c - a.n
		}
	}
	g.cleared = g.cleared[:0]
	for i := range m.spares {
		if s := &m.spares[i]; g.ask.memberEnabled(s, state) { // all members are asked before any loses a token
			g.cleared = append(g.cleared, s.clears...)
		}
	}
	for _, p := range g.cleared {
		state[p] = 0
	}
	for _, p := range m.resets {
		state[p] = 0
	}
	res := outcome{crowded: -1, over: -1}
	for _, a := range m.out {
		c := state[a.place]
		if c == unbounded {
			continue
		}
		if int(c)+int(a.n) > g.most {
			res.over = a.place
			continue
		}
		state[a.place] = c + a.n
		if c+a.n > 1 {
			if res.second = true; !g.isOpen(a.place) {
				res.crowded = a.place
			}
		}
	}
	return res
}

// complete reports whether the run is over, and whether it is so properly: nothing is left but the one token at the
// end.
func (g *game) complete(state []uint8) (over, proper bool) {
	if g.end < 0 {
		zero := g.isEmpty(state)
		return zero, zero
	}
	c := state[g.end]
	if c == 0 {
		return false, false
	}
	state[g.end] = 0
	proper = c == 1 && isZero(state)
	state[g.end] = c
	return true, proper
}

// isEmpty reports whether no place but the open ones holds a token.
func (g *game) isEmpty(state []uint8) bool {
	if g.open == nil {
		return isZero(state)
	}
	for p, c := range state {
		if c != 0 && !g.open.Has(p) {
			return false
		}
	}
	return true
}

// isZero reports whether no place holds a token.
func isZero(state []uint8) bool {
	for _, c := range state {
		if c != 0 {
			return false
		}
	}
	return true
}
