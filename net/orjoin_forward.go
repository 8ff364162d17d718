package net

import "slices"

// maxLoops bounds the number of loops that are examined for a state.
const maxLoops = 4

// forward explores the futures of the case depth first, and at every state the moves nearest to the goal first. A state
// is not added if a known one covers it.
//
// If a state has an eager group, only that is executed: see [group]. But a state whose eager moves lead to nothing new
// may be on a loop. It is then expanded fully, because its other moves would otherwise never be tried.
//
// With accelerate, a state that covers one on its own path shows a loop that can add any number of tokens: those counts
// become many. A loop that empties a condition adds nothing to it, however often it runs.
func (s *search) forward(accelerate bool) answer {
	s.enter(accelerate)
	for len(s.stack) > 0 {
		top := &s.stack[len(s.stack)-1]
		switch {
		case s.exhausted(s.states.len(), forwardBudget):
			return unknown
		case len(s.options) > top.options:
			if s.take(top) {
				return yes
			}
		case !top.some && top.phase < inFull:
			top.phase++
			if s.prepare(top) {
				return yes
			}
		default:
			s.stack = s.stack[:len(s.stack)-1]
		}
	}
	if s.j.partial {
		return unknown
	}
	return no
}

// frame is a state on the current path.
type frame struct {
	state   int32
	options int  // where its own options begin
	some    bool // it has led to something new
	phase   expansion
}

// expansion is how far a state has been expanded.
type expansion uint8

const (
	untouched expansion = iota
	byChains            // eager moves that leave no choice
	byChoice            // one eager group that does
	inFull              // every move
)

func (s *search) enter(accelerate bool) {
	s.full, s.accelerate, s.allowed = s.uncounted(), accelerate, s.work+workBudget
	s.states.reset(len(s.now))
	s.next, s.begun = sized(s.next, len(s.now)), sized(s.begun, len(s.now))
	s.options, s.trail = s.options[:0], s.trail[:0]
	s.unstamp(len(s.j.groups))
	s.stack = append(s.stack[:0], frame{state: s.states.add(s.now, -1, nil)})
	s.measure()
}

// uncounted reports whether a sensitive cell holds more tokens than can be counted.
func (s *search) uncounted() bool {
	for c, mask := range s.j.exact {
		if s.now[c]&mask == many {
			return true
		}
	}
	return false
}

// measure computes the distance of every move from the goal: the length of the shortest chain of moves to it.
func (s *search) measure() {
	const infinite = 1 << 30
	s.far = sized(s.far, len(s.j.moves))
	for i := range s.far {
		s.far[i] = infinite
	}
	s.emptied = cleared(s.emptied, s.j.cells()) // the visited cells
	s.emptied.Add(s.toward)
	s.queue = append(s.queue[:0], int32(s.toward))
	for at, depth := 0, int32(0); at < len(s.queue); depth++ {
		for end := len(s.queue); at < end; at++ {
			for _, k := range s.j.into[s.queue[at]] {
				if s.far[k] < infinite {
					continue
				}
				s.far[k] = depth
				for _, from := range s.j.moves[k].takes {
					if !s.emptied.Has(int(from)) {
						s.emptied.Add(int(from))
						s.queue = append(s.queue, from)
					}
				}
			}
		}
	}
}

// prepare collects the moves of a state for its phase. Chains are followed at once, which may answer the question.
func (s *search) prepare(top *frame) bool {
	copy(s.begun, s.states.state(top.state))
	switch top.phase {
	case byChains:
		return s.chains(top)
	case byChoice:
		s.choose()
	default:
		s.list()
	}
	return false
}

// take executes the nearest move, and reports whether it answers the question.
func (s *search) take(top *frame) bool {
	k := s.options[len(s.options)-1]
	s.options = s.options[:len(s.options)-1]
	copy(s.next, s.states.state(top.state))
	s.trail = append(s.trail[:0], k)
	if s.make(&s.j.moves[k], s.next) {
		s.states.add(s.next, top.state, s.trail)
		return true
	}
	s.add(top)
	return false
}

// chains executes every eager move without a choice, once, and continues with the tokens that it put: a token moves
// along a whole chain of tasks.
func (s *search) chains(top *frame) bool {
	copy(s.next, s.begun)
	s.trail, s.queue = s.trail[:0], s.queue[:0]
	for c := range s.next.marked() {
		s.queue = append(s.queue, c)
	}
	for i := 0; i < len(s.queue); i++ {
		for _, k := range s.j.at[s.queue[i]] {
			g := s.j.groups[k]
			m := &s.j.moves[g.from]
			if !g.eager || g.to-g.from > 1 || s.stamps[k] == top.state || !s.enabled(m, s.next) {
				continue
			}
			s.stamps[k] = top.state
			s.trail = append(s.trail, g.from)
			if s.make(m, s.next) {
				s.states.add(s.next, top.state, s.trail)
				return true
			}
			s.queue = append(s.queue, m.puts...)
		}
	}
	if len(s.trail) > 0 {
		s.add(top)
	}
	return false
}

// choose makes the moves of one eager group the options.
func (s *search) choose() {
	for c := range s.begun.marked() {
		for _, k := range s.j.at[c] {
			if g := s.j.groups[k]; g.eager && g.to-g.from > 1 && s.enabled(&s.j.moves[g.from], s.begun) {
				s.option(g, len(s.options))
				return
			}
		}
	}
}

// list makes all moves the options.
func (s *search) list() {
	from := len(s.options)
	for c := range s.begun.marked() {
		for _, k := range s.j.at[c] {
			g := s.j.groups[k]
			if s.j.moves[g.from].takes[0] == c && s.enabled(&s.j.moves[g.from], s.begun) { // so each is looked at once
				s.option(g, from)
			}
		}
	}
}

// option adds the moves of a group to a list of options, sorted by decreasing distance to the goal.
func (s *search) option(g group, from int) {
	far := s.far
	for k := g.from; k < g.to; k++ {
		at := len(s.options)
		for at > from && far[s.options[at-1]] < far[k] {
			at--
		}
		s.options = slices.Insert(s.options, at, k)
	}
}

// add keeps the new state and continues with it, unless a known one covers it.
func (s *search) add(top *frame) {
	trait := s.next.trait()
	s.work += s.states.len() >> 1
	for i := int32(s.states.len()) - 1; i >= 0; i-- {
		if trait&^s.states.traits[i] == 0 && s.covers(s.states.state(i), s.next) {
			return
		}
	}
	if s.accelerate {
		s.inflate(top.state, trait)
	}
	top.some = true
	state := s.states.add(s.next, top.state, s.trail)
	s.stack = append(s.stack, frame{state: state, options: len(s.options)})
}

// inflate sets the counts to many to which a loop on the path to the state adds. It examines only the shortest loops;
// others become shortest once these add nothing.
func (s *search) inflate(parent int32, trait uint64) {
	noted := int32(-1) // from there on, what was emptied is known
	loops := 0
	for i := parent; i >= 0 && loops < maxLoops; i = s.states.parent[i] {
		v := s.states.state(i)
		if s.states.traits[i]&^trait != 0 || !s.covers(s.next, v) {
			continue
		}
		loops++
		if noted < 0 {
			s.emptied = cleared(s.emptied, s.j.cells())
			s.note(s.trail)
			noted = parent
		}
		for ; noted != i; noted = s.states.parent[noted] {
			s.note(s.states.between(noted))
		}
		for p := range s.next.over(v) {
			if int(p) < len(s.j.places) && !s.emptied.Has(int(p)) {
				s.next[p] = many
			}
		}
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
