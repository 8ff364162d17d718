package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// holdSearch searches the states of one case that holds slots, breadth first. All slots are free that the case does not
// hold itself. A task starts and completes in one move where moments.go allows that.
//
// What a run holds on its way can block other cases. So states are different if the runs to them have held different
// maximum amounts.
type holdSearch struct {
	*Holder
	capacity map[string]int64
	limits   []string // the limits of holds
	split    net.Bits
	begin    [][]int  // by task: the holds that begin with it
	takes    [][]Take // by task: what its attempts acquire of limits that some case holds
	nodes    []holdNode
	seen     map[string]bool
	stuck    []stuckState
	known    map[string]int // the number of stuck states, by what they hold and wait for
}

// holdState is a state of a case. A hold is fresh until the task that began it completes: it ends if that task is
// withdrawn or canceled.
type holdState struct {
	marking net.Marking
	busy    net.Bits
	held    uint64 // a bit for each hold
	fresh   uint64 // those of held that are fresh
	peak    string // the maximum amounts held on the way, by limit
}

// holdNode is a reached state, with the event that led to it.
type holdNode struct {
	holdState
	from  int // -1 for the first state
	event holdEvent
}

// holdEvent is a move of a case as other cases see it: what has to be free for it, and what the case holds after it.
type holdEvent struct {
	needs []Slot // must be free; kept if the move acquires a hold, else released at once
	after uint64 // the holds after the move
	steps []Step // none for an acquisition
}

// stuckState is a state in which each move of the case has to wait for slots.
type stuckState struct {
	of    *Holder
	holds []Slot
	waits []Slot // one for each waiting task; a task that waits for any of several limits has a stuck state for each
	run   []holdEvent
}

func newHoldSearch(h *Holder, held map[string]bool, capacity map[string]int64) *holdSearch {
	x := &holdSearch{Holder: h, capacity: capacity, limits: slices.Sorted(maps.Keys(held)), split: newMoments(h.Net).split, seen: make(map[string]bool), known: make(map[string]int)}
	x.begin, x.takes = make([][]int, h.Net.NumTasks()), make([][]Take, h.Net.NumTasks())
	for i, hold := range h.Holds {
		x.begin[hold.From] = append(x.begin[hold.From], i)
	}
	for _, t := range h.Takes {
		if held[t.Limit] {
			x.takes[t.Task] = append(x.takes[t.Task], t)
		}
	}
	return x
}

// search returns the states in which a case waits for slots, those with the shortest runs first.
func (x *holdSearch) search(most int, late func() bool) ([]stuckState, Limit) {
	first := holdState{marking: x.Net.InitialMarking(), busy: net.NewBits(x.Net.NumTasks()), peak: string(make([]byte, len(x.limits)))}
	x.add(holdNode{holdState: first, from: -1})
	for at := 0; at < len(x.nodes); at++ {
		if len(x.nodes) > most {
			return x.stuck, LimitStates
		}
		if late != nil && at%64 == 0 && late() {
			return x.stuck, LimitTime
		}
		if x.nodes[at].marking[x.Net.End()] == 0 && !x.expand(at) {
			x.note(at)
		}
	}
	return x.stuck, NoLimit
}

func (x *holdSearch) add(n holdNode) {
	key := make([]byte, 0, len(n.marking)+16+2*len(n.busy))
	for _, k := range n.marking {
		key = append(key, byte(min(k, 255)))
	}
	key = fmt.Appendf(key, "%x.%x.%s", n.held, n.fresh, n.peak)
	n.busy.Each(func(t int) { key = append(key, byte(t), byte(t>>8)) })
	if !x.seen[string(key)] {
		x.seen[string(key)] = true
		x.nodes = append(x.nodes, n)
	}
}

// maxCount bounds the tokens of a condition: a net that exceeds it is unbounded, which is another finding.
const maxCount = 8

