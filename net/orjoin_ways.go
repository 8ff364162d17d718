package net

import "sync"

// way has the cells from which an input of the join can be reached, see [slice]. It is computed when the input is first
// examined.
type way struct {
	known sync.Once
	walk  Bits // by a single token, without emptying the other inputs
	reach Bits // by any path of flows
}

// maxWays bounds the inputs of a join times the cells of its slice. Above it, as for a join of ten thousand branches,
// the ways are not stored but computed each time, for all empty inputs at once. That also costs less than looking
// through all of them.
const maxWays = 1 << 18

// look executes the steps walk and reach; mostly, these are a few bit operations.
func (s *search) look(n *Net) answer {
	if s.j.ways == nil {
		return s.lookAround(n)
	}
	a := no
	for i := range s.j.ways {
		if !s.goal[i] {
			continue
		}
		w := &s.j.ways[i]
		w.known.Do(func() {
			w.walk, w.reach = NewBits(s.j.cells()), NewBits(s.j.cells())
			s.wayTo(n, w.walk, true, int32(i))
			s.wayTo(n, w.reach, false, int32(i))
		})
		if s.free.Intersects(w.walk) {
			return yes
		}
		if a == no && s.marked.Intersects(w.reach) {
			a = unknown
		}
	}
	return a
}

// lookAround is look without stored ways.
func (s *search) lookAround(n *Net) answer {
	s.aims = s.aims[:0]
	for i := range s.j.inputs {
		if s.goal[i] {
			s.aims = append(s.aims, int32(i))
		}
	}
	s.markable = cleared(s.markable, s.j.cells())
	s.wayTo(n, s.markable, true, s.aims...)
	if s.free.Intersects(s.markable) {
		return yes
	}
	clear(s.markable)
	s.wayTo(n, s.markable, false, s.aims...)
	if s.marked.Intersects(s.markable) {
		return unknown
	}
	return no
}

// wayTo returns the cells from which a token can reach one of the given inputs. With lone set, it follows only tasks
// that need no other token and whose regions do not empty the join's inputs. Such a path may pass a busy task: then
// that task is the nearer source.
func (s *search) wayTo(n *Net, found Bits, lone bool, inputs ...int32) {
	j := s.j
	s.emptied = cleared(s.emptied, len(j.places)) // the places that were queued, and are not inputs
	s.queue = append(s.queue[:0], inputs...)
	for at := 0; at < len(s.queue); at++ {
		for _, t := range n.conditions[j.places[s.queue[at]]].producers {
			cell := j.cell[t]
			if cell < 0 || found.Has(int(cell)) || lone && j.harms(n, t) {
				continue
			}
			found.Add(int(cell))
			if lone && !takesOne(n, t) {
				continue
			}
			for _, c := range n.tasks[t].inputs {
				from := j.spot[c]
				found.Add(int(from))
				if !s.emptied.Has(int(from)) {
					s.emptied.Add(int(from))
					s.queue = append(s.queue, from)
				}
			}
		}
	}
}

// harms reports whether the region of a task empties an input of the join.
func (s *slice) harms(n *Net, t TaskID) bool {
	for _, c := range n.tasks[t].region {
		if p := s.spot[c]; p >= 0 && int(p) < s.inputs {
			return true
		}
	}
	return false
}
