package statespace

import "github.com/tasq-dev/tasq/net"

// Search explores the states of a system breadth first, and records the first state with each kind of violation. Once
// it has seen all states, it also knows the moves that never fire, and the states from which no run can complete.
//
// Unbounded places: a state covers an ancestor if it has all of its tokens and more. If the moves between them have the
// same effect with the additional tokens, they can be repeated without end, and the places with more tokens get the
// count [Omega], as in the coverability graph of Karp and Miller. A reset of such a place, an inhibitor arc from it, or
// an or-join that depends on it may have another effect; if one of those is on the way, the search concludes nothing,
// and continues until it is complete or its budget is exhausted.
type Search struct {
	sys    *System
	States *Space
	limits Budget
	// FirstOnly stops at the first violation. It is for systems that only have to be proved free of any.
	FirstOnly bool
	// BeyondUnsafe continues behind second tokens in places of a system that must be safe.
	BeyondUnsafe bool
	masks        moveMasks
	Observer     Observer // is called for every state and move; nil for none
	// stubborn leaves out moves that are not needed to find deadlocks and improper completion; nil to execute all. The
	// search then never counts as complete.
	stubborn *stubborn
	// NoOmega never sets a count to [Omega], so that a run leads to every state.
	NoOmega bool
	// Pause makes [Search.Run] return after so many more states than at the first violation; 0 for no such pause.
	// [Search.Resume] continues.
	Pause int
	// UntilSecond makes [Search.Resume] return when a second token is found.
	UntilSecond bool

	now, next    []uint8  // the state that is expanded, and a successor, unpacked
	at           []int32  // the places that are marked now
	ends         []int32  // by state: where its edges end
	edges        []int32  // the states that moves lead to
	Final        []int32  // states in which the run is over
	Fired        []bool   // by move
	Marked       []bool   // by place
	Tested       net.Bits // places with an inhibitor arc, and inputs of urgent moves
	Coverings    []Covering
	Deadlock     int32         // first state in which no move is enabled and the run is not over; -1 if none
	Improper     int32         // first improper completion; -1 if none
	SecondTokens []SecondToken // second tokens in places of a system that must be safe, the first one for each place
	isUnsafe     net.Bits      // those places
	Hopeless     int32         // first state from which no run completes; -1 if none. Only known after a complete search
	Limit        Limit         // the exhausted budget of the last call of Run or Resume
	whole        bool          // every state was seen, and every question was decided
	overflow     bool          // a count of tokens overflowed
	expanded     int32         // states that were expanded
	Stop         int           // states to explore in all, once something was found; 0 before that
	pause        int           // likewise, by Pause
	grows        []bool        // by move, see [System.growing]; nil until it is needed
	bytes        int           // of memory that it may use
	fitting      int           // states that these suffice for
	room         int           // the number of states that memory suffices for while one state is expanded
	outOfMemory  bool          // it does not continue behind second tokens, for lack of memory
	work         int           // words copied since the last check of the clock
}

// SecondToken is a second token in a place: in a state, with the move -1, or after a move from that state if the search
// does not continue behind it.
type SecondToken struct {
	State, Move, Place int32
}

// Observer is called while the state space is explored.
type Observer interface {
	// State is called for every new state.
	State(state []byte)
	// Move is called for every move, with the state before it.
	Move(m *Move, before []byte)
}

// Covering is a state that covers an ancestor: the moves from the one to the other can be repeated without end, and add
// tokens to places each time.
type Covering struct {
	State, Ancestor int32
	Places          []int32
}

// NewSearch returns a search that has not begun. See [Search.Run].
func NewSearch(sys *System, lim Budget) *Search {
	x := &Search{sys: sys, States: newSpace(sys.Places, sys.narrow()), limits: lim, Deadlock: -1, Improper: -1, Hopeless: -1}
	x.takeEdges()
	x.now, x.next = make([]uint8, sys.Places), make([]uint8, sys.Places)
	x.Fired = make([]bool, len(sys.Moves))
	x.Marked = make([]bool, sys.Places)
	x.Tested, x.isUnsafe = net.NewBits(sys.Places), net.NewBits(sys.Places)
	for i := range sys.Moves {
		for _, p := range sys.Moves[i].Inhibitors {
			x.Tested.Add(int(p))
		}
		if sys.Moves[i].Urgent {
			for _, a := range sys.Moves[i].In {
				x.Tested.Add(int(a.Place))
			}
		}
	}
	return x
}

// Run searches from the initial marking, within the same bounds as [Search.Resume].
func (x *Search) Run(states, bytes int) {
	first := x.States.room()
	x.pack(first, x.sys.Start)
	x.States.add(first, -1, -1)
	x.observe(x.sys.Start)
	x.Resume(states, bytes)
}

// Resume continues the search until that many states were explored in all, or that many bytes are used.
func (x *Search) Resume(states, bytes int) {
	x.bound(states, bytes)
	for x.Limit = NoLimit; int(x.expanded) < x.States.Len(); x.expanded++ {
		looked := x.States.Len() + x.sys.Spent()
		if x.Stop == 0 && x.Violated() {
			if x.FirstOnly {
				return
			}
			x.Stop, x.pause = looked+x.limits.MoreStates, looked+x.Pause
		}
		switch {
		case looked > states || x.Stop > 0 && looked > x.Stop || x.Pause > 0 && x.Stop > 0 && looked > x.pause,
			x.UntilSecond && len(x.SecondTokens) > 0:
			x.Limit = LimitStates
		case x.States.Len() > x.fitting:
			x.Limit = LimitMemory
		case (x.expanded&15 == 15 || len(x.sys.Moves) > 1<<14) && x.limits.Late != nil && x.limits.Late():
			x.Limit = LimitTime
		default:
			x.expand(x.expanded)
		}
		if x.stopped() {
			return
		}
		x.ends = push(x.ends, int32(len(x.edges)))
	}
	switch {
	case x.overflow:
		x.Limit = LimitGrowth
	case x.outOfMemory:
		x.Limit = LimitMemory
	case x.sys.Undecided() > 0:
		x.Limit = LimitOrJoin
	case x.stubborn == nil:
		x.whole = true
		x.findHopeless()
	}
}

// bound sets the numbers of states and bytes that the search may use.
func (x *Search) bound(states, bytes int) {
	x.bytes, x.fitting = bytes, bytes/(8*x.States.width+bytesBeside)
	x.room = min(states, x.fitting) + min(x.fitting, maxSuccessors)
	x.States.most = x.room + 2 // the first state, and the scratch state behind the last
}

// bytesBeside is the memory for a state besides its counts: the path to it, its entry in the table, and its edges.
const bytesBeside = 48

// One state of a large net may have more successors than memory or time allow.
const (
	maxSuccessors = 1 << 14
	maxWork       = 1 << 20
)

// stopped reports whether the memory or the time is exhausted, also while one state is expanded.
func (x *Search) stopped() bool {
	if x.work += x.States.width; x.work > maxWork {
		x.work = 0
		if x.limits.Late != nil && x.limits.Late() {
			x.Limit = LimitTime
		}
	}
	switch {
	case x.States.Len() > x.room && x.room < x.limits.States:
		x.Limit = LimitMemory
	case x.States.Len() > x.room || x.stubborn != nil && x.stubborn.work > maxStubbornWork:
		x.Limit = LimitStates
	}
	return x.Limit == LimitStates || x.Limit == LimitTime || x.Limit == LimitMemory
}
