package verify_test

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// omega is the count of a place that can hold any number of tokens; mostCounted is the highest count that is exact.
const (
	omega       = 255
	mostCounted = 200
)

// exhaustive decides a plain net by looking at every marking, and shares no code with the verifier: it classifies
// places by itself, plays by itself, and takes loops that add tokens for unbounded as Karp and Miller do.
type exhaustive struct {
	p      *net.Petri
	most   int    // markings it may look at
	sink   []bool // by place
	end    int    // the only sink; -1 if there is not exactly one
	strict bool   // a second token in a place that is no sink is a finding
}

// decided is what a walk over all markings found.
type decided struct {
	tooLarge bool     // the walk did not come to an end
	open     bool     // whether every run can complete is not decided, for there are infinitely many markings
	findings []string // as [net.Finding.String] has them, and "unsafe" with every place
	states   int
}

func newExhaustive(p *net.Petri, most int) *exhaustive {
	x := &exhaustive{p: p, most: most, sink: make([]bool, len(p.Places)), end: -1}
	taken, put := make([]bool, len(p.Places)), make([]bool, len(p.Places))
	ordinary, marked := true, 0
	for i := range p.Places {
		marked += p.Places[i].Initial
		ordinary = ordinary && p.Places[i].Initial <= 1
	}
	for i := range p.Transitions {
		for _, a := range p.Transitions[i].In {
			taken[a.Place] = true
			ordinary = ordinary && a.Weight == 1
		}
		for _, a := range p.Transitions[i].Out {
			put[a.Place] = true
			ordinary = ordinary && a.Weight == 1
		}
	}
	sinks := 0
	for i := range p.Places {
		if put[i] && !taken[i] {
			x.sink[i], x.end = true, i
			sinks++
		}
	}
	if sinks != 1 {
		x.end = -1
	}
	x.strict = ordinary && (x.end < 0 || marked == 1 && x.freeChoice(taken, put))
	return x
}

// freeChoice reports whether the net begins with one token in its only source, and transitions that share an input
// share all of them.
func (x *exhaustive) freeChoice(taken, put []bool) bool {
	for i := range x.p.Places {
		if isSource := taken[i] && !put[i]; isSource != (x.p.Places[i].Initial == 1) {
			return false
		}
	}
	inputs := func(t *net.PetriTransition) map[int]bool {
		set := make(map[int]bool)
		for _, a := range t.In {
			set[a.Place] = true
		}
		return set
	}
	for i := range x.p.Transitions {
		t := &x.p.Transitions[i]
		if len(t.In) == 0 || len(t.Resets) > 0 {
			return false
		}
		mine := inputs(t)
		for k := range x.p.Transitions {
			shared, others := 0, inputs(&x.p.Transitions[k])
			for p := range others {
				if mine[p] {
					shared++
				}
			}
			if shared > 0 && (shared < len(mine) || shared < len(others)) {
				return false
			}
		}
	}
	return true
}

// over reports whether a run ends in the marking.
func (x *exhaustive) over(m []byte) bool {
	if x.end >= 0 {
		return m[x.end] > 0
	}
	for i, c := range m {
		if c > 0 && !x.sink[i] {
			return false
		}
	}
	return true
}

// fire makes a transition fire in next, a copy of the marking, and reports whether it can.
func (x *exhaustive) fire(next []byte, t *net.PetriTransition) bool {
	for _, a := range t.In {
		if int(next[a.Place]) < a.Weight {
			return false
		}
	}
	for _, a := range t.In {
		if next[a.Place] != omega {
			next[a.Place] -= byte(a.Weight)
		}
	}
	for _, p := range t.Resets {
		next[p] = 0
	}
	for _, a := range t.Out {
		if next[a.Place] != omega {
			next[a.Place] += byte(a.Weight)
		}
	}
	return true
}

// markings is a set of markings, and a way to each.
type markings struct {
	ids    map[string]int
	list   []string
	tokens []int // by marking, in all places
	parent []int
	via    []int
	next   [][]int
	fired  []bool // by transition
}

func (s *markings) add(m []byte, parent, via int) int {
	if id, ok := s.ids[string(m)]; ok {
		return id
	}
	id := len(s.list)
	s.list = append(s.list, string(m))
	s.ids[s.list[id]] = id
	s.tokens = append(s.tokens, tokensOf(m))
	s.parent, s.via, s.next = append(s.parent, parent), append(s.via, via), append(s.next, nil)
	return id
}

func tokensOf(m []byte) int {
	sum := 0
	for _, c := range m {
		sum += int(c)
	}
	return sum
}