// expand adds the successors of a state, and reports whether a move is possible without slots. Routing tasks go first.
func (x *holdSearch) expand(at int) (free bool) {
	s := x.nodes[at].holdState
	for _, routing := range []bool{true, false} {
		for t := range net.TaskID(x.Net.NumTasks()) {
			if (x.Net.Task(t).Kind == net.Routing) != routing {
				continue
			}
			free = x.moves(at, t, s) || free
		}
		if routing && free {
			return true
		}
	}
	return free
}

// moves adds the moves of a task, and reports whether one is possible without slots.
func (x *holdSearch) moves(at int, t net.TaskID, s holdState) (free bool) {
	if s.busy.Has(int(t)) {
		x.complete(at, t, s, holdEvent{}, Completes)
		return true
	}
	if !x.Net.Enabled(t, s.marking, s.busy).Enabled {
		return false
	}
	if i := x.next(t, s.held); i >= 0 {
		x.acquire(at, i, s)
		return false
	}
	var e holdEvent
	for _, take := range x.takes[t] {
		e.needs = append(e.needs, Slot{Limit: take.Limit, N: take.N, Task: x.Net.TaskName(t)})
	}
	if x.reach(&s, e.needs) {
		x.start(at, t, s, e)
	}
	return len(e.needs) == 0
}

// reach records the maximum that the case holds when it acquires slots in addition to its own; false if that exceeds
// the capacity.
func (x *holdSearch) reach(s *holdState, needs []Slot) bool {
	if len(needs) == 0 {
		return true
	}
	peak := []byte(s.peak)
	for _, need := range needs {
		n := need.N
		for i := range x.Holds {
			if s.held&(1<<i) != 0 && x.Holds[i].Limit == need.Limit {
				n += x.Holds[i].N
			}
		}
		if most, bound := x.capacity[need.Limit]; bound && n > most {
			return false
		}
		i, _ := slices.BinarySearch(x.limits, need.Limit)
		peak[i] = max(peak[i], byte(min(n, 255)))
	}
	s.peak = string(peak)
	return true
}

// next returns the first hold that a task begins and that the case does not have; -1 if it has all.
func (x *holdSearch) next(t net.TaskID, held uint64) int {
	for _, i := range x.begin[t] {
		if held&(1<<i) == 0 {
			return i
		}
	}
	return -1
}

func (x *holdSearch) acquire(at, i int, s holdState) {
	needs := []Slot{x.slotOf(i)}
	if !x.reach(&s, needs) {
		return
	}
	s.held |= 1 << i
	s.fresh |= 1 << i
	x.add(holdNode{holdState: s, from: at, event: holdEvent{needs: needs, after: s.held}})
}

// slotOf returns a hold as slots that are waited for at the task that begins it.
func (x *holdSearch) slotOf(i int) Slot {
	h := &x.Holds[i]
	return Slot{Limit: h.Limit, N: h.N, Task: x.Net.TaskName(h.From), Pos: h.Pos}
}

// start adds the state in which a task is busy, or has completed.
func (x *holdSearch) start(at int, t net.TaskID, s holdState, e holdEvent) {
	next := s
	next.marking = s.marking.Clone()
	step := Step{Task: x.Net.TaskName(t), Moment: Starts, Routing: x.Net.Task(t).Kind == net.Routing}
	for _, p := range x.Net.Consumes(nil, t, s.marking) {
		next.marking[p]--
		if x.Net.Task(t).Join == net.Xor && len(x.Net.Inputs(t)) > 1 {
			step.Input = x.Net.ConditionName(p)
		}
	}
	next.busy = s.busy.Clone()
	next.busy.Add(int(t))
	if !x.split.Has(int(t)) {
		x.complete(at, t, next, e, Whole)
		return
	}
	x.withdraw(&next)
	e.steps, e.after = []Step{step}, next.held
	x.add(holdNode{holdState: next, from: at, event: e})
}

