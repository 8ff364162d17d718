package main

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// The naive full state search, as a textbook has it: every marking that can be reached, breadth first, in a hash map;
// then back from the final ones. No reduction, no structure, no bits. It is what verification is compared with, and
// decides the same question: see [net.Petri] for final markings, and [verify.Petri] for the rest.

// answer is what a search says of a net.
type answer struct {
	states int
	over   bool // there are more states than the budget, so nothing is known
	sound  bool
	proper bool // sound but for tasks that can never start
}

// marking holds the tokens of each place.
type marking []uint32

// search is one on a plain net.
type search struct {
	p       *net.Petri
	sink    int       // the only one; -1 if there are several
	ignored []bool    // by place: one of several sinks, whose tokens do not matter
	states  []reached // in the order in which they were found
	index   map[string]int
	fired   []bool
	bad     bool // work is left over in a final marking, or a place of a net with several sinks got a second token
	key     []byte
}

type reached struct {
	tokens marking
	final  bool
	before []int // those that lead here
}

// searchPetri looks at up to so many markings.
func searchPetri(p *net.Petri, budget int) answer {
	s := &search{p: p, sink: -1, ignored: make([]bool, len(p.Places)), index: make(map[string]int),
		fired: make([]bool, len(p.Transitions))}
	sinks := p.Sinks()
	if len(sinks) == 1 {
		s.sink = sinks[0]
	} else {
		for _, q := range sinks {
			s.ignored[q] = true
		}
	}
	first := make(marking, len(p.Places))
	for i, n := range p.Initial() {
		if !s.ignored[i] {
			first[i] = uint32(n)
		}
	}
	s.visit(first, -1)
	for at := 0; at < len(s.states); at++ {
		if len(s.states) > budget {
			return answer{states: len(s.states), over: true}
		}
		s.expand(at)
	}
	proper := !s.bad && s.allComplete()
	return answer{states: len(s.states), proper: proper, sound: proper && !slices.Contains(s.fired, false)}
}

func (s *search) expand(at int) {
	m := s.states[at].tokens
	if s.isFinal(m) {
		s.states[at].final = true
		return
	}
	if s.sink < 0 && crowded(m) {
		s.bad = true // a net with several sinks must be safe
		return
	}
	for i := range s.p.Transitions {
		if t := &s.p.Transitions[i]; enabled(t, m) {
			s.fired[i] = true
			s.visit(s.fire(t, m), at)
		}
	}
}

// isFinal reports whether a run ends here: with the first token in the only sink, or when nothing is left but in sinks.
func (s *search) isFinal(m marking) bool {
	total := uint32(0)
	for _, n := range m {
		total += n
	}
	if s.sink < 0 {
		return total == 0
	}
	if m[s.sink] == 0 {
		return false
	}
	s.bad = s.bad || total > 1
	return true
}

func crowded(m marking) bool {
	for _, n := range m {
		if n > 1 {
			return true
		}
	}
	return false
}

func enabled(t *net.PetriTransition, m marking) bool {
	for _, a := range t.In {
		if m[a.Place] < uint32(a.Weight) {
			return false
		}
	}
	return true
}

func (s *search) fire(t *net.PetriTransition, m marking) marking {
	next := append(marking(nil), m...)
	for _, a := range t.In {
		next[a.Place] -= uint32(a.Weight)
	}
	for _, q := range t.Resets {
		next[q] = 0
	}
	for _, a := range t.Out {
		if !s.ignored[a.Place] {
			next[a.Place] += uint32(a.Weight)
		}
	}
	return next
}

// visit notes that a marking can be reached from an earlier one.
func (s *search) visit(m marking, from int) {
	s.key = s.key[:0]
	for _, n := range m {
		s.key = binary.AppendUvarint(s.key, uint64(n))
	}
	at, known := s.index[string(s.key)]
	if !known {
		at = len(s.states)
		s.index[string(s.key)] = at
		s.states = append(s.states, reached{tokens: m})
	}
	if from >= 0 {
		s.states[at].before = append(s.states[at].before, from)
	}
}

// allComplete reports whether a final marking can be reached from every state.
func (s *search) allComplete() bool {
	done := make([]bool, len(s.states))
	var open []int
	for i := range s.states {
		if s.states[i].final {
			done[i] = true
			open = append(open, i)
		}
	}
	left := len(s.states) - len(open)
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		for _, b := range s.states[i].before {
			if !done[b] {
				done[b] = true
				left--
				open = append(open, b)
			}
		}
	}
	return left == 0
}

// searchNet does the same for a net with gates, regions and or-joins, whose tasks start and complete in steps of their
// own. Its rules are those that the readers' tests hold the models against.
func searchNet(n *net.Net, budget int) answer {
	o := modeltest.Explore(n, budget)
	return answer{over: o.Big, sound: o.Sound, proper: !o.Big && o.Stuck == "" && o.Left == ""}
}

var errDisagree = errors.New("the naive search and verification disagree")

// agrees compares with a verdict. Both must know.
func (a answer) agrees(v verify.Verdict) bool {
	switch v {
	case verify.Sound:
		return a.sound
	case verify.WeaklySound:
		return a.proper && !a.sound
	}
	return !a.sound
}
