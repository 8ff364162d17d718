package statespace

import (
	"math/bits"

	"github.com/tasq-dev/tasq/net"
)

// Outlook bounds what a search of a plain system can find, by its structure alone: what it excludes does not happen in
// any run, and what it allows may happen or not. So a search that has found all that is allowed need not continue.
//
// It is based on the concurrency relation of Kovalyov and Esparza: the places that may be marked together. Two places
// are related if both are marked at first. A move may fire if all its inputs are related to each other. Then its outputs
// are related to each other, and each of them is related to every place that is related to all inputs of the move, for a
// token there may remain. A place that is related to itself may hold two tokens.
//
//	i -> S -> a -> A -> c        S takes from i, and puts into a and b
//	     '-> b -> B -> c         a and b are related, and so are c and a (A fired, B did not), c and b, c and c:
//	                             only c may hold two tokens
//
// Every reachable marking conforms to that: by induction over a run, any two tokens of a marking lie in related places.
// That the first token in the end ends the run is ignored.
type Outlook struct {
	Marked  net.Bits // places that may be marked
	Second  net.Bits // places that may hold two tokens
	Growing net.Bits // places that may get any number of tokens
	Fires   []bool   // by move: it may fire
}

// maxRelated bounds the number of places: the relation has a bit for every two.
const maxRelated = 2048

// NewOutlook returns nil for a system that is not plain (see [System.plain]), or too large.
func NewOutlook(sys *System) *Outlook {
	if sys.Places > maxRelated || !sys.plain() {
		return nil
	}
	r := newRelation(sys)
	r.run()
	o := &Outlook{Marked: r.marked, Second: net.NewBits(sys.Places), Growing: net.NewBits(sys.Places), Fires: r.fires}
	grows := sys.growing(r.fires)
	for p := range sys.Places {
		if r.row(int32(p)).Has(p) {
			o.Second.Add(p)
		}
	}
	for k := range sys.Moves {
		for _, a := range sys.Moves[k].Out {
			if grows[k] && o.Second.Has(int(a.Place)) {
				o.Growing.Add(int(a.Place))
			}
		}
	}
	return o
}

// plain reports whether every move takes tokens, and does nothing but take and put.
func (sys *System) plain() bool {
	for i := range sys.Moves {
		m := &sys.Moves[i]
		if m.OrJoin >= 0 || m.Urgent || len(m.In) == 0 || len(m.Resets)+len(m.MemberResets)+len(m.Inhibitors) > 0 {
			return false
		}
	}
	return true
}

// relation is the relation of places that may be marked together.
type relation struct {
	sys     *System
	from    [][]int32 // by place: the moves that take from it
	rows    []uint64  // by place: the related places
	width   int       // words a row
	marked  net.Bits
	fires   []bool
	queued  []bool // by move
	queue   []int32
	remains []uint64 // scratch: the places in which a token may remain when a move fires
}

func newRelation(sys *System) *relation {
	width := (sys.Places + 63) / 64
	return &relation{
		sys: sys, from: sys.takers(), rows: make([]uint64, width*sys.Places), width: width, marked: net.NewBits(sys.Places),
		fires: make([]bool, len(sys.Moves)), queued: make([]bool, len(sys.Moves)), remains: make([]uint64, width),
	}
}

func (r *relation) row(p int32) net.Bits { return r.rows[int(p)*r.width : (int(p)+1)*r.width] }

// run computes the relation.
func (r *relation) run() {
	var first []Arc
	for p, c := range r.sys.Start {
		if c > 0 {
			first = append(first, Arc{Place: int32(p), Weight: c})
		}
	}
	r.put(first)
	for len(r.queue) > 0 {
		k := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		r.queued[k] = false
		if m := &r.sys.Moves[k]; r.mayFire(m) {
			r.fires[k] = true
			r.remain(m)
			r.put(m.Out)
		}
	}
}

// mayFire reports whether the inputs of a move are marked, and related to each other.
func (r *relation) mayFire(m *Move) bool {
	for i, a := range m.In {
		row := r.row(a.Place)
		if !r.marked.Has(int(a.Place)) || a.Weight > 1 && !row.Has(int(a.Place)) {
			return false
		}
		for _, b := range m.In[:i] {
			if !row.Has(int(b.Place)) {
				return false
			}
		}
	}
	return true
}

// remain computes the places that may hold a token besides those that the move takes.
func (r *relation) remain(m *Move) {
	copy(r.remains, r.marked)
	for _, a := range m.In {
		for w, word := range r.row(a.Place) {
			r.remains[w] &= word
		}
	}
}

// put relates places that get tokens to each other, and to those in which a token may remain.
func (r *relation) put(arcs []Arc) {
	for i, a := range arcs {
		if !r.marked.Has(int(a.Place)) {
			r.marked.Add(int(a.Place))
			r.pushAll(r.from[a.Place])
		}
		row := r.row(a.Place)
		for w, word := range r.remains {
			for fresh := word &^ row[w]; fresh != 0; fresh &= fresh - 1 {
				r.relate(a.Place, int32(w<<6+bits.TrailingZeros64(fresh)))
			}
		}
		if a.Weight > 1 {
			r.relate(a.Place, a.Place)
		}
		for _, b := range arcs[:i] {
			r.relate(a.Place, b.Place)
		}
	}
}

// relate relates two places, and queues the moves for which that can matter.
func (r *relation) relate(p, q int32) {
	if row := r.row(p); !row.Has(int(q)) {
		row.Add(int(q))
		r.row(q).Add(int(p))
		r.pushAll(r.from[p])
		r.pushAll(r.from[q])
	}
}

func (r *relation) pushAll(moves []int32) {
	for _, k := range moves {
		r.push(k)
	}
}

func (r *relation) push(k int32) {
	if !r.queued[k] {
		r.queued[k] = true
		r.queue = append(r.queue, k)
	}
}
