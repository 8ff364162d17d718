package statespace

import (
	"math"
	"math/bits"
	"slices"
)

// Space is a set of states with a path to each: an array of packed states, a hash table of their numbers, and for every
// state the one from which it was first reached. In a breadth-first search that path is a shortest one.
//
// A place takes one bit if it has at most one token in all states, and eight otherwise.
type Space struct {
	places int
	field  uint // bits a place: 1 or 8
	log    uint // the same as a power of two: 0 or 3
	width  int  // words a state
	most   int  // the number of states that there is memory for; there may be a few more
	states []uint64
	parent []int32
	via    []int32  // the move from the parent
	table  []uint64 // hash of the state, and behind it in the low half its number + 1; 0 is free
	mask   uint32
	memory *memory
}

func newSpace(places int, narrow bool) *Space {
	m := memories.Get().(*memory)
	s := &Space{places: places, field: 8, log: 3, most: math.MaxInt32, memory: m}
	if narrow {
		s.field, s.log = 1, 0
	}
	s.width = max(1, (places*int(s.field)+63)/64)
	s.states, s.parent, s.via = m.states[:0], m.parent[:0], m.via[:0]
	s.table = m.table(64)
	s.mask = uint32(len(s.table) - 1)
	return s
}

// widen gives eight bits to a place of states that have one.
func (s *Space) widen() {
	wide := newSpace(s.places, false)
	wide.most = s.most
	wide.states = slices.Grow(wide.states, (s.Len()+16)*wide.width)
	for i := range int32(s.Len()) {
		state := wide.room()
		clear(state)
		for w, word := range s.packed(i) {
			for ; word != 0; word &= word - 1 {
				wide.put(state, int32(w<<6+bits.TrailingZeros64(word)), 1)
			}
		}
		wide.add(state, s.parent[i], s.via[i])
	}
	s.memory.ends, s.memory.edges = wide.memory.ends, wide.memory.edges // the search has its own already
	s.release()
	*s = *wide
}

// Len returns the number of states.
func (s *Space) Len() int { return len(s.parent) }

func (s *Space) packed(i int32) []uint64 { return s.states[int(i)*s.width : (int(i)+1)*s.width] }

// get returns the count of a place in state i.
func (s *Space) get(i int32, place int32) uint8 {
	at := uint(place) << s.log
	return uint8(s.states[int(i)*s.width+int(at>>6)] >> (at & 63) & (1<<s.field - 1))
}

// put sets the count of a place in a packed state.
func (s *Space) put(state []uint64, place int32, count uint8) {
	at := uint(place) << s.log
	word := &state[at>>6]
	*word = *word&^((1<<s.field-1)<<(at&63)) | uint64(count)<<(at&63)
}

// Load unpacks state i, and lists its marked places, in rising order, in dst.
func (s *Space) Load(dst []int32, i int32, counts []uint8) []int32 {
	clear(counts)
	dst = dst[:0]
	if s.log == 0 {
		return s.loadSafe(dst, i, counts)
	}
	for w, word := range s.packed(i) {
		for word != 0 {
			at := uint(bits.TrailingZeros64(word)) >> s.log << s.log
			p := int32((uint(w)<<6 + at) >> s.log)
			counts[p] = uint8(word >> at & (1<<s.field - 1))
			word &^= (1<<s.field - 1) << at
			dst = append(dst, p)
		}
	}
	return dst
}

// loadSafe is load where a place is a bit.
func (s *Space) loadSafe(dst []int32, i int32, counts []uint8) []int32 {
	for w, word := range s.packed(i) {
		for ; word != 0; word &= word - 1 {
			p := int32(w<<6 + bits.TrailingZeros64(word))
			counts[p] = 1
			dst = append(dst, p)
		}
	}
	return dst
}

// scratch returns a copy of state i in the memory after the last state. [Space.add] keeps it there if it is new.
func (s *Space) scratch(i int32) []uint64 {
	next := s.room()
	for w, word := range s.packed(i) {
		next[w] = word
	}
	return next
}

func (s *Space) room() []uint64 {
	n := len(s.states)
	if cap(s.states) < n+s.width {
		grown := make([]uint64, n, max(n+s.width, min(2*n+16*s.width, s.most*s.width)))
		copy(grown, s.states)
		s.states = grown
	}
	return s.states[n : n+s.width]
}

// add keeps the scratch state unless it is known, and returns its number.
func (s *Space) add(state []uint64, parent, via int32) (id int32, fresh bool) {
	return s.keep(state, hashState(state), parent, via)
}

// keep is add for a state whose hash is known.
func (s *Space) keep(state []uint64, hash uint32, parent, via int32) (id int32, fresh bool) {
	slot, found := s.find(state, hash)
	if found {
		return int32(uint32(s.table[slot])) - 1, false
	}
	id = int32(s.Len())
	s.states = s.states[:len(s.states)+s.width]
	s.parent = push(s.parent, parent)
	s.via = push(s.via, via)
	s.table[slot] = uint64(hash)<<32 | uint64(id+1)
	if 2*s.Len() > len(s.table) {
		s.grow()
	}
	return id, true
}

// push appends to a list, and doubles its capacity when it is full: it will be long.
func push(list []int32, v int32) []int32 {
	if len(list) == cap(list) {
		list = slices.Grow(list, len(list)+16)
	}
	return append(list, v)
}

// find returns the slot of a state in the table, or a free slot for it. Most other states on the way have another hash,
// and need not be compared.
func (s *Space) find(state []uint64, hash uint32) (slot uint32, found bool) {
	for slot = hash & s.mask; ; slot = (slot + 1) & s.mask {
		switch e := s.table[slot]; {
		case e == 0:
			return slot, false
		case uint32(e>>32) == hash && slices.Equal(s.packed(int32(uint32(e))-1), state):
			return slot, true
		}
	}
}

func (s *Space) grow() {
	old := s.table
	s.table = s.memory.table(4 * len(old))
	s.mask = uint32(len(s.table) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		slot := uint32(e>>32) & s.mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & s.mask
		}
		s.table[slot] = e
	}
}

// Path returns the states from the first one to state i, inclusive.
func (s *Space) Path(i int32) []int32 {
	n := 0
	for j := i; j >= 0; j = s.parent[j] {
		n++
	}
	path := make([]int32, n)
	for j := i; j >= 0; j = s.parent[j] {
		n--
		path[n] = j
	}
	return path
}

const hashSeed = uint64(0x9e3779b97f4a7c15)

func hashWord(h, word uint64) uint64 {
	h = (h ^ word) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

func hashEnd(h uint64) uint32 { return uint32(h ^ h>>29) }

func hashState(state []uint64) uint32 {
	h := hashSeed
	for _, w := range state {
		h = hashWord(h, w)
	}
	return hashEnd(h)
}

// grew reports whether a packed state has all tokens of state i and more, and returns the places with more in dst. Most
// words of two states on one path are equal.
func (s *Space) grew(dst []int32, i int32, now []uint64) ([]int32, bool) {
	dst = dst[:0]
	one := uint64(1)<<s.field - 1
	for w, before := range s.packed(i) {
		for differs := now[w] ^ before; differs != 0; {
			at := uint(bits.TrailingZeros64(differs)) >> s.log << s.log
			if now[w]>>at&one < before>>at&one {
				return dst, false
			}
			dst = append(dst, int32((uint(w)<<6+at)>>s.log))
			differs &^= one << at
		}
	}
	return dst, len(dst) > 0
}
