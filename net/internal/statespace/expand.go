package statespace

// pack packs counts into a state, which must be empty.
func (x *Search) pack(state []uint64, counts []uint8) {
	clear(state)
	for p, c := range counts {
		if c != 0 {
			x.States.put(state, int32(p), c)
		}
	}
}

// expand executes every move that state i allows.
func (x *Search) expand(i int32) {
	if i == maskAfter {
		x.makeMasks()
	}
	x.at = x.States.Load(x.at, i, x.now)
	over, proper := len(x.at) == 0, true
	if x.sys.End >= 0 || x.sys.Open != nil {
		over, proper = x.sys.Complete(x.now)
	}
	if over {
		x.Final = append(x.Final, i)
		if !proper && x.Improper < 0 {
			x.Improper = i
		}
		return
	}
	if x.stubborn != nil {
		x.expandStubborn(i)
		return
	}
	undecided := x.sys.Undecided()
	moved := x.sys.urgentAt && x.sweep(i, true)
	if moved || x.sys.Undecided() > undecided && x.sys.urgentAt { // an undecided urgent move may block the moves that are not urgent
		return
	}
	if !x.sweep(i, false) && x.Deadlock < 0 && x.sys.Undecided() == undecided {
		x.Deadlock = i
	}
}

// expandStubborn executes only the moves of state i in its stubborn set.
func (x *Search) expandStubborn(i int32) {
	moves := x.stubborn.moves(x.now, x.at)
	for _, k := range moves {
		x.make(i, k)
	}
	if len(moves) == 0 && x.Deadlock < 0 {
		x.Deadlock = i
	}
}

// sweep tries the moves of state i, urgent ones or the others, and reports whether one was possible.
func (x *Search) sweep(i int32, urgent bool) bool {
	moved, only := false, int32(-1)
	try := func(list []int32) {
		for _, k := range list {
			m := &x.sys.Moves[k]
			if m.Urgent != urgent || only >= 0 && m.Task != only || !x.sys.Enabled(m, x.now) {
				continue
			}
			if moved = true; m.Persistent {
				only = m.Task
			}
			x.make(i, k)
		}
	}
	for _, p := range x.at {
		try(x.sys.candidates(int(p)))
	}
	try(x.sys.anytime)
	return moved
}

// make executes a move, and records the state that it leads to.
func (x *Search) make(i, k int32) {
	m := &x.sys.Moves[k]
	x.Fired[k] = true
	if x.stopped() {
		return
	}
	if len(x.masks.can) > 0 && x.masks.can[k] {
		if id, ok := x.makeByMask(i, k); ok {
			x.reached(id, m)
			return
		}
	}
	if x.Observer != nil {
		x.Observer.Move(m, x.now)
	}
	state := x.States.scratch(i)
	out := x.after(m, state)
	if out.unsafe >= 0 && x.States.log == 0 && x.widen() {
		state = x.States.scratch(i)
		out = x.after(m, state)
	}
	switch {
	case out.Overflow >= 0:
		x.overflow = true
		return
	case x.sys.Safe && !x.BeyondUnsafe && out.unsafe >= 0:
		x.noteSecondToken(SecondToken{State: i, Move: k, Place: out.unsafe})
		return
	}
	var grown Covering
	hash := hashState(state)
	if out.second && !x.NoOmega {
		if _, known := x.States.find(state, hash); !known {
			if grown = x.accelerate(i, k, state); len(grown.Places) > 0 {
				x.pack(state, x.next)
				hash = hashState(state)
			}
		}
	}
	id, fresh := x.States.keep(state, hash, i, k)
	x.reached(id, m)
	if !fresh {
		return
	}
	x.observe(x.next)
	if x.sys.Safe && out.second {
		x.noteSecondTokens(id, m, grown.Places)
	}
	if len(grown.Places) > 0 {
		grown.State = id
		x.Coverings = append(x.Coverings, grown)
	}
}

// widen makes room for more than one token per place, if the search continues behind second tokens and there is memory.
func (x *Search) widen() bool {
	if !x.BeyondUnsafe {
		return false
	}
	if x.States.Len() > x.bytes/(x.States.places+bytesBeside) {
		x.BeyondUnsafe, x.outOfMemory = false, true
		return false
	}
	x.States.widen()
	x.masks = moveMasks{}
	x.bound(x.limits.States, x.bytes)
	return true
}

// noteSecondToken records a second token in a place, unless one is known.
func (x *Search) noteSecondToken(c SecondToken) {
	if !x.isUnsafe.Has(int(c.Place)) {
		x.isUnsafe.Add(int(c.Place))
		x.SecondTokens = append(x.SecondTokens, c)
	}
}

// noteSecondTokens records the second tokens of a new state: where the last move put some, and where they pile up.
func (x *Search) noteSecondTokens(id int32, m *Move, grown []int32) {
	note := func(p int32) {
		if x.next[p] > 1 && !x.sys.isOpen(p) {
			x.noteSecondToken(SecondToken{State: id, Move: -1, Place: p})
		}
	}
	for _, a := range m.Out {
		note(a.Place)
	}
	for _, p := range grown {
		note(p)
	}
}

// reached records that a move leads to a state.
func (x *Search) reached(id int32, m *Move) {
	x.edges = push(x.edges, id)
	for _, a := range m.Out {
		x.Marked[a.Place] = true
	}
}

// after executes a move on a packed copy of the state that is expanded.
func (x *Search) after(m *Move, state []uint64) Outcome {
	if x.States.log == 0 && len(m.Resets)+len(m.MemberResets) == 0 && m.OrJoin < 0 && x.Observer == nil {
		return x.afterSafe(m, state)
	}
	copy(x.next, x.now)
	out := x.sys.Fire(m, x.next)
	for _, a := range m.In {
		x.States.put(state, a.Place, x.next[a.Place])
	}
	for _, a := range m.Out {
		x.States.put(state, a.Place, x.next[a.Place])
	}
	for _, p := range m.Resets {
		x.States.put(state, p, x.next[p])
	}
	if len(m.MemberResets) > 0 {
		for _, p := range x.sys.cleared {
			x.States.put(state, p, x.next[p])
		}
	}
	return out
}

// afterSafe is after for a move that only takes and puts, in a system with one bit per place.
func (x *Search) afterSafe(m *Move, state []uint64) Outcome {
	for _, a := range m.In {
		state[a.Place>>6] &^= 1 << (a.Place & 63)
	}
	out := Outcome{unsafe: -1, Overflow: -1}
	for _, a := range m.Out {
		bit := uint64(1) << (a.Place & 63)
		if state[a.Place>>6]&bit != 0 {
			out.second, out.unsafe = true, a.Place
		}
		state[a.Place>>6] |= bit
	}
	return out
}

func (x *Search) observe(state []uint8) {
	if x.Observer != nil {
		x.Observer.State(state)
	}
}
