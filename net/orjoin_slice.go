package net

import "slices"

// slice is the part of a net on which the decision of an or-join depends: the conditions and tasks with a path to one
// of its inputs that does not pass the join itself. Nothing outside can put a token into an input: a task without such
// a path can only take tokens away or cancel. Where that makes more possible, the task belongs to the slice: see
// [growth].
//
// Its nodes are numbered as cells: first the conditions, starting with the join's inputs, then the tasks. A state of
// the search has a number for every cell: the tokens of a condition, and 1 for a busy task.
type slice struct {
	inputs  int           // the number of inputs of the join, which are the first cells
	places  []ConditionID // by cell
	tasks   []TaskID      // by cell, less len(places)
	cell    []int32       // by TaskID: its cell, or -1
	spot    []int32       // by ConditionID: its cell, or -1
	need    []int32       // by task of the slice: the number of inputs that must be marked before it starts
	feeds   [][]int32     // by condition: the tasks of the slice that it feeds, as indexes of tasks
	outs    [][]int32     // by task of the slice: its outputs, as cells
	fused   []bool        // by task of the slice: whether its start and its completion are one move
	harmful Bits          // tasks of the slice with a region in it
	moves   []move
	first   []int32 // by task of the slice, and one more: where its moves begin
	groups  []group
	at      [][]int32 // by cell: the groups that take from it
	into    [][]int32 // by cell: the moves that put something into it
	busy    Bits      // the tasks, by TaskID

	sensitive map[int]bool // by node, conditions first: see [growth]
	exact     state        // a mask of the sensitive cells; nil if there are none
	partial   bool         // some choices of an or-split were left out: see [slice.choices]
}

// move is a step of the search. A task that a region can affect while it is busy, by canceling it or by emptying what
// it took or puts out, has separate moves for its start and its completion; any other task has one move for both.
type move struct {
	task   int32 // index of tasks
	phase  phase
	takes  []int32 // cells
	puts   []int32
	resets []int32
	sheds  []privateLoss
	goal   bool // puts into an input of the join
}

type phase uint8

const (
	wholly phase = iota // starts and ends at once
	starts
	ends
)

// privateLoss is the effect of a region on an idle member: the loss of the tokens in its private inputs.
type privateLoss struct {
	member  int32 // cell
	private []int32
	needs   []int32 // all inputs of an and-join of several inputs: it loses tokens only if all are marked; else nil
}

// group is moves that take the same tokens and differ in what they put out: the flows of an xor-split.
//
// A search may execute an eager group at once, and nothing else before it: no other task can use the tokens that it
// takes, and nothing can take away what it puts. So every future in which its token is still in place has no more
// possibilities than the one in which the group was executed.
type group struct {
	from, to int32 // of moves
	eager    bool
}

// maxFused bounds the moves of a task whose start and completion are one move: one for each pair of an input and an
// output.
const maxFused = 16

func newSlice(n *Net, join TaskID) slice {
	s := slice{
		inputs: len(n.tasks[join].inputs),
		cell:   slices.Repeat([]int32{-1}, len(n.tasks)), spot: slices.Repeat([]int32{-1}, len(n.conditions)),
	}
	for _, c := range n.tasks[join].inputs {
		s.addPlace(c)
	}
	s.grow(n, join)
	s.busy = NewBits(len(n.tasks))
	for _, t := range s.tasks {
		s.busy.Add(int(t))
		s.cell[t] += int32(len(s.places))
	}
	return s
}

func (s *slice) addPlace(c ConditionID) {
	if s.spot[c] < 0 {
		s.spot[c] = int32(len(s.places))
		s.places = append(s.places, c)
	}
}

func (s *slice) cells() int { return len(s.places) + len(s.tasks) }

// bytes returns the approximate size of a slice without what only searches need; moreBytes the size of that.
func (s *slice) bytes() int {
	return 4*(len(s.cell)+len(s.spot)+s.cells()) + min(s.inputs*s.cells(), maxWays)/4
}

func (s *slice) moreBytes() int { return 160*len(s.moves) + 100*s.cells() }

// link records the flows within the slice.
func (s *slice) link(n *Net) {
	s.feeds = make([][]int32, len(s.places))
	for i, t := range s.tasks {
		inputs := s.inside(n.tasks[t].inputs)
		for _, p := range inputs {
			s.feeds[p] = append(s.feeds[p], int32(i))
		}
		need := len(inputs)
		if takesOne(n, t) {
			need = min(need, 1)
		}
		s.need = append(s.need, int32(need))
		s.outs = append(s.outs, s.inside(n.tasks[t].outputs))
	}
}

// inside returns the cells of those conditions that are in the slice.
func (s *slice) inside(conditions []ConditionID) []int32 {
	var cells []int32
	for _, c := range conditions {
		if p := s.spot[c]; p >= 0 {
			cells = append(cells, p)
		}
	}
	return cells
}

