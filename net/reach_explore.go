package net

import "encoding/binary"

// explorer walks the states of a game breadth first, notes the first state with each kind of violation, and afterwards
// says what the whole says: moves that never fire, states from which no run can complete.
//
// Unbounded nets. A state that holds all of an ancestor's tokens and more, reached by moves that would do the same with
// the extra tokens there, can be reached again and again: the places that grew get the count unbounded (Karp and Miller).
// What would do otherwise with more tokens is a reset of such a place, a test for its emptiness, an or-join that looks at
// it; with one of those on the way nothing is concluded, and the search goes on until it is done or out of budget.
type explorer struct {
	g   *game
	s   *stateSpace
	lim searchLimits
	// firstOnly stops at the first violation. It is for games that only have to be shown free of any.
	firstOnly bool
	watch     watcher // told of every state and move; nil for nobody

	ends    []int32 // by state, where its edges end
	edges   []int32
	closed  []int32 // states that are not looked behind, in rising order
	fired   []bool  // by move
	marked  []bool  // by place
	touchy  Bits    // places whose emptiness is tested
	pumps   []pump
	stuck   int32 // first state with no move that is not complete; -1 if none
	spilled int32 // first improper completion; -1 if none
	crowded int32 // first state with two tokens in a place of a safe game; -1 if none
	crowd   int32 // that place
	doomed  int32 // first state from which no run completes; -1 if none. Known only after a whole search
	limit   Limit
	whole   bool // every state was seen
}

// watcher sees the search pass by; warnings are made of what it saw.
type watcher interface {
	state(state []byte)
	move(m *gameMove, before []byte)
}

// pump says that the moves from one state to a later one can be repeated for ever, adding tokens to places.
type pump struct {
	state, from int32
	places      []int32
}

// searchLimits bounds a search. A search that found something goes on for more states only, to find what else there is.
type searchLimits struct {
	states, more int
	late         func() bool // nil if time is not limited
}

// maxArena bounds the memory of one search in bytes, whatever the number of states allowed.
const maxArena = 96 << 20

func newExplorer(g *game, lim searchLimits) *explorer {
	x := &explorer{g: g, s: newSpace(g.places), lim: lim, stuck: -1, spilled: -1, crowded: -1, crowd: -1, doomed: -1}
	x.fired = make([]bool, len(g.moves))
	x.marked = make([]bool, g.places)
	x.touchy = NewBits(g.places)
	for i := range g.moves {
		for _, p := range g.moves[i].empty {
			x.touchy.Add(int(p))
		}
		if g.moves[i].urgent {
			for _, a := range g.moves[i].in {
				x.touchy.Add(int(a.place))
			}
		}
	}
	return x
}

// violated reports whether anything was found.
func (x *explorer) violated() bool {
	return x.stuck >= 0 || x.spilled >= 0 || x.crowded >= 0 || len(x.pumps) > 0
}

// run searches from the game's start.
func (x *explorer) run() {
	first := x.s.states[:x.s.width]
	copy(first, x.g.start)
	x.s.add(first, -1, -1)
	x.see(first)
	budget, found := min(x.lim.states, maxArena/(x.s.width+16)), false
	for i := 0; i < x.s.len(); i++ {
		if !found && x.violated() {
			if x.firstOnly {
				return
			}
			found = true
			budget = min(budget, x.s.len()+x.lim.more)
		}
		if x.s.len() > budget {
			x.limit = LimitStates
			break
		}
		if i&1023 == 1023 && x.lim.late != nil && x.lim.late() {
			x.limit = LimitTime
			break
		}
		x.expand(int32(i))
		x.ends = append(x.ends, int32(len(x.edges)))
	}
	if x.limit == NoLimit {
		x.whole = true
		x.findDoomed()
	}
}

// expand makes every move that state i allows.
func (x *explorer) expand(i int32) {
	if len(x.closed) > 0 && x.closed[0] == i {
		x.closed = x.closed[1:]
		return
	}
	over, proper := x.g.complete(x.s.at(int(i)))
	if over {
		if !proper && x.spilled < 0 {
			x.spilled = i
		}
		return
	}
	moved := false
	if x.g.urgentAt {
		moved = x.sweep(i, true)
	}
	if !moved {
		moved = x.sweep(i, false)
	}
	if !moved && x.stuck < 0 {
		x.stuck = i
	}
}

// sweep tries the moves of state i, urgent ones or the others, and reports whether there was one.
func (x *explorer) sweep(i int32, urgent bool) bool {
	moved, only := false, int32(-1)
	try := func(k int32) {
		m := &x.g.moves[k]
		if m.urgent != urgent || only >= 0 && m.task != only || !x.g.enabled(m, x.s.at(int(i))) {
			return
		}
		if moved = true; m.alone {
			only = m.task
		}
		x.make(i, k)
	}
	for p := 0; p < x.g.places; p += 8 {
		word := binary.LittleEndian.Uint64(x.s.states[int(i)*x.s.width+p:])
		for q := p; word != 0; q++ {
			if byte(word) != 0 {
				for _, k := range x.g.candidates(q) {
					try(k)
				}
			}
			word >>= 8
		}
	}
	for _, k := range x.g.anytime {
		try(k)
	}
	return moved
}

// make makes a move and notes where it leads.
func (x *explorer) make(i, k int32) {
	m := &x.g.moves[k]
	x.fired[k] = true
	if x.watch != nil {
		x.watch.move(m, x.s.at(int(i)))
	}
	next := x.s.scratch(int(i))
	out := x.g.play(m, next)
	if out.over >= 0 {
		x.limit = LimitGrowth
		return
	}
	for _, a := range m.out {
		x.marked[a.place] = true
	}
	var grown pump
	if out.crowded >= 0 && !x.g.safe && !x.s.has(next) {
		grown = x.accelerate(i, k, next)
	}
	id, fresh := x.s.add(next, i, k)
	x.edges = append(x.edges, id)
	if !fresh {
		return
	}
	x.see(x.s.at(int(id)))
	if len(grown.places) > 0 {
		grown.state = id
		x.pumps = append(x.pumps, grown)
	}
	if x.g.safe && out.crowded >= 0 {
		x.closed = append(x.closed, id)
		if x.crowded < 0 {
			x.crowded, x.crowd = id, out.crowded
		}
	}
}

func (x *explorer) see(state []byte) {
	if x.watch != nil {
		x.watch.state(state)
	}
}
