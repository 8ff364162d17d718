package statespace

import "sync"

// memory is what a search needs by the number of its states. Nets are often verified by the hundred, and most searches
// are short, so the next search uses it again, see [Search.Release].
type memory struct {
	states                   []uint64
	tables                   [2][]uint64 // the hash table, and the one before it grew
	turn                     int         // which one is used
	parent, via, ends, edges []int32
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// maxKept bounds the words of states that are kept for the next search.
const maxKept = 1 << 19

// table returns an empty hash table. The one that was returned before it stays as it is.
func (m *memory) table(size int) []uint64 {
	m.turn ^= 1
	t := m.tables[m.turn]
	if cap(t) < size {
		t = make([]uint64, size)
	} else {
		t = t[:size]
		clear(t)
	}
	m.tables[m.turn] = t
	return t
}

// release gives the memory of a space back.
func (s *Space) release() {
	m := s.memory
	if s.memory = nil; cap(s.states) > maxKept {
		return
	}
	m.states, m.parent, m.via = s.states, s.parent, s.via
	memories.Put(m)
}

// takeEdges gives the search the lists for its edges.
func (x *Search) takeEdges() {
	m := x.States.memory
	x.ends, x.edges, m.ends, m.edges = m.ends[:0], m.edges[:0], nil, nil
}

// Release gives the memory of the search back, for the next one. Its states are not available afterwards.
func (x *Search) Release() {
	x.States.memory.ends, x.States.memory.edges = x.ends, x.edges
	x.States.release()
	x.States, x.ends, x.edges = nil, nil, nil
}
