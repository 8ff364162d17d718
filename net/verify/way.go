package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// Way describes how a case can continue from a marking.
type Way struct {
	// Run is the shortest run that completes the case: the tasks that complete, in order. Nil if there is none.
	Run []string
	// Stuck is the shortest run to a deadlock; nil if none was found. Left has the conditions that are marked then.
	Stuck []string
	Left  []string
	// Decided is false if the search exceeded its budget before it found a run that completes the case.
	Decided bool
}

// waySubsets bounds the outputs of an or-split for which every subset is tried; with more, only single outputs and all
// of them are.
const waySubsets = 6

// WayFrom searches for the shortest run that completes a case, from a marking and a set of started tasks. In the run, a
// task completes directly after it starts. Only if there is no such run, starts become separate steps, which are not
// listed in the run. The budget is a number of states.
func WayFrom(n *net.Net, m net.Marking, busy []net.TaskID, budget int) Way {
	way := (&wayfinder{n: n, budget: budget, whole: true}).search(m, busy)
	if way.Run != nil || !way.Decided {
		return way
	}
	return (&wayfinder{n: n, budget: budget}).search(m, busy)
}

// wayfinder is one search, breadth first.
type wayfinder struct {
	n      *net.Net
	budget int
	whole  bool // a task starts and completes in one step
	nodes  []waynode
	seen   map[string]int // the index in nodes of a state
	before [][]int        // for each state those from which one step leads to it
}

// waynode is a reached state.
type waynode struct {
	marking net.Marking
	busy    net.Bits
	from    int
	task    net.TaskID // the completed task; -1 for a start, and in the first state
}

// begin adds the first state.
func (w *wayfinder) begin(m net.Marking, busy []net.TaskID) {
	w.seen = make(map[string]int)
	bits := net.NewBits(w.n.NumTasks())
	for _, t := range busy {
		bits.Add(int(t))
	}
	w.add(waynode{marking: m.Clone(), busy: bits, from: -1, task: -1})
}

func (w *wayfinder) search(m net.Marking, busy []net.TaskID) Way {
	w.begin(m, busy)
	way := Way{Decided: true}
	for at := 0; at < len(w.nodes); at++ {
		if w.nodes[at].marking[w.n.End()] > 0 {
			return Way{Run: w.run(at), Decided: true}
		}
		if len(w.nodes) > w.budget {
			return Way{Stuck: way.Stuck, Left: way.Left}
		}
		if !w.expand(at) && way.Stuck == nil {
			way.Stuck, way.Left = w.run(at), w.marked(at)
		}
	}
	return way
}

func (w *wayfinder) add(s waynode) {
	key := make([]byte, 0, 4*len(s.marking)+len(s.busy)*8)
	for _, k := range s.marking {
		key = append(key, byte(k), byte(k>>8), byte(k>>16), byte(k>>24))
	}
	s.busy.Each(func(t int) { key = append(key, byte(t), byte(t>>8)) })
	at, known := w.seen[string(key)]
	if !known {
		at = len(w.nodes)
		w.seen[string(key)], w.nodes, w.before = at, append(w.nodes, s), append(w.before, nil)
	}
	if s.from >= 0 {
		w.before[at] = append(w.before[at], s.from)
	}
}

// expand adds the successors of a state, and reports whether there are any.
func (w *wayfinder) expand(at int) bool {
	moved := false
	for i := range w.n.NumTasks() {
		moved = w.step(at, net.TaskID(i), w.whole) || moved
	}
	return moved
}

// step adds the states after one task starts or completes, or both at once, and reports whether it can.
func (w *wayfinder) step(at int, t net.TaskID, whole bool) bool {
	s := w.nodes[at]
	if s.busy.Has(int(t)) {
		w.complete(at, t, s.marking, s.busy)
		return true
	}
	if !w.n.Enabled(t, s.marking, s.busy).Enabled {
		return false
	}
	next := s.marking.Clone()
	for _, p := range w.n.Consumes(nil, t, s.marking) {
		next[p]--
	}
	if whole {
		w.complete(at, t, next, s.busy)
		return true
	}
	busy := slices.Clone(s.busy)
	busy.Add(int(t))
	w.add(waynode{marking: next, busy: busy, from: at, task: -1})
	return true
}

// complete adds the states after the completion of a task, one for each choice of its split.
func (w *wayfinder) complete(at int, t net.TaskID, m net.Marking, busy net.Bits) {
	m, busy = emptyRegion(w.n, t, m, busy)
	for _, into := range choices(w.n, t) {
		next := m.Clone()
		for _, p := range into {
			next[p]++
		}
		w.add(waynode{marking: next, busy: busy, from: at, task: t})
	}
}

// emptyRegion returns the state after the completion of a task, before it produces tokens: the marking without what its
// region empties, and the tasks that are still busy.
func emptyRegion(n *net.Net, t net.TaskID, m net.Marking, busy net.Bits) (net.Marking, net.Bits) {
	tasks, conditions := n.Region(t)
	left := busy.Clone()
	left.Remove(int(t))
	emptied := slices.Clone(conditions)
	for _, u := range tasks {
		left.Remove(int(u))
		if !busy.Has(int(u)) && n.Enabled(u, m, busy).Enabled {
			emptied = append(emptied, n.PrivateInputs(u)...)
		}
	}
	m = m.Clone()
	for _, p := range emptied {
		m[p] = 0
	}
	return m, left
}

// choices returns the sets of outputs that can get tokens from a task.
func choices(n *net.Net, t net.TaskID) [][]net.ConditionID {
	outputs := n.Outputs(t)
	split := n.Task(t).Split
	if split == net.And {
		return [][]net.ConditionID{outputs}
	}
	var all [][]net.ConditionID
	for i := range outputs {
		all = append(all, outputs[i:i+1])
	}
	if split == net.Xor || len(outputs) < 2 {
		return all
	}
	if len(outputs) > waySubsets {
		return append(all, outputs)
	}
	for set := 1; set < 1<<len(outputs); set++ {
		var into []net.ConditionID
		for i, p := range outputs {
			if set&(1<<i) != 0 {
				into = append(into, p)
			}
		}
		if len(into) > 1 {
			all = append(all, into)
		}
	}
	return all
}

// run returns the tasks that complete on the way to a state.
func (w *wayfinder) run(at int) []string {
	names := []string{}
	for ; w.nodes[at].from >= 0; at = w.nodes[at].from {
		if t := w.nodes[at].task; t >= 0 {
			names = append(names, w.n.TaskName(t))
		}
	}
	slices.Reverse(names)
	return names
}

func (w *wayfinder) marked(at int) (names []string) {
	for p, k := range w.nodes[at].marking {
		if k > 0 {
			names = append(names, w.n.ConditionName(net.ConditionID(p)))
		}
	}
	return names
}
