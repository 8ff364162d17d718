package net

import (
	"bytes"
	"encoding/binary"
)

// stateSpace is a set of states with the way to each: an arena of fixed-width states, a hash table of their numbers, and for
// every state the one that it was first reached from. Searching breadth first makes that way a shortest one.
type stateSpace struct {
	width  int // bytes a state, a multiple of eight
	states []byte
	parent []int32
	via    []int32 // the move from the parent
	table  []int32 // state number + 1; 0 is free
	mask   uint32
}

func newSpace(places int) *stateSpace {
	s := &stateSpace{width: max(8, (places+7)&^7)}
	s.states = make([]byte, 0, 16*s.width)
	s.table = make([]int32, 64)
	s.mask = uint32(len(s.table) - 1)
	return s
}

func (s *stateSpace) len() int { return len(s.parent) }

func (s *stateSpace) at(i int) []byte { return s.states[i*s.width : (i+1)*s.width : (i+1)*s.width] }

// scratch returns room for a state behind the last one, holding a copy of state i. [stateSpace.add] keeps it there if it is new.
func (s *stateSpace) scratch(i int) []byte {
	n := len(s.states)
	if cap(s.states) < n+s.width {
		grown := make([]byte, n, 2*n+16*s.width)
		copy(grown, s.states)
		s.states = grown
	}
	next := s.states[n : n+s.width : n+s.width]
	copy(next, s.states[i*s.width:(i+1)*s.width])
	return next
}

// add keeps the scratch state unless it is known, and returns its number.
func (s *stateSpace) add(state []byte, parent, via int32) (id int32, fresh bool) {
	slot := uint32(hashState(state)) & s.mask
	for s.table[slot] != 0 {
		id = s.table[slot] - 1
		if bytes.Equal(s.at(int(id)), state) {
			return id, false
		}
		slot = (slot + 1) & s.mask
	}
	id = int32(s.len())
	s.states = s.states[:len(s.states)+s.width]
	s.parent = append(s.parent, parent)
	s.via = append(s.via, via)
	s.table[slot] = id + 1
	if 4*s.len() > 3*len(s.table) {
		s.grow()
	}
	return id, true
}

// has reports whether the scratch state is known.
func (s *stateSpace) has(state []byte) bool {
	slot := uint32(hashState(state)) & s.mask
	for ; s.table[slot] != 0; slot = (slot + 1) & s.mask {
		if bytes.Equal(s.at(int(s.table[slot]-1)), state) {
			return true
		}
	}
	return false
}

func (s *stateSpace) grow() {
	s.table = make([]int32, 4*len(s.table))
	s.mask = uint32(len(s.table) - 1)
	for i := range s.len() {
		slot := uint32(hashState(s.at(i))) & s.mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & s.mask
		}
		s.table[slot] = int32(i) + 1
	}
}

// path lists the states from the first one to state i, i included.
func (s *stateSpace) path(i int32) []int32 {
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

// hashState mixes eight places at a time.
func hashState(state []byte) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for len(state) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(state)) * 0xff51afd7ed558ccd
		h ^= h >> 32
		state = state[8:]
	}
	return h
}

// isZero reports whether no place holds a token.
func isZero(state []byte) bool {
	for len(state) >= 8 {
		if binary.LittleEndian.Uint64(state) != 0 {
			return false
		}
		state = state[8:]
	}
	return true
}

// grew reports whether now holds everything that was held before and more, and appends the places with more to dst.
func grew(dst []int32, before, now []byte) ([]int32, bool) {
	dst = dst[:0]
	for p, b := range before {
		if now[p] < b {
			return dst, false
		}
		if now[p] > b {
			dst = append(dst, int32(p))
		}
	}
	return dst, len(dst) > 0
}
