package net

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// The budgets of the searches. A search that uses all of it takes some milliseconds, however large the net is, since
// the cost of copying and comparing long states is counted too.
const (
	forwardBudget  = 1000    // states
	backwardBudget = 1000    // minimal pasts
	planBudget     = 1 << 16 // words, for a plan
	workBudget     = 4 << 20 // words of eight cells, for either search
)

// A count of tokens in a search is a byte: many means any number, and one more than most gives up.
const (
	most = 126
	many = 127
)

// search is the memory of one decision.
type search struct {
	j        *orJoin
	marked   Bits   // cells with tokens
	free     Bits   // like marked, without inputs of the join that have a single token
	goal     []bool // by input: whether a token in it answers the question
	keep     []bool // by input: whether it must keep a token
	markable Bits   // cells that could be marked if tokens were never consumed
	active   Bits   // tasks of the slice that could run then
	need     []int32
	queue    []int32
	later    []step  // tasks with a region that could run
	order    []step  // the tasks that could run, in the order in which the projection found them
	source   []int32 // by markable cell: which of them marked it first, or -1 if it is marked now
	planned  Bits    // those that are planned to run
	aims     []int32 // by planned task: the cell that it has to mark
	runs     []run   // the plan
	emptying []int32 // its runs that empty something

	now        state // the initial state of the searches
	next       state // a new state
	begun      state // the state that is being expanded
	states     states
	trail      []int32 // the moves that lead to next from the state that is being expanded
	stack      []frame // the current path
	options    []int32 // moves still to be tried, of all states on the path
	far        []int32 // by move: its distance from the goal
	toward     int     // the input that the search tries to reach first
	accelerate bool    // whether counts may become many
	emptied    Bits    // cells that a loop empties
	pasts      states
	stamps     []int32 // by group, or by move: the state for which it was last examined
	full       bool    // a count overflowed
	work       int     // words copied and compared for this decision
	allowed    int     // the bound of work in this search
}

// state is a number for every cell, padded to whole words.
type state []byte

// states is a list of states of one size, each with the state it was made from and the moves between them.
type states struct {
	size   int
	bytes  []byte
	traits []uint64 // by state, see [state.trait]
	parent []int32
	moves  []int32
	from   []int32 // by state: where its moves begin
}

func (l *states) reset(size int) {
	*l = states{
		size: size, bytes: l.bytes[:0], traits: l.traits[:0], parent: l.parent[:0], moves: l.moves[:0], from: l.from[:0],
	}
}

func (l *states) len() int { return len(l.parent) }

func (l *states) state(i int32) state { return l.bytes[int(i)*l.size : (int(i)+1)*l.size] }

func (l *states) add(v state, parent int32, moves []int32) int32 {
	l.bytes = append(l.bytes, v...)
	l.traits = append(l.traits, v.trait())
	l.parent = append(l.parent, parent)
	l.from = append(l.from, int32(len(l.moves)))
	l.moves = append(l.moves, moves...)
	return int32(len(l.parent) - 1)
}

// trait has a bit for every 64th cell with tokens. A state can only cover another one if it has all bits of it, which
// decides most comparisons.
func (v state) trait() uint64 {
	const high = 0x8080808080808080
	bits := uint64(0)
	for i := 0; i+8 <= len(v); i += 8 {
		some := (binary.LittleEndian.Uint64(v[i:]) + ^uint64(high)) & high // no number has the highest bit of its byte
		bits |= some >> 7 << (i >> 3 & 7)
	}
	return bits
}

// between lists the moves from the parent of a state to it.
func (l *states) between(i int32) []int32 {
	if int(i)+1 < len(l.from) {
		return l.moves[l.from[i]:l.from[i+1]]
	}
	return l.moves[l.from[i]:]
}

// above reports whether every number of v is at least that of w. It compares eight numbers at a time: their highest
// bits are unused, and record the borrows of one subtraction.
func (s *search) above(v, w state) bool {
	const high = 0x8080808080808080
	for i := 0; i+8 <= len(v); i += 8 {
		a, b := binary.LittleEndian.Uint64(v[i:]), binary.LittleEndian.Uint64(w[i:])
		if ((a|high)-b)&high != high {
			s.work += i>>3 + 1
			return false
		}
	}
	s.work += len(v) >> 3
	return true
}

// covers reports whether every future of w is one of v too: v is above w, and equal to it in the sensitive cells.
func (s *search) covers(v, w state) bool {
	if !s.above(v, w) {
		return false
	}
	for i := 0; i+8 <= len(s.j.exact); i += 8 {
		differ := binary.LittleEndian.Uint64(v[i:]) ^ binary.LittleEndian.Uint64(w[i:])
		if differ&binary.LittleEndian.Uint64(s.j.exact[i:]) != 0 {
			return false
		}
	}
	return true
}

// exhausted reports whether a search with that many states has exhausted its budget.
func (s *search) exhausted(states, budget int) bool {
	s.work += len(s.now) >> 3
	return s.full || states > budget || s.work > s.allowed
}

// marked returns the cells with tokens.
func (v state) marked() iter.Seq[int32] { return v.over(nil) }

// over returns the cells with more tokens than another state, or than the empty one.
func (v state) over(w state) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := 0; i+8 <= len(v); i += 8 {
			word := binary.LittleEndian.Uint64(v[i:])
			if w != nil {
				word ^= binary.LittleEndian.Uint64(w[i:])
			}
			for word != 0 {
				c := bits.TrailingZeros64(word) / 8
				if !yield(int32(i + c)) {
					return
				}
				word &^= 0xff << (c * 8)
			}
		}
	}
}

