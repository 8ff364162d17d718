package net

import "math/bits"

// Bits is a set of small integers: task or condition numbers. The zero value is the empty set.
type Bits []uint64

// NewBits returns an empty set with room for the numbers below n.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }

// Add puts i into the set, which must have room for it.
func (b Bits) Add(i int) { b[i>>6] |= 1 << (i & 63) }

// Remove takes i out of the set.
func (b Bits) Remove(i int) {
	if i>>6 < len(b) {
		b[i>>6] &^= 1 << (i & 63)
	}
}

// Empty reports whether the set has no member.
func (b Bits) Empty() bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

// Intersects reports whether the two sets share a member.
func (b Bits) Intersects(o Bits) bool {
	for i := range min(len(b), len(o)) {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// union adds the members of a set with no more room.
func (b Bits) union(o Bits) {
	for i, w := range o {
		b[i] |= w
	}
}

// Clone returns a copy that shares nothing with b.
func (b Bits) Clone() Bits { return append(Bits(nil), b...) }

// Len counts the members.
func (b Bits) Len() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Each calls f with every member, in rising order.
func (b Bits) Each(f func(i int)) {
	for w, word := range b {
		for word != 0 {
			f(w<<6 + bits.TrailingZeros64(word))
			word &= word - 1
		}
	}
}
