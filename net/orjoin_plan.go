package net

import (
	"math/bits"
	"slices"
)

// plan executes the one future that the projection suggests. The projection has recorded for every cell which task
// marked it first, and by which token that task ran. Traced back from the nearest empty input, these are a few tasks.
// If they can be executed and that answers the question, no state was stored or compared. If they cannot, since a token
// would be needed twice or a region empties it, the question stays open.
//
// For example, an or-join waits for a loop, a hundred tasks away, that one token can leave. A search explores as many
// states as there are tasks on the way, and compares each with those before it; the plan executes as many moves.
func (s *search) plan() answer {
	s.planned, s.aims = cleared(s.planned, len(s.order)), sized(s.aims, len(s.order))
	s.runs = s.runs[:0]
	s.want(s.nearest())
	for w := len(s.planned) - 1; w >= 0; w-- {
		for left := s.planned[w]; left != 0; {
			k := bits.Len64(left) - 1
			if !s.schedule(int32(w<<6 + k)) {
				return unknown
			}
			left = s.planned[w] & (1<<k - 1) // a task needs only what was marked before it
		}
	}
	slices.Reverse(s.runs)
	s.emptying = s.emptying[:0]
	for i := range s.runs {
		if s.runs[i].harmful {
			s.emptying = append(s.emptying, int32(i))
		}
	}
	return s.follow()
}

// step is a task that the projection can run, and the cell that enables it: the task itself if it is busy.
type step struct{ task, by int32 }

// run is a planned task: its first move and its last one, which may be the same.
type run struct {
	first, last int32
	harmful     bool // it empties something
	abandoned   bool
}

// nearest returns the empty input that the projection marked first.
func (s *search) nearest() int32 {
	nearest := int32(s.toward)
	for i := range s.j.inputs {
		if s.goal[i] && s.markable.Has(i) && s.source[i] < s.source[nearest] {
			nearest = int32(i)
		}
	}
	return nearest
}

// want plans the task that marks a cell.
func (s *search) want(cell int32) {
	if k := s.source[cell]; k >= 0 {
		s.planned.Add(int(k))
		s.aims[k] = cell
	}
}

// schedule adds the run of a planned task, and plans what it needs. It reports whether the task has such moves.
func (s *search) schedule(k int32) bool {
	t := s.order[k]
	r := run{first: -1, last: -1, harmful: s.j.harmful.Has(int(t.task))}
	busy := int(t.by) >= len(s.j.places)
	from, to := s.j.first[t.task], s.j.first[t.task+1]
	s.work += int(to - from)
	for i := from; i < to; i++ {
		m := &s.j.moves[i]
		begins := m.phase != ends && slices.Contains(m.takes, t.by)
		finishes := m.phase != starts && slices.Contains(m.puts, s.aims[k])
		switch {
		case begins && m.phase == starts:
			r.first = i
		case begins && finishes, finishes && busy && m.phase == ends:
			r.first, r.last = i, i
		case finishes && m.phase == ends && !s.j.fused[t.task]:
			r.last = i
		}
	}
	if r.first < 0 || r.last < 0 {
		return false
	}
	for _, c := range s.j.moves[r.first].takes {
		s.want(c)
	}
	s.runs = append(s.runs, r)
	return true
}

// follow executes the plan.
func (s *search) follow() answer {
	s.full, s.allowed = false, s.work+planBudget
	s.next = sized(s.next, len(s.now))
	copy(s.next, s.now)
	for at := 0; ; at++ {
		if at = s.pick(at); at < 0 {
			return unknown
		}
		r := &s.runs[at]
		r.abandoned = true
		arrived := s.make(&s.j.moves[r.first], s.next)
		if r.last != r.first {
			arrived = s.make(&s.j.moves[r.last], s.next)
		}
		if arrived && !s.full {
			return yes
		}
	}
}

// pick returns the next run; -1 if none is possible, or the plan costs too much. A run that empties something is
// executed as soon as there is nothing to empty, or else when no other run is left. The others are executed in the
// order in which they were found.
func (s *search) pick(from int) int {
	desperate := -1
	for _, i := range s.emptying {
		if s.ready(i) {
			if s.harmless(&s.j.moves[s.runs[i].last]) {
				return int(i)
			}
			desperate = int(i)
		}
	}
	for range s.runs {
		if from >= len(s.runs) {
			from = 0
		}
		if !s.runs[from].harmful && s.ready(int32(from)) {
			return from
		}
		from++
	}
	return desperate
}

// ready reports whether a run is possible.
func (s *search) ready(i int32) bool {
	s.work++
	r := &s.runs[i]
	return !r.abandoned && s.work <= s.allowed && s.enabled(&s.j.moves[r.first], s.next)
}

// harmless reports whether there is nothing for a move to empty.
func (s *search) harmless(m *move) bool {
	s.work += len(m.resets) >> 3
	for _, c := range m.resets {
		if s.next[c] > 0 {
			return false
		}
	}
	for i := range m.sheds {
		if !m.sheds[i].loses(s.next) {
			continue
		}
		for _, p := range m.sheds[i].private {
			if s.next[p] > 0 {
				return false
			}
		}
	}
	return true
}