// addMoves adds what only searches need.
func (s *slice) addMoves(n *Net) {
	s.link(n)
	effects := make([]move, len(s.tasks))
	frail := NewBits(s.cells())
	s.harmful = NewBits(len(s.tasks))
	for i, t := range s.tasks {
		effects[i] = s.region(n, t)
		if len(effects[i].resets)+len(effects[i].sheds) > 0 {
			s.harmful.Add(i)
		}
		for _, c := range effects[i].resets {
			frail.Add(int(c))
		}
		for _, d := range effects[i].sheds {
			for _, p := range d.private {
				frail.Add(int(p))
			}
		}
	}
	s.exact = s.mask(len(n.conditions))
	for c, all := range s.exact {
		if all != 0 {
			frail.Add(c)
		}
	}
	s.at = make([][]int32, s.cells())
	for i := range s.tasks {
		s.first = append(s.first, int32(len(s.moves)))
		s.addTask(n, int32(i), effects[i], frail)
	}
	s.first = append(s.first, int32(len(s.moves)))
	s.into = make([][]int32, s.cells())
	for k := range s.moves {
		for _, c := range s.moves[k].puts {
			s.into[c] = append(s.into[c], int32(k))
			s.moves[k].goal = s.moves[k].goal || int(c) < s.inputs
		}
	}
}

// region returns the effect of a task's cancellation region within the slice, as the resets and sheds of a move.
func (s *slice) region(n *Net, t TaskID) move {
	resets := s.inside(n.tasks[t].region)
	var sheds []privateLoss
	for _, u := range n.tasks[t].regionTasks {
		cell := s.cell[u]
		if cell < 0 || u == t {
			continue // not in the slice, or the task itself, which is idle after the move
		}
		resets = append(resets, cell)
		if n.isOrJoin(u) {
			continue
		}
		var needs []int32
		if !takesOne(n, u) {
			needs = s.inside(n.tasks[u].inputs)
		}
		private := slices.DeleteFunc(s.inside(n.tasks[u].private), func(p int32) bool { return slices.Contains(resets, p) })
		if len(private) > 0 {
			sheds = append(sheds, privateLoss{member: cell, private: private, needs: needs})
		}
	}
	return move{resets: resets, sheds: sheds}
}

// addTask adds the moves of a task, in groups. Cells whose tokens may be lost, or are sensitive, are frail.
func (s *slice) addTask(n *Net, i int32, effect move, frail Bits) {
	t := s.tasks[i]
	own := s.cell[t]
	takes := alternatives(s.inside(n.tasks[t].inputs), n.def.Tasks[t].Join != And)
	puts, all := s.choices(n, i)
	s.partial = s.partial || !all
	plain := len(effect.resets)+len(effect.sheds) == 0

	// A task needs only one move if its start can be delayed until its completion, since its tokens are safe where they
	// are, or if its completion can directly follow its start, since they are safe where they go.
	late, early := !anyFrail(frail, takes), plain && !anyFrail(frail, puts)
	fused := !frail.Has(int(own)) && (late || early) && len(takes)*len(puts) <= maxFused

	end := move{task: i, phase: ends, resets: effect.resets, sheds: effect.sheds}
	s.fused = append(s.fused, fused)
	s.addGroup(end, []int32{own}, puts, plain && !anyFrail(frail, puts) && !frail.Has(int(own)))
	for _, from := range takes {
		if fused {
			whole := end
			whole.phase = wholly
			s.addGroup(whole, from, puts, plain && !anyFrail(frail, puts) && s.exclusive(from))
			continue
		}
		// If there are several ways to start, an eager one would keep the others waiting until the end.
		start := move{task: i, phase: starts}
		s.addGroup(start, from, [][]int32{{own}}, !frail.Has(int(own)) && len(takes) == 1 && s.exclusive(from))
	}
}

func (s *slice) addGroup(m move, takes []int32, puts [][]int32, eager bool) {
	from := int32(len(s.moves))
	for _, into := range puts {
		m.takes, m.puts = takes, into
		s.moves = append(s.moves, m)
	}
	for _, c := range takes {
		s.at[c] = append(s.at[c], int32(len(s.groups)))
	}
	s.groups = append(s.groups, group{from: from, to: int32(len(s.moves)), eager: eager})
}

// exclusive reports whether only one task can use the tokens in the cells; the join's inputs must keep their tokens.
func (s *slice) exclusive(cells []int32) bool {
	return !slices.ContainsFunc(cells, func(p int32) bool { return int(p) < s.inputs || len(s.feeds[p]) > 1 })
}

// alternatives returns each cell by itself, or all at once. The full choice of an or-split represents all its choices,
// since more tokens never make less possible.
func alternatives(cells []int32, one bool) [][]int32 {
	if !one {
		return [][]int32{cells}
	}
	var each [][]int32
	for i := range cells {
		each = append(each, cells[i:i+1])
	}
	return each
}

func anyFrail(frail Bits, sets [][]int32) bool {
	return slices.ContainsFunc(sets, func(set []int32) bool {
		return slices.ContainsFunc(set, func(c int32) bool { return frail.Has(int(c)) })
	})
}
