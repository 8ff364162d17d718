package net

// explorer walks the states of a game breadth first, notes the first state with each kind of violation, and afterwards
// says what the whole says: moves that never fire, states from which no run can complete.
//
// Unbounded nets. A state that holds all of an ancestor's tokens and more, reached by moves that would do the same with
// the extra tokens there, can be reached again and again: the places that grew get the count unbounded (Karp and
// Miller). What would do otherwise with more tokens is a reset of such a place, a test for its emptiness, an or-join
// that looks at it; with one of those on the way nothing is concluded, and the search goes on until it is done or out
// of budget.
type explorer struct {
	g   *game
	s   *stateSpace
	lim searchLimits
	// firstOnly stops at the first violation. It is for games that only have to be shown free of any.
	firstOnly bool
	// behind goes on behind second tokens in places of a safe game.
	behind bool
	leaps  leaps
	watch  watcher // told of every state and move; nil for nobody
	// sparing leaves out moves of which others tell as much; nil to make them all. See there what is found then. The
	// search is never taken for whole.
	sparing *stubborn
	// counting takes no loop for unbounded: every state is one that a run leads to.
	counting bool

	now, next []uint8 // the state that is looked at, and one behind it, unpacked
	at        []int32 // the places that are marked now
	ends      []int32 // by state, where its edges end
	edges     []int32
	final     []int32 // states in which the run is over
	fired     []bool  // by move
	marked    []bool  // by place
	touchy    Bits    // places whose emptiness is tested
	pumps     []pump
	stuck     int32   // first state with no move that is not over; -1 if none
	spilled   int32   // first improper completion; -1 if none
	crowds    []crowd // second tokens in places of a safe game, the first one for each place
	isCrowded Bits    // those places
	doomed    int32   // first state from which no run completes; -1 if none. Known only after a whole search
	limit     Limit
	whole     bool  // every state was seen, and every answer that was asked for was decided
	tooMany   bool  // somewhere there were more tokens than can be counted
	done      int32 // states that were expanded
	stop      int   // states to look at in all, once something was found; 0 before that
	bytes     int   // of memory that it may take
	fit       int   // states that these suffice for
	room      int   // states that there is memory for while one state is looked at
	cramped   bool  // it does not go on behind second tokens, for want of memory
	work      int   // words copied since the clock was last looked at
}

// crowd says that a place holds a second token: in a state, or after a move that is made there, if the search does not
// go on behind that. The move is -1 otherwise.
type crowd struct {
	state, move, place int32
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
	bytes        int         // of memory
	late         func() bool // nil if time is not limited
}

func newExplorer(g *game, lim searchLimits) *explorer {
	x := &explorer{g: g, s: newStateSpace(g.places, g.narrow()), lim: lim, stuck: -1, spilled: -1, doomed: -1}
	x.now, x.next = make([]uint8, g.places), make([]uint8, g.places)
	x.fired = make([]bool, len(g.moves))
	x.marked = make([]bool, g.places)
	x.touchy, x.isCrowded = NewBits(g.places), NewBits(g.places)
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
	return x.stuck >= 0 || x.spilled >= 0 || len(x.crowds) > 0 || len(x.pumps) > 0
}

// run searches from the game's start, within the same bounds as [explorer.resume].
func (x *explorer) run(states, bytes int) {
	first := x.s.room()
	x.pack(first, x.g.start)
	x.s.add(first, -1, -1)
	x.see(x.g.start)
	x.resume(states, bytes)
}

// resume goes on with the search until so many states were looked at in all, or that many bytes are taken.
func (x *explorer) resume(states, bytes int) {
	x.bound(states, bytes)
	for x.limit = NoLimit; int(x.done) < x.s.len(); x.done++ {
		looked := x.s.len() + x.g.spent()
		if x.stop == 0 && x.violated() {
			if x.firstOnly {
				return
			}
			x.stop = looked + x.lim.more
		}
		switch {
		case looked > states || x.stop > 0 && looked > x.stop:
			x.limit = LimitStates
		case x.s.len() > x.fit:
			x.limit = LimitMemory
		case (x.done&15 == 15 || len(x.g.moves) > 1<<14) && x.lim.late != nil && x.lim.late():
			x.limit = LimitTime
		default:
			x.expand(x.done)
		}
		if x.stopped() {
			return
		}
		x.ends = push(x.ends, int32(len(x.edges)))
	}
	switch {
	case x.tooMany:
		x.limit = LimitGrowth
	case x.cramped:
		x.limit = LimitMemory
	case x.g.guesses() > 0:
		x.limit = LimitOrJoin
	case x.sparing == nil:
		x.whole = true
		x.findDoomed()
	}
}

