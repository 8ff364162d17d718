package net

// backward searches from the goal. The states that answer the question are those that cover one of a few: the marked
// inputs with a token each, and one more input with one. So do the states from which a move leads there, since more
// tokens never make less possible, and so on. The set of minimal predecessors grows until the state of the case covers
// one of them, or until nothing new is added.
//
// If there are sensitive cells, more tokens can make less possible. The search then assumes that regions spare members
// of several inputs, which can only add futures. So if it finds none there is none; if it finds one, the run is
// executed without that assumption before it counts.
//
// Concurrency that is irrelevant to the question does not slow it down, and it ends even if a loop adds tokens without
// bound.
func (s *search) backward() answer {
	s.full, s.allowed = false, s.work+workBudget
	s.pasts.reset(len(s.now))
	s.next, s.begun = sized(s.next, len(s.now)), sized(s.begun, len(s.now))
	s.unstamp(len(s.j.moves))
	for i := range s.j.inputs {
		if s.goal[i] && s.markable.Has(i) {
			clear(s.next)
			for k, keep := range s.keep {
				if keep {
					s.next[k] = 1
				}
			}
			s.next[i] = 1
			s.pasts.add(s.next, -1, nil)
		}
	}
	for i := int32(0); int(i) < s.pasts.len(); i++ {
		switch {
		case s.retreat(i):
			if s.j.exact != nil && !s.replays(s.backRun()) {
				return unknown
			}
			return yes
		case s.exhausted(s.pasts.len(), backwardBudget):
			return unknown
		}
	}
	return no
}

// retreat adds the minimal predecessors of a state, and reports whether the case covers one. That one is the last.
func (s *search) retreat(i int32) bool {
	copy(s.begun, s.pasts.state(i))
	for c := range s.j.cells() {
		if s.begun[c] == 0 {
			continue
		}
		for _, k := range s.j.into[c] {
			if s.stamps[k] == i || !s.active.Has(int(s.j.moves[k].task)) {
				continue
			}
			s.stamps[k] = i
			if s.work += len(s.now) >> 3; s.work > s.allowed {
				return false
			}
			if s.undo(&s.j.moves[k]) && s.fresh() {
				s.trail = append(s.trail[:0], k)
				s.pasts.add(s.next, i, s.trail)
				if s.above(s.now, s.next) {
					return true
				}
			}
		}
	}
	return false
}

// undo computes the minimal state from which a move leads to a state that covers the given one. There is none if the
// move empties a cell that must have more than the move puts there, or if what must be there cannot be.
func (s *search) undo(m *move) bool {
	own := len(s.j.places) + int(m.task)
	v := s.next
	copy(v, s.begun)
	if m.phase != starts && v[own] > 0 {
		return false // after the move the task is idle
	}
	for _, c := range m.puts {
		if v[c] > 0 {
			v[c]--
		}
	}
	for _, c := range m.resets {
		if v[c] > 0 {
			return false
		}
	}
	for _, d := range m.sheds {
		if d.needs != nil {
			continue
		}
		for _, p := range d.private {
			if v[p] > 0 {
				v[d.member] = 1 // only a busy member keeps its private inputs
				if !s.markable.Has(int(d.member)) {
					return false
				}
			}
		}
	}
	for _, c := range m.takes {
		switch {
		case v[c] == most:
			s.full = true
			return false
		case !s.markable.Has(int(c)):
			return false
		}
		v[c]++
	}
	return true
}

// fresh reports whether the new predecessor covers no known one.
func (s *search) fresh() bool {
	trait := s.next.trait()
	s.work += s.pasts.len() >> 1
	for i := range s.pasts.len() {
		if s.pasts.traits[i]&^trait == 0 && s.above(s.next, s.pasts.state(int32(i))) {
			return false
		}
	}
	return true
}
