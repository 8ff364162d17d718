package limit

import (
	"encoding/binary"
	"errors"
	"slices"
)

// errState says that bytes are no state. Where they come from knows more, and says so.
var errState = errors.New("invalid encoding of a limit's state")

const stateVersion = 1

// AppendBinary appends the binary form of the state: a few bytes, and for a sliding window two to ten for each entry of
// its log, of which there are at most a hundred. The error is always nil.
func (s State) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, stateVersion)
	b = binary.AppendVarint(b, s.at)
	b = binary.AppendVarint(b, s.used)
	b = binary.AppendVarint(b, s.back)
	before := s.at
	for i := range s.log {
		e := s.log[len(s.log)-1-i]
		b = binary.AppendVarint(b, before-e.at)
		b = binary.AppendVarint(b, e.n)
		before = e.at
	}
	return b, nil
}

// MarshalBinary returns what AppendBinary appends.
func (s State) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary decodes what MarshalBinary returned; an empty slice is the zero state. Invalid data is an error, and
// leaves the state unchanged.
func (s *State) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		*s = State{}
		return nil
	}
	if b[0] != stateVersion {
		return errState
	}
	r := reader{b: b[1:]}
	read := State{at: r.next(), used: r.next(), back: r.next()}
	before := read.at
	for len(r.b) > 0 && !r.bad {
		e := entry{at: before - r.next(), n: r.next()}
		before = e.at
		read.log = append(read.log, e)
	}
	if r.bad {
		return errState
	}
	slices.Reverse(read.log)
	*s = read
	return nil
}

// reader reads varints, and remembers that one was not there.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) next() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}
