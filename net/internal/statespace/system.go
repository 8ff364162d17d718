package statespace

import "github.com/tasq-dev/tasq/net"

// System is what is verified: places that hold counted tokens, an initial marking, and moves that change the marking
// in one step. A [net.Net] and a [net.Petri] are both lowered to it, and so is what is left of either after reduction.
// It has no joins and splits: an xor-split is several moves with the same input, an or-split one move for every set of
// outputs, an xor-join one move for every input, with inhibitor arcs from the earlier inputs (the engine takes the
// first marked one).
//
// [System.Prepare] must be called when all moves are set.
type System struct {
	Places    int      // how many there are; a place is a number below it
	Start     []uint8  // the initial marking, by place
	Moves     []Move   // in the order in which they are tried
	End       int32    // the place whose first token ends the run; -1: a run is complete when every place but the open ones is empty
	Open      net.Bits // ends that may hold any number of tokens when a run is complete, but not without bound; nil for none
	Safe      bool     // a second token in a place is a violation, other than in an open one
	MaxTokens int      // more tokens than this in a place stop the search there; at most [MaxCount]
	Decider   Decider  // decides or-joins and members of regions; nil if there are none
	// NoLivelock says that a state from which no run completes leads to a deadlock, unless tokens can pile up.
	NoLivelock bool

	firstOf  []int32 // by place: offset into byFirst
	byFirst  []int32 // moves by the first place that they take from
	anytime  []int32 // or-joins, and moves that take nothing
	urgentAt bool    // some move is urgent
	cleared  []int32 // scratch
}

// Decider decides what the marking and the arcs alone do not: or-joins, and which members of a region are enabled.
type Decider interface {
	// OrJoinEnabled reports whether the or-join of a move may start.
	OrJoinEnabled(m *Move, state []uint8) bool
	// MemberEnabled reports whether a task of a region is enabled, with the owner of the region busy.
	MemberEnabled(s *MemberReset, state []uint8) bool
	// DependsOn reports whether a token in the place can matter to the or-join of the move.
	DependsOn(m *Move, place int32) bool
	// Spent is what the decisions have cost so far, in states that could have been expanded instead.
	Spent() int
	// Undecided counts the decisions that ran out of their budget, which count as a no.
	Undecided() int
}

// Undecided counts the questions so far that were not decided; see [Decider].
func (sys *System) Undecided() int {
	if sys.Decider == nil {
		return 0
	}
	return sys.Decider.Undecided()
}

// Spent is what decisions have cost so far, in states; see [Decider].
func (sys *System) Spent() int {
	if sys.Decider == nil {
		return 0
	}
	return sys.Decider.Spent()
}

// Move is one atomic change. It is enabled if the places of In hold enough tokens and those of Inhibitors hold none. It
// then takes the tokens of In, empties the places of MemberResets and of Resets, and puts the tokens of Out, in this
// order.
type Move struct {
	In, Out      []Arc
	Resets       []int32 // places that it empties
	Inhibitors   []int32 // places that must be empty
	MemberResets []MemberReset
	OrJoin       int32 // the task whose or-join decides: it takes one token from each marked place of In; -1 for other moves
	Task         int32 // the task or transition that moves
	Label        int32 // what the move stands for; set and read by the maker of the system
	Urgent       bool  // a move of a routing task: the engine runs it before anything else
	Persistent   bool  // urgent, not the last, and no other move can use its tokens: where it is enabled, the moves of its task suffice
}

// Arc is a number of tokens in a place that a move takes or puts.
type Arc struct {
	Place  int32
	Weight uint8
}

// MemberReset is what a cancellation region does to an idle member task: if the member is enabled while the owner of
// the region is busy, it loses the tokens in its private inputs.
type MemberReset struct {
	Task   net.TaskID
	Owner  net.TaskID
	Inputs []net.ConditionID // of the member
	Clears []int32           // those that feed no other task
}

// A count of tokens is a byte.
const (
	Omega    = 255 // any number of tokens: the ω of a coverability graph
	MaxCount = 254 // the largest number that is counted
)