// bound says how many states the search may look at, and how much memory it may take.
func (x *explorer) bound(states, bytes int) {
	x.bytes, x.fit = bytes, bytes/(8*x.s.width+bytesBeside)
	x.room = min(states, x.fit) + min(x.fit, maxSuccessors)
	x.s.most = x.room + 2 // the first state, and the scratch state behind the last
}

// bytesBeside is what a state takes besides its counts: the way to it, its entry in the table, and the moves from it.
const bytesBeside = 48

// One state of a large net may have more successors than there is room or time for.
const (
	maxSuccessors = 1 << 14
	maxWork       = 1 << 20
)

// stopped reports whether there is no more room or time, also in the middle of a state.
func (x *explorer) stopped() bool {
	if x.work += x.s.width; x.work > maxWork {
		x.work = 0
		if x.lim.late != nil && x.lim.late() {
			x.limit = LimitTime
		}
	}
	switch {
	case x.s.len() > x.room && x.room < x.lim.states:
		x.limit = LimitMemory
	case x.s.len() > x.room || x.sparing != nil && x.sparing.work > maxSparing:
		x.limit = LimitStates
	}
	return x.limit == LimitStates || x.limit == LimitTime || x.limit == LimitMemory
}

// pack packs counts into a state, which must be empty.
func (x *explorer) pack(state []uint64, counts []uint8) {
	clear(state)
	for p, c := range counts {
		if c != 0 {
			x.s.put(state, int32(p), c)
		}
	}
}

// expand makes every move that state i allows.
func (x *explorer) expand(i int32) {
	if i == leapAfter {
		x.makeLeaps()
	}
	x.at = x.s.load(x.at, i, x.now)
	over, proper := len(x.at) == 0, true
	if x.g.end >= 0 || x.g.open != nil {
		over, proper = x.g.complete(x.now)
	}
	if over {
		x.final = append(x.final, i)
		if !proper && x.spilled < 0 {
			x.spilled = i
		}
		return
	}
	if x.sparing != nil {
		x.expandSparing(i)
		return
	}
	guesses := x.g.guesses()
	moved := x.g.urgentAt && x.sweep(i, true)
	if moved || x.g.guesses() > guesses && x.g.urgentAt { // whether anything else may move is not known
		return
	}
	if !x.sweep(i, false) && x.stuck < 0 && x.g.guesses() == guesses {
		x.stuck = i
	}
}

// expandSparing makes only the moves of state i that are worth it.
func (x *explorer) expandSparing(i int32) {
	moves := x.sparing.moves(x.now, x.at)
	for _, k := range moves {
		x.make(i, k)
	}
	if len(moves) == 0 && x.stuck < 0 {
		x.stuck = i
	}
}

// sweep tries the moves of state i, urgent ones or the others, and reports whether there was one.
func (x *explorer) sweep(i int32, urgent bool) bool {
	moved, only := false, int32(-1)
	try := func(list []int32) {
		for _, k := range list {
			m := &x.g.moves[k]
			if m.urgent != urgent || only >= 0 && m.task != only || !x.g.enabled(m, x.now) {
				continue
			}
			if moved = true; m.alone {
				only = m.task
			}
			x.make(i, k)
		}
	}
	for _, p := range x.at {
		try(x.g.candidates(int(p)))
	}
	try(x.g.anytime)
	return moved
}

