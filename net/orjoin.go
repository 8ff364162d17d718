package net

import "sync"

// An or-join with a token in some of its inputs, and none in the others, starts unless another input can still get a
// token while the marked ones keep theirs. Whether that can happen is a question about all futures of the case. It is
// answered by a ladder, each rung of which costs more than the one before and leaves less to the next:
//
//	walk     a lone token, or a busy task, has a way to an empty input that asks nothing of other tokens: wait
//	reach    no token and no busy task has any way to an empty input: start
//	project  no empty input can be marked even if tokens were never used up: start
//	plan     try the run that this suggests: if it marks an empty input, wait
//	forward  explore the futures, with what is irrelevant to the question left out, within a budget
//	backward explore the pasts of "the marked inputs and one more", within a budget
//
// Past both budgets the join waits and says that it is undecided.
//
// What counts as a future. Tasks start and complete as they do in a case, whatever their predicates, with these rules:
//
//   - The join itself does not start.
//   - What counts is the marking that is reached: a marked input that a region empties on the way may be marked again by
//     then, and has kept its token. So YAWL defines it: the marked inputs and one more can be covered in the reset net.
//   - A busy task does not start again before it completes or is canceled.
//   - An xor-join may take any one of its tokens. Other or-joins are treated as xor-joins: so a join waits for a token
//     that stands before another or-join.
//   - A cancellation region empties its conditions and cancels its busy tasks. An idle member loses the tokens in its
//     private inputs if any one token satisfies its join, for then it is enabled. An and-join or or-join of several
//     inputs is spared: it may or may not be enabled at that moment, and sparing it can only make the join wait until
//     its owner has completed. The same goes for the join itself as a member.
//
// So fewer tokens never make more possible, which [slice] and the searches rely on. A task being busy is worth at
// least as much as the tokens that it took: idle, it could only take them and be busy.

// orJoin is what is known of an or-join before any case runs. It is worked out when the join is first asked about: in a large
// net with many or-joins it is much, and verification, or a short case, never asks about most of them.
type orJoin struct {
	slice
	ways  []way // by input
	known sync.Once
	ready sync.Once // the searches need more than the rungs before them; most joins never need one
}

// way says from where an input of the join can be reached: sets of cells, see [slice].
type way struct {
	walk  Bits // by a lone token, with no harm to the other inputs
	reach Bits // by any path of flows
}

// addOrJoins makes room for what will be known of the or-joins. With one input there is nothing further to wait for.
func (n *Net) addOrJoins() {
	n.joins = make([]*orJoin, len(n.tasks))
	for t := range n.tasks {
		if n.def.Tasks[t].Join == Or && len(n.tasks[t].inputs) > 1 {
			n.joins[t] = &orJoin{}
		}
	}
}

// orJoin returns what is known of an or-join with several inputs.
func (n *Net) orJoin(t TaskID) *orJoin {
	j := n.joins[t]
	j.known.Do(func() {
		j.slice = newSlice(n, t)
		for q := range j.inputs {
			j.ways = append(j.ways, way{walk: j.waysTo(n, q, true), reach: j.waysTo(n, q, false)})
		}
	})
	return j
}

// prepare makes an or-join ready for searches.
func (j *orJoin) prepare(n *Net) { j.ready.Do(func() { j.addMoves(n) }) }

// watches says which or-joins a change may matter to.
type watches struct {
	made  sync.Once
	conds [][]TaskID // by condition: the or-joins whose slice holds it
	busy  [][]TaskID // by task: the or-joins whose slice holds the busy task
}

// watched returns the watches, made when first asked for.
func (n *Net) watched() *watches {
	n.watches.made.Do(func() { n.watches.fill(n) })
	return &n.watches
}