// Prepare sorts the moves by the first place that they take from, so that in a state only the moves are tried whose
// first input is marked. It must be called again when the moves change.
func (sys *System) Prepare() {
	sys.anytime, sys.urgentAt = nil, false
	sys.firstOf = make([]int32, sys.Places+2)
	for i := range sys.Moves {
		if m := &sys.Moves[i]; m.OrJoin < 0 && len(m.In) > 0 {
			sys.firstOf[m.In[0].Place+2]++
		} else {
			sys.anytime = append(sys.anytime, int32(i))
		}
		sys.urgentAt = sys.urgentAt || sys.Moves[i].Urgent
	}
	for p := 2; p < len(sys.firstOf); p++ {
		sys.firstOf[p] += sys.firstOf[p-1]
	}
	sys.byFirst = make([]int32, len(sys.Moves)-len(sys.anytime))
	for i := range sys.Moves {
		if m := &sys.Moves[i]; m.OrJoin < 0 && len(m.In) > 0 {
			at := &sys.firstOf[m.In[0].Place+1]
			sys.byFirst[*at] = int32(i)
			*at++
		}
	}
}

// candidates are the moves whose first input is the place.
func (sys *System) candidates(place int) []int32 {
	return sys.byFirst[sys.firstOf[place]:sys.firstOf[place+1]]
}

// Enabled reports whether the move can be made.
func (sys *System) Enabled(m *Move, state []uint8) bool {
	if m.OrJoin >= 0 {
		if !AnyMarked(m.In, state) {
			return false
		}
	} else {
		for _, a := range m.In {
			if state[a.Place] < a.Weight {
				return false
			}
		}
	}
	for _, p := range m.Inhibitors {
		if state[p] != 0 {
			return false
		}
	}
	return m.OrJoin < 0 || sys.Decider.OrJoinEnabled(m, state)
}

// AnyMarked reports whether the place of some arc holds a token.
func AnyMarked(arcs []Arc, state []uint8) bool {
	for _, a := range arcs {
		if state[a.Place] != 0 {
			return true
		}
	}
	return false
}

// Outcome says what happened to the counts when a move was made.
type Outcome struct {
	second   bool  // some place got a second token
	unsafe   int32 // a place with a second token that is not open; -1 if there is none
	Overflow int32 // a place that would hold more than can be counted; -1 if none
}

// narrow reports whether no state has more than one token in a place, up to what is a violation.
func (sys *System) narrow() bool { return sys.Safe && sys.Open == nil }

// isOpen reports whether the place is an open one.
func (sys *System) isOpen(p int32) bool { return sys.Open != nil && sys.Open.Has(int(p)) }

// Fire makes the move on the state, in place.
func (sys *System) Fire(m *Move, state []uint8) Outcome {
	for _, a := range m.In {
		if c := state[a.Place]; c != Omega && (m.OrJoin < 0 || c > 0) {
			state[a.Place] = c - a.Weight
		}
	}
	sys.cleared = sys.cleared[:0]
	for i := range m.MemberResets {
		if s := &m.MemberResets[i]; sys.Decider.MemberEnabled(s, state) { // all members are decided before any loses a token
			sys.cleared = append(sys.cleared, s.Clears...)
		}
	}
	for _, p := range sys.cleared {
		state[p] = 0
	}
	for _, p := range m.Resets {
		state[p] = 0
	}
	res := Outcome{unsafe: -1, Overflow: -1}
	for _, a := range m.Out {
		c := state[a.Place]
		if c == Omega {
			continue
		}
		if int(c)+int(a.Weight) > sys.MaxTokens {
			res.Overflow = a.Place
			continue
		}
		state[a.Place] = c + a.Weight
		if c+a.Weight > 1 {
			if res.second = true; !sys.isOpen(a.Place) {
				res.unsafe = a.Place
			}
		}
	}
	return res
}

// Complete reports whether the run is over, and whether it is so properly: nothing is left but the one token at the
// end.
func (sys *System) Complete(state []uint8) (over, proper bool) {
	if sys.End < 0 {
		zero := sys.isEmpty(state)
		return zero, zero
	}
	c := state[sys.End]
	if c == 0 {
		return false, false
	}
	state[sys.End] = 0
	proper = c == 1 && isZero(state)
	state[sys.End] = c
	return true, proper
}

// isEmpty reports whether no place but the open ones holds a token.
func (sys *System) isEmpty(state []uint8) bool {
	if sys.Open == nil {
		return isZero(state)
	}
	for p, c := range state {
		if c != 0 && !sys.Open.Has(p) {
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
