package net

import "slices"

// forward explores the futures of the case, depth first. A state is not added if one that is known is above it.
//
// With pump, a state that lies above one on its own way shows a loop that adds tokens, and can add any number of them:
// those counts become many. A loop that empties a condition adds nothing to it in the end, however often it runs.
func (s *search) forward(pump bool) answer {
	s.full = false
	s.states.reset(len(s.now))
	s.next, s.begun = sized(s.next, len(s.now)), sized(s.begun, len(s.now))
	s.stack = s.stack[:0]
	s.trail = s.trail[:0]
	s.stack = append(s.stack, s.states.add(s.now, -1, nil))
	for len(s.stack) > 0 {
		i := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		switch {
		case s.expand(i, pump):
			return yes
		case s.full || s.states.len() > forwardBudget:
			return unknown
		}
	}
	return no
}

// expand adds the states that follow a state, and reports whether one of them answers the question. That one is the last.
//
// Where something can be done eagerly, that is all that is done: see [group]. But a state with nothing new behind its eager
// moves may be going round in circles, and is then expanded in full, lest the rest be put off for ever.
func (s *search) expand(i int32, pump bool) bool {
	copy(s.begun, s.states.state(i))
	if found, some := s.eager(i, pump); found || some {
		return found
	}
	if found, some := s.choose(i, pump); found || some {
		return found
	}
	for _, t := range s.order {
		for _, g := range s.j.groups[t] {
			if found, _ := s.follow(i, g, pump); found {
				return true
			}
		}
	}
	return false
}

// eager makes every eager move that leaves no choice, in the order in which tasks come within reach, so that a token goes
// all along a chain of tasks.
func (s *search) eager(i int32, pump bool) (found, some bool) {
	copy(s.next, s.begun)
	s.trail = s.trail[:0]
	for _, t := range s.order {
		for _, g := range s.j.groups[t] {
			m := &s.j.moves[g.from]
			if !g.eager || g.to-g.from > 1 || !s.enabled(m, s.next) {
				continue
			}
			s.trail = append(s.trail, g.from)
			if s.make(m, s.next) {
				s.states.add(s.next, i, s.trail)
				return true, true
			}
		}
	}
	return false, len(s.trail) > 0 && s.add(i, pump)
}

// choose takes one eager group that leaves a choice, and follows each.
func (s *search) choose(i int32, pump bool) (found, some bool) {
	for _, t := range s.order {
		for _, g := range s.j.groups[t] {
			if g.eager && g.to-g.from > 1 && s.enabled(&s.j.moves[g.from], s.begun) {
				return s.follow(i, g, pump)
			}
		}
	}
	return false, false
}

// follow makes each move of a group, all from the same state.
func (s *search) follow(i int32, g group, pump bool) (found, some bool) {
	for k := g.from; k < g.to; k++ {
		m := &s.j.moves[k]
		if !s.enabled(m, s.begun) {
			break // its fellows take the same
		}
		copy(s.next, s.begun)
		s.trail = append(s.trail[:0], k)
		if s.make(m, s.next) {
			s.states.add(s.next, i, s.trail)
			return true, true
		}
		some = s.add(i, pump) || some
	}
	return false, some
}

// add keeps the state that was made, unless a known one is above it.
func (s *search) add(parent int32, pump bool) bool {
	for i := int32(s.states.len()) - 1; i >= 0; i-- {
		if s.states.state(i).above(s.next) {
			return false
		}
	}
	if pump {
		s.pump(parent)
	}
	s.stack = append(s.stack, s.states.add(s.next, parent, s.trail))
	return true
}

// pump sets the counts to many that a loop on the way to the state adds to.
func (s *search) pump(parent int32) {
	s.emptied = cleared(s.emptied, s.j.cells())
	s.note(s.trail)
	for i := parent; i >= 0; i = s.states.parent[i] {
		if v := s.states.state(i); s.next.above(v) {
			for p := range s.j.places {
				if s.next[p] > v[p] && !s.emptied.Has(p) {
					s.next[p] = many
				}
			}
		}
		s.note(s.states.between(i))
	}
}

// note collects the cells that some moves empty.
func (s *search) note(moves []int32) {
	for _, k := range moves {
		m := &s.j.moves[k]
		for _, c := range m.resets {
			s.emptied.Add(int(c))
		}
		for _, d := range m.sheds {
			for _, p := range d.private {
				s.emptied.Add(int(p))
			}
		}
	}
}

// run lists the moves from the beginning to a state.
func (s *search) run(l *states, i int32) []int32 {
	var moves []int32
	for ; i >= 0; i = l.parent[i] {
		back := slices.Clone(l.between(i))
		slices.Reverse(back)
		moves = append(moves, back...)
	}
	slices.Reverse(moves)
	return moves
}