// withdraw ends the fresh holds whose tasks are neither enabled nor busy any more.
func (x *holdSearch) withdraw(s *holdState) {
	for i := range x.Holds {
		bit := uint64(1) << i
		if t := x.Holds[i].From; s.fresh&bit != 0 && !s.busy.Has(int(t)) && !x.Net.Enabled(t, s.marking, s.busy).Enabled {
			s.held &^= bit
			s.fresh &^= bit
		}
	}
}

// complete adds the states after the completion of a busy task, one for each choice of its split.
func (x *holdSearch) complete(at int, t net.TaskID, s holdState, e holdEvent, moment Moment) {
	before := s.busy
	s.marking, s.busy = emptyRegion(x.Net, t, s.marking, s.busy)
	ended := func(u net.TaskID) bool { return before.Has(int(u)) && !s.busy.Has(int(u)) }
	for i := range x.Holds {
		if bit := uint64(1) << i; slices.ContainsFunc(x.Holds[i].To, ended) {
			s.held &^= bit
			s.fresh &^= bit
		} else if x.Holds[i].From == t {
			s.fresh &^= bit
		}
	}
	ways := choices(x.Net, t)
	for _, into := range ways {
		next := s
		next.marking = s.marking.Clone()
		full := false
		for _, p := range into {
			next.marking[p]++
			full = full || next.marking[p] > maxCount
		}
		if full {
			continue
		}
		x.withdraw(&next)
		step := Step{Task: x.Net.TaskName(t), Moment: moment, Routing: x.Net.Task(t).Kind == net.Routing}
		if len(ways) > 1 {
			for _, p := range into {
				step.Outputs = append(step.Outputs, target(x.Net, p))
			}
		}
		done := e
		done.steps, done.after = []Step{step}, next.held
		x.add(holdNode{holdState: next, from: at, event: done})
	}
}

// There are many stuck states. Of those that hold and wait for the same slots, a few runs are kept, and no more than
// maxStuck states in all.
const (
	maxRuns  = 16
	maxStuck = 2000
)

// note keeps a state in which nothing can happen without slots. A state in which nothing can happen at all is a
// deadlock of the net, another finding.
func (x *holdSearch) note(at int) {
	s := x.nodes[at].holdState
	st := stuckState{of: x.Holder}
	for i := range x.Holds {
		if s.held&(1<<i) != 0 {
			st.holds = append(st.holds, x.slotOf(i))
		}
	}
	if len(st.holds) == 0 {
		return // the case blocks no other one
	}
	slices.SortFunc(st.holds, compareSlots)
	var anyOf [][]Slot // for each waiting task
	for t := range net.TaskID(x.Net.NumTasks()) {
		if !x.Net.Enabled(t, s.marking, s.busy).Enabled {
			continue
		}
		if i := x.next(t, s.held); i >= 0 {
			anyOf = append(anyOf, []Slot{x.slotOf(i)})
			continue
		}
		var any []Slot
		for _, take := range x.takes[t] {
			any = append(any, Slot{Limit: take.Limit, N: take.N, Task: x.Net.TaskName(t)})
		}
		anyOf = append(anyOf, any)
	}
	if len(anyOf) > 0 {
		x.keep(at, st, anyOf)
	}
}

// keep adds a stuck state for each choice of what its tasks wait for.
func (x *holdSearch) keep(at int, st stuckState, anyOf [][]Slot) {
	if len(anyOf) > 0 {
		for _, s := range anyOf[0] {
			next := st
			next.waits = append(slices.Clone(st.waits), s)
			x.keep(at, next, anyOf[1:])
		}
		return
	}
	key := fmt.Sprint(st.holds, st.waits)
	if x.known[key]++; x.known[key] > maxRuns || len(x.stuck) >= maxStuck {
		return
	}
	for ; x.nodes[at].from >= 0; at = x.nodes[at].from {
		st.run = append(st.run, x.nodes[at].event)
	}
	slices.Reverse(st.run)
	x.stuck = append(x.stuck, st)
}