func (w *watches) fill(n *Net) {
	w.conds, w.busy = make([][]TaskID, len(n.conditions)), make([][]TaskID, len(n.tasks))
	met, last := make([]int32, len(n.conditions)), make([]int32, len(n.tasks)) // 1 + the join that came by last
	var todo []ConditionID
	for i := range n.tasks {
		join := TaskID(i)
		if n.def.Tasks[join].Join != Or {
			continue
		}
		w.busy[join] = append(w.busy[join], join)
		last[join] = int32(join) + 1
		todo = w.meet(todo[:0], n.tasks[join].inputs, met, join)
		for n.joins[join] != nil && len(todo) > 0 {
			c := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, t := range n.conditions[c].producers {
				if last[t] != int32(join)+1 {
					last[t] = int32(join) + 1
					w.busy[t] = append(w.busy[t], join)
					todo = w.meet(todo, n.tasks[t].inputs, met, join)
				}
			}
		}
	}
}

// meet notes conditions of the slice of an or-join, and appends those that are new.
func (w *watches) meet(todo, list []ConditionID, met []int32, join TaskID) []ConditionID {
	for _, c := range list {
		if met[c] != int32(join)+1 {
			met[c] = int32(join) + 1
			w.conds[c] = append(w.conds[c], join)
			todo = append(todo, c)
		}
	}
	return todo
}

// waysTo collects the cells from which a token can get to an input. With lone set, only through tasks that need no
// other token and whose regions leave the join's inputs alone. Such a way may lead through a busy task too: then that
// task is the nearer source.
func (s *slice) waysTo(n *Net, input int, lone bool) Bits {
	found := NewBits(s.cells())
	queue := []int32{int32(input)}
	seen := NewBits(len(s.places))
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, t := range n.conditions[s.places[p]].producers {
			cell := s.cell[t]
			if cell < 0 || found.Has(int(cell)) || lone && s.harms(n, t) {
				continue
			}
			found.Add(int(cell))
			if lone && !takesOne(n, t) {
				continue
			}
			for _, c := range n.tasks[t].inputs {
				from := s.place(c)
				found.Add(int(from))
				if !seen.Has(int(from)) {
					seen.Add(int(from))
					queue = append(queue, from)
				}
			}
		}
	}
	return found
}

// harms reports whether the region of a task empties an input of the join.
func (s *slice) harms(n *Net, t TaskID) bool {
	for _, c := range n.tasks[t].region {
		if p := s.place(c); p >= 0 && int(p) < s.inputs {
			return true
		}
	}
	return false
}

// takesOne reports whether a token in any one input lets a task start; an or-join is treated as an xor-join.
func takesOne(n *Net, t TaskID) bool {
	return n.def.Tasks[t].Join != And || len(n.tasks[t].inputs) == 1
}

// searches keeps the memory of finished searches: deciding allocates nothing in the long run.
var searches = sync.Pool{New: func() any { return new(search) }}

// decideOrJoin decides an or-join that has tokens in some of its inputs and none in others, and says what that cost.
func (n *Net) decideOrJoin(t TaskID, m Marking, busy Bits) (Decision, int) {
	s := searches.Get().(*search)
	defer searches.Put(s)
	s.load(n.orJoin(t), m, busy)
	switch s.arrives(n, m) {
	case yes:
		return Decision{}, s.work
	case no:
		return Decision{Enabled: true}, s.work
	}
	return Decision{Undecided: true}, s.work
}

// answer is what a rung of the ladder says of the question whether an empty input can still get a token.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// arrives climbs the ladder.
func (s *search) arrives(n *Net, m Marking) answer {
	if a := s.look(); a != unknown {
		return a
	}
	if a := s.project(n); a != unknown {
		return a
	}
	s.begin(m)
	if a := s.plan(); a != unknown {
		return a
	}
	if a := s.forward(true); a != unknown {
		return a
	}
	return s.backward()
}

// look is the rungs walk and reach: a few bit operations.
func (s *search) look() answer {
	a := no
	for i := range s.j.inputs {
		if s.goal[i] && s.free.Intersects(s.j.ways[i].walk) {
			return yes
		}
		if s.goal[i] && s.marked.Intersects(s.j.ways[i].reach) {
			a = unknown
		}
	}
	return a
}