// walk looks at every marking: as it is, or, with sinks forgotten, at what the other places hold. It reports false if
// they are too many.
func (x *exhaustive) walk(forget bool) (*markings, bool) {
	s := &markings{ids: make(map[string]int), fired: make([]bool, len(x.p.Transitions))}
	next := make([]byte, len(x.p.Places))
	for i := range next {
		next[i] = byte(x.p.Places[i].Initial)
	}
	x.forget(next, forget)
	s.add(next, -1, -1)
	for i := 0; i < len(s.list); i++ {
		if len(s.list) > x.most {
			return s, false
		}
		if copy(next, s.list[i]); x.over(next) {
			continue
		}
		for t := range x.p.Transitions {
			copy(next, s.list[i])
			if !x.fire(next, &x.p.Transitions[t]) {
				continue
			}
			s.fired[t] = true
			x.forget(next, forget)
			if _, known := s.ids[string(next)]; !known && !x.over(next) {
				x.accelerate(s, next, i, t)
			}
			if slices.ContainsFunc(next, func(c byte) bool { return c > mostCounted && c != omega }) {
				return s, false
			}
			s.next[i] = append(s.next[i], s.add(next, i, t))
		}
	}
	return s, true
}

func (x *exhaustive) forget(m []byte, forget bool) {
	for p := range m {
		if forget && x.sink[p] {
			m[p] = 0
		}
	}
}

// accelerate sets the places to omega that hold more than in an earlier marking of the run which holds nowhere more,
// unless something empties them on the way.
func (x *exhaustive) accelerate(s *markings, next []byte, from, via int) {
	emptied := slices.Clone(x.p.Transitions[via].Resets)
	tokens := tokensOf(next)
	for a := from; a >= 0; a = s.parent[a] {
		if before := s.list[a]; s.tokens[a] < tokens && grew(before, next, emptied) {
			for p := range next {
				if next[p] > before[p] {
					next[p] = omega
				}
			}
			tokens = tokensOf(next)
		}
		if s.via[a] >= 0 {
			emptied = append(emptied, x.p.Transitions[s.via[a]].Resets...)
		}
	}
}

func grew(before string, now []byte, emptied []int) bool {
	for p := range now {
		if now[p] < before[p] || now[p] > before[p] && slices.Contains(emptied, p) {
			return false
		}
	}
	return true
}

// decide says everything that is wrong with the net.
func (x *exhaustive) decide() decided {
	s, whole := x.walk(false)
	if !whole {
		return decided{tooLarge: true}
	}
	res := decided{states: len(s.list)}
	found := map[string]bool{}
	infinite := false // in a place that is no sink
	for _, m := range s.list {
		for p := range m {
			if name := x.p.Places[p].Name; m[p] == omega {
				found["unbounded "+name] = true
				infinite = infinite || !x.sink[p]
			}
			if x.strict && !x.sink[p] && m[p] > 1 {
				found["unsafe "+x.p.Places[p].Name] = true
			}
		}
		if x.end >= 0 && m[x.end] > 0 && tokensOf([]byte(m)) > 1 {
			found["improper-completion"] = true
		}
	}
	for t, yes := range s.fired {
		if at := &x.p.Transitions[t]; !yes && len(at.In)+len(at.Out)+len(at.Resets) > 0 { // without arcs it changes nothing
			found["dead-task "+x.p.Transitions[t].Name] = true
		}
	}
	if !infinite && x.end < 0 {
		if s, whole = x.walk(true); !whole {
			return decided{tooLarge: true}
		}
	}
	switch {
	case infinite && x.stops(s) || !infinite && !x.allComplete(s):
		found["no-option-to-complete"] = true
	case infinite:
		res.open = true
	}
	for f := range found {
		res.findings = append(res.findings, f)
	}
	slices.Sort(res.findings)
	return res
}

// stops reports whether nothing can happen in some marking in which the run is not over.
func (x *exhaustive) stops(s *markings) bool {
	for i, m := range s.list {
		if len(s.next[i]) == 0 && !x.over([]byte(m)) {
			return true
		}
	}
	return false
}

// allComplete reports whether a marking in which the run is over can be reached from every one.
func (x *exhaustive) allComplete(s *markings) bool {
	before, good := make([][]int, len(s.list)), make([]bool, len(s.list))
	var todo []int
	for i, m := range s.list {
		for _, j := range s.next[i] {
			before[j] = append(before[j], i)
		}
		if x.over([]byte(m)) {
			good[i] = true
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range before[i] {
			if !good[b] {
				good[b] = true
				todo = append(todo, b)
			}
		}
	}
	return !slices.Contains(good, false)
}
