package state

import (
	"bytes"
	"iter"
	"slices"
	"sort"

	"github.com/tasq-dev/tasq/workitem"
)

// List is an ordered collection of a case: its work items, or its live jobs, ordered by id, which is the order of their
// creation. The zero value is empty.
//
// It is a persistent data structure: a copy of a List is a snapshot that costs nothing, and shares memory until one of
// them changes. The elements are in parts of at most [partSize], and a change copies only its part and the list of
// parts. So in a case of 100,000 items the completion of one copies the list of 391 parts and one of them, and not
// 100,000 elements.
//
//	snapshot   parts ─▶ [p0][p1][p2]         p0, p1 and p2 are shared
//	                     │   │   │
//	change     parts'─▶ [p0][p1'][p2]        a list of its own, and a copy of the part that holds the element
type List[T listed] struct {
	parts []part[T] // none is empty
	size  int
	mine  bool // no snapshot shares the list of parts
}

type part[T listed] struct {
	of   []T
	mine bool // no snapshot shares this part
}

// partSize balances the costs of a change, which copies one part and the list of parts.
const partSize = 256

// listed is an element of a [List].
type listed interface {
	*workitem.Item | *Job | *jobOfItem | *workitem.Step | *Message
}

// sortKey is the key that orders a list: the id, preceded by that of the item for jobs by item.
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

// Len returns the number of elements.
func (l List[T]) Len() int { return l.size }

// All yields the elements, oldest first.
func (l List[T]) All() iter.Seq[T] { return l.from(sortKey{}) }

// Slice returns the elements in a new slice, oldest first.
func (l List[T]) Slice() []T { return slices.AppendSeq(make([]T, 0, l.size), l.All()) }

// from yields the elements whose key is not less than k.
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

// get returns the element with a key; nil if there is none.
func (l List[T]) get(k sortKey) T {
	if p, i, ok := l.find(k); ok {
		return l.parts[p].of[i]
	}
	return nil
}

// find returns the part and the position of a key, or where to insert it: in the last part whose first key is not
// greater, or in the first part.
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

// own copies a part that is shared with a snapshot, and the list of parts.
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

// small is the memory of a list of few elements, as most are.
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

// split makes room for an element at position i of a full part: a new part after it, or two halves. Ids increase with
// time, so nearly all elements are added at the end. There the full part stays full: a list of n elements has
// n/partSize parts, and not twice as many half-empty ones.
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

// remove removes the element with a key, if it exists. Empty parts are dropped. Half-empty neighbours are not joined,
// since a list that shrinks (live jobs, waiting steps) will mostly be empty soon.
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
