package state

import (
	"bytes"
	"iter"
	"slices"
	"sort"

	"github.com/tasq-dev/tasq/workitem"
)

// List is an ordered collection that a case holds: its work items, or its live jobs, in the order of their ids, which
// is that of their creation. The zero value is empty.
//
// A copy of a List is a snapshot, and costs nothing: what is changed later is copied first. It is kept in parts of at
// most [partSize] elements, and a command copies the parts that it changes, with the list of the parts. So in a case of
// 100,000 items the completion of one copies two hundred pointers and not 100,000.
//
//	snapshot   parts ─▶ [p0][p1][p2]         p0, p1 and p2 are shared
//	                     │   │   │
//	change     parts'─▶ [p0][p1'][p2]        a list of its own, and a copy of the part that holds the element
type List[T listed] struct {
	parts []part[T] // none is empty
	size  int
	mine  bool // no other copy has these parts
}

type part[T listed] struct {
	of   []T
	mine bool // no other copy has this part
}

// partSize balances the two things that a change copies: a part, and the list of the parts.
const partSize = 256

// listed is what a [List] may hold.
type listed interface {
	*workitem.Item | *Job | *jobOfItem | *workitem.Step | *Message
}

// sortKey is what a list is ordered by: the id, for jobs by item that of the item first.
type sortKey [2][16]byte

func (k sortKey) compare(other sortKey) int {
	if d := bytes.Compare(k[0][:], other[0][:]); d != 0 {
		return d
	}
	return bytes.Compare(k[1][:], other[1][:])
}

func keyOf[T listed](v T) sortKey {
	switch v := any(v).(type) {
	case *workitem.Item:
		return sortKey{v.ID}
	case *Job:
		return sortKey{v.ID}
	case *workitem.Step:
		return sortKey{v.ID}
	case *Message:
		return sortKey{v.ID}
	case *jobOfItem:
		return sortKey{v.Item, v.ID}
	}
	return sortKey{}
}

// Len counts the elements.
func (l List[T]) Len() int { return l.size }

// All lists the elements, oldest first.
func (l List[T]) All() iter.Seq[T] { return l.from(sortKey{}) }

// Slice returns the elements in a slice of their own, oldest first.
func (l List[T]) Slice() []T { return slices.AppendSeq(make([]T, 0, l.size), l.All()) }

// from lists the elements whose key is not below k.
func (l List[T]) from(k sortKey) iter.Seq[T] {
	return func(yield func(T) bool) {
		p, i, _ := l.find(k)
		for ; p < len(l.parts); p, i = p+1, 0 {
			for _, v := range l.parts[p].of[i:] {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// get finds the element with the key; nil if it is not there.
func (l List[T]) get(k sortKey) T {
	if p, i, ok := l.find(k); ok {
		return l.parts[p].of[i]
	}
	return nil
}

// find returns where the key is, or where it belongs: a part that could hold it, and the position there. That is the last
// part whose first key is not above k; a key below all belongs into the first.
func (l List[T]) find(k sortKey) (p, i int, ok bool) {
	switch len(l.parts) {
	case 0:
		return 0, 0, false
	case 1:
	default:
		p = max(0, sort.Search(len(l.parts), func(p int) bool { return keyOf(l.parts[p].of[0]).compare(k) > 0 })-1)
	}
	i, ok = slices.BinarySearchFunc(l.parts[p].of, k, func(v T, k sortKey) int { return keyOf(v).compare(k) })
	return p, i, ok
}

// snapshot returns a copy for the next command, which shares everything.
func (l List[T]) snapshot() List[T] {
	l.mine = false
	return l
}

// own makes the part one that only this list has; the list of the parts, too.
func (l *List[T]) own(p int) *part[T] {
	if !l.mine && l.size < len(small[T]{}.of) && len(l.parts) <= 1 {
		l.parts, l.mine = l.small(), true
		return &l.parts[0]
	}
	if !l.mine {
		parts := make([]part[T], len(l.parts), len(l.parts)+1)
		for i := range parts {
			parts[i].of = l.parts[i].of
		}
		l.parts, l.mine = parts, true
	}
	if p == len(l.parts) {
		l.parts = append(l.parts, part[T]{mine: true})
	}
	if own := &l.parts[p]; !own.mine {
		own.of, own.mine = append(make([]T, 0, len(own.of)+1), own.of...), true
	}
	return &l.parts[p]
}

// small is the memory of a list that has few elements, as most have.
type small[T listed] struct {
	parts [1]part[T]
	of    [4]T
}

func (l *List[T]) small() []part[T] {
	s := new(small[T])
	s.parts[0].of, s.parts[0].mine = s.of[:0], true
	if len(l.parts) > 0 {
		s.parts[0].of = append(s.parts[0].of, l.parts[0].of...)
	}
	return s.parts[:]
}

// put adds an element, or replaces the one with its key.
func (l *List[T]) put(v T) {
	p, i, found := l.find(keyOf(v))
	if found {
		l.own(p).of[i] = v
		return
	}
	l.size++
	if p < len(l.parts) && len(l.parts[p].of) >= partSize {
		p, i = l.split(p, i)
	}
	own := l.own(p)
	own.of = slices.Insert(own.of, i, v)
}

// split makes room for an element at position i of a full part: a new part behind it, or two halves of it. Ids rise with
// time, so nearly all elements are added at the end: there the full part stays full, and a list of n elements has n/256 parts
// and not twice as many half-empty ones.
func (l *List[T]) split(p, i int) (int, int) {
	if i == partSize && p == len(l.parts)-1 {
		return p + 1, 0
	}
	const half = partSize / 2
	first := l.own(p)
	second := part[T]{of: slices.Clone(first.of[half:]), mine: true}
	clear(first.of[half:])
	first.of = first.of[:half]
	l.parts = slices.Insert(l.parts, p+1, second)
	if i > half {
		return p + 1, i - half
	}
	return p, i
}

// remove takes the element with the key out, if it is there. A part that becomes empty goes; half-empty neighbors are not
// joined, as a list that shrinks (live jobs, waiting steps) is mostly on its way to empty.
func (l *List[T]) remove(k sortKey) {
	p, i, found := l.find(k)
	if !found {
		return
	}
	if l.size == 1 {
		*l = List[T]{}
		return
	}
	l.size--
	own := l.own(p)
	if own.of = slices.Delete(own.of, i, i+1); len(own.of) == 0 {
		l.parts = slices.Delete(l.parts, p, p+1)
	}
}