// unstamp forgets which moves or groups were examined.
func (s *search) unstamp(size int) {
	s.stamps = sized(s.stamps, size)
	for i := range s.stamps {
		s.stamps[i] = -1
	}
}

// load sets the question.
func (s *search) load(j *orJoin, m Marking, busy Bits) {
	s.j, s.work = j, 0
	s.marked, s.free = cleared(s.marked, j.cells()), cleared(s.free, j.cells())
	s.goal, s.keep = s.goal[:0], s.keep[:0]
	for p, c := range j.places {
		input := p < j.inputs
		if m[c] > 0 {
			s.marked.Add(p)
			if !input || m[c] > 1 {
				s.free.Add(p)
			}
		}
		if input {
			s.goal, s.keep = append(s.goal, m[c] <= 0), append(s.keep, m[c] > 0)
		}
	}
	for w := range min(len(busy), len(j.busy)) {
		for word := busy[w] & j.busy[w]; word != 0; word &= word - 1 {
			cell := int(j.cell[w<<6+bits.TrailingZeros64(word)])
			s.marked.Add(cell)
			s.free.Add(cell)
		}
	}
}

// begin makes the initial state of the searches.
func (s *search) begin(m Marking) {
	s.now = sized(s.now, (s.j.cells()+7)&^7)
	clear(s.now)
	for p, c := range s.j.places {
		s.now[p] = byte(min(max(m[c], 0), many))
	}
	for i := range s.j.tasks {
		if c := len(s.j.places) + i; s.marked.Has(c) {
			s.now[c] = 1
		}
	}
}

func cleared(b Bits, n int) Bits {
	words := (n + 63) / 64
	if cap(b) < words {
		return NewBits(n)
	}
	b = b[:words]
	clear(b)
	return b
}

func sized[S ~[]E, E any](list S, n int) S {
	if cap(list) < n {
		return make(S, n)
	}
	return list[:n]
}

// project computes what could be marked if tokens were never consumed and no region emptied anything, and so which
// tasks a search has to consider. Tasks with a region run only when nothing else is left: what can be marked without
// them can be marked before they empty anything.
func (s *search) project(n *Net) answer {
	j := s.j
	j.prepare(n)
	s.markable = cleared(s.markable, j.cells())
	s.active = cleared(s.active, len(j.tasks))
	s.queue, s.order, s.source = s.queue[:0], s.order[:0], sized(s.source, j.cells())
	s.later = s.later[:0]
	s.need = append(s.need[:0], j.need...)
	for w, word := range s.marked {
		for ; word != 0; word &= word - 1 {
			s.mark(int32(w<<6 + bits.TrailingZeros64(word)))
		}
	}
	for at, harm := 0, 0; at < len(s.queue) || harm < len(s.later); {
		if at == len(s.queue) {
			s.activate(s.later[harm])
			harm++
			continue
		}
		s.spread(s.queue[at])
		at++
	}
	for i := range j.inputs {
		if s.goal[i] && s.markable.Has(i) {
			s.toward = i
			return unknown
		}
	}
	return no
}

// spread runs the tasks that a cell enables.
func (s *search) spread(cell int32) {
	if t := cell - int32(len(s.j.places)); t >= 0 {
		s.able(step{task: t, by: cell})
		return
	}
	for _, t := range s.j.feeds[cell] {
		if s.need[t]--; s.need[t] == 0 {
			s.able(step{task: t, by: cell})
		}
	}
}

// able runs a task now, or later if it has a region.
func (s *search) able(t step) {
	if s.j.harmful.Has(int(t.task)) {
		s.later = append(s.later, t)
		return
	}
	s.activate(t)
}

func (s *search) mark(cell int32) {
	if !s.markable.Has(int(cell)) {
		s.markable.Add(int(cell))
		s.source[cell] = int32(len(s.order)) - 1
		s.queue = append(s.queue, cell)
	}
}

func (s *search) activate(at step) {
	t := at.task
	if s.active.Has(int(t)) {
		return
	}
	s.active.Add(int(t))
	s.order = append(s.order, at)
	if !s.j.fused[t] {
		s.mark(int32(len(s.j.places)) + t)
	}
	for _, p := range s.j.outs[t] {
		s.mark(p)
	}
}

// enabled reports whether a move is possible. A busy task does not start.
func (s *search) enabled(m *move, v state) bool {
	if m.phase != ends && v[len(s.j.places)+int(m.task)] > 0 {
		return false
	}
	for _, c := range m.takes {
		if v[c] == 0 {
			return false
		}
	}
	return true
}

// make executes a move, and reports whether it answers the question.
func (s *search) make(m *move, v state) bool {
	for _, c := range m.takes {
		if v[c] != many {
			v[c]--
		}
	}
	for i := range m.sheds {
		if d := &m.sheds[i]; d.loses(v) {
			for _, p := range d.private {
				v[p] = 0
			}
		}
	}
	for _, c := range m.resets {
		v[c] = 0
	}
	for _, c := range m.puts {
		switch {
		case int(c) >= len(s.j.places):
			v[c] = 1
		case v[c] == most:
			s.full = true
		case v[c] != many:
			v[c]++
		}
	}
	return m.goal && s.arrived(v)
}

// loses reports whether a member is idle and enabled, as far as that decides about its private inputs.
func (d *privateLoss) loses(v state) bool {
	if v[d.member] > 0 {
		return false
	}
	for _, c := range d.needs {
		if v[c] == 0 {
			return false
		}
	}
	return true
}

// arrived reports whether a state has the tokens in the join's marked inputs, and one in another input.
func (s *search) arrived(v state) bool {
	more := false
	for i := range s.j.inputs {
		if v[i] == 0 && s.keep[i] {
			return false
		}
		more = more || v[i] > 0 && s.goal[i]
	}
	return more
}