// make makes a move and notes where it leads.
func (x *explorer) make(i, k int32) {
	m := &x.g.moves[k]
	x.fired[k] = true
	if x.stopped() {
		return
	}
	if len(x.leaps.can) > 0 && x.leaps.can[k] {
		if id, ok := x.leap(i, k); ok {
			x.reached(id, m)
			return
		}
	}
	if x.watch != nil {
		x.watch.move(m, x.now)
	}
	state := x.s.scratch(i)
	out := x.after(m, state)
	if out.crowded >= 0 && x.s.log == 0 && x.widen() {
		state = x.s.scratch(i)
		out = x.after(m, state)
	}
	switch {
	case out.over >= 0:
		x.tooMany = true
		return
	case x.g.safe && !x.behind && out.crowded >= 0:
		x.crowd(crowd{state: i, move: k, place: out.crowded})
		return
	}
	var grown pump
	if out.second && !x.counting {
		if _, known := x.s.find(state, hashState(state)); !known {
			if grown = x.accelerate(i, k, state); len(grown.places) > 0 {
				x.pack(state, x.next)
			}
		}
	}
	id, fresh := x.s.add(state, i, k)
	x.reached(id, m)
	if !fresh {
		return
	}
	x.see(x.next)
	if x.g.safe && out.second {
		x.crowdsIn(id, m, grown.places)
	}
	if len(grown.places) > 0 {
		grown.state = id
		x.pumps = append(x.pumps, grown)
	}
}

// widen makes room for more than one token in a place, if the search is to go on behind those and there is memory.
func (x *explorer) widen() bool {
	if !x.behind {
		return false
	}
	if x.s.len() > x.bytes/(x.s.places+bytesBeside) {
		x.behind, x.cramped = false, true
		return false
	}
	x.s.widen()
	x.leaps = leaps{}
	x.bound(x.lim.states, x.bytes)
	return true
}

// crowd notes a second token in a place, unless one is known.
func (x *explorer) crowd(c crowd) {
	if !x.isCrowded.Has(int(c.place)) {
		x.isCrowded.Add(int(c.place))
		x.crowds = append(x.crowds, c)
	}
}

// crowdsIn notes the second tokens of a new state: where the move to it put some, and where they pile up.
func (x *explorer) crowdsIn(id int32, m *gameMove, grown []int32) {
	note := func(p int32) {
		if x.next[p] > 1 && !x.g.isOpen(p) {
			x.crowd(crowd{state: id, move: -1, place: p})
		}
	}
	for _, a := range m.out {
		note(a.place)
	}
	for _, p := range grown {
		note(p)
	}
}

// reached notes that a move leads to a state.
func (x *explorer) reached(id int32, m *gameMove) {
	x.edges = push(x.edges, id)
	for _, a := range m.out {
		x.marked[a.place] = true
	}
}

// after makes a move on a packed copy of the state that is looked at.
func (x *explorer) after(m *gameMove, state []uint64) outcome {
	if x.s.log == 0 && len(m.resets)+len(m.spares) == 0 && m.or < 0 && x.watch == nil {
		return x.afterSafe(m, state)
	}
	copy(x.next, x.now)
	out := x.g.play(m, x.next)
	for _, a := range m.in {
		x.s.put(state, a.place, x.next[a.place])
	}
	for _, a := range m.out {
		x.s.put(state, a.place, x.next[a.place])
	}
	for _, p := range m.resets {
		x.s.put(state, p, x.next[p])
	}
	if len(m.spares) > 0 {
		for _, p := range x.g.cleared {
			x.s.put(state, p, x.next[p])
		}
	}
	return out
}

// afterSafe is after for a move that only takes and puts, in a game where a place is a bit.
func (x *explorer) afterSafe(m *gameMove, state []uint64) outcome {
	for _, a := range m.in {
		state[a.place>>6] &^= 1 << (a.place & 63)
	}
	out := outcome{crowded: -1, over: -1}
	for _, a := range m.out {
		bit := uint64(1) << (a.place & 63)
		if state[a.place>>6]&bit != 0 {
			out.second, out.crowded = true, a.place
		}
		state[a.place>>6] |= bit
	}
	return out
}

func (x *explorer) see(state []uint8) {
	if x.watch != nil {
		x.watch.state(state)
	}
}
