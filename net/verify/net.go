package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// Net decides whether a workflow net is sound: every case can complete from every reachable state, completes with
// nothing left over, and every task can start in some case. A case that cannot complete is in a deadlock, or in a loop
// without an exit. A condition in which tokens can pile up without bound is a finding too.
//
// The states are those of the engine. A case ends with the first token in the end condition. A task starts, which takes
// its tokens; is busy, during which it cannot start again; and completes, which empties its cancellation region and
// produces tokens. An xor-join takes from its first marked input. Or-joins start when [net.Net.Enabled] says so.
// Routing tasks run as soon as they can, before anything else. Decisions that depend on data are free: any flow of an
// xor-split, any non-empty set of flows of an or-split. A composite task counts as a task; its child cases are verified
// with their own nets.
func Net(n *net.Net, opts Options) Report {
	l := &netLowering{n: n, moments: newMoments(n)}
	w := newObserver(l)
	j := analyze(l, w, opts.budget(defaultMoreStates(n.NumTasks()+n.NumConditions(), l.orJoins)))
	rep := report(l, n.Name(), j)
	rep.Warnings = warnings(l, w, j, &rep, opts)
	return rep
}

// netLowering is a workflow net with its lowered forms. It also decides or-joins and regions for the searches.
type netLowering struct {
	n *net.Net
	*moments
	moves     []netMove               // of the exact system, by label
	leaves    []netMove               // of the reduced net, by label
	busyAt    []int32                 // by task: its busy place in the exact game, or -1
	busyTasks []net.TaskID            // by busy place, less the number of conditions
	undecided int                     // the number of or-join decisions that exceeded their budget
	work      int                     // the cost of or-joins, in words copied and compared
	kept      int                     // the size of decided, in bytes
	marking   net.Marking             // scratch
	running   net.Bits                // scratch
	decided   map[string]net.Decision // cached decisions of or-joins, by the join and the state in its scope
	scopes    map[int32]scope         // by or-join
	key       []byte                  // scratch
	flows     map[string]net.Pos      // of implicit conditions; computed when first needed
}

// netMove is the meaning of a move in terms of the net.
type netMove struct {
	task   net.TaskID
	moment Moment
	input  int32  // which input an xor-join takes from; -1 otherwise
	output int32  // which output an xor-split marks; -1 otherwise
	chosen uint64 // the outputs that an or-split marks, as bits
}

// system lowers the net without reduction: one move for every way in which a task can start, complete, or do both.
func (l *netLowering) system() (*statespace.System, Limit) {
	n := l.n
	l.marking, l.running = make(net.Marking, n.NumConditions()), net.NewBits(n.NumTasks())
	l.busyAt, l.busyTasks, l.moves = slices.Repeat([]int32{-1}, n.NumTasks()), nil, nil
	l.decided, l.scopes, l.kept = map[string]net.Decision{}, map[int32]scope{}, 0
	l.split.Each(func(t int) {
		l.busyAt[t] = int32(n.NumConditions() + len(l.busyTasks))
		l.busyTasks = append(l.busyTasks, net.TaskID(t))
	})
	sys := &statespace.System{Places: n.NumConditions() + len(l.busyTasks), End: int32(n.End()), MaxTokens: statespace.MaxCount}
	if l.orJoins {
		sys.MaxTokens = maxBesideOrJoins
	}
	sys.Start = make([]uint8, sys.Places)
	sys.Start[n.Start()] = 1
	sys.Decider = l
	for t := range net.TaskID(n.NumTasks()) {
		if n.Task(t).Split == net.Or && len(n.Outputs(t)) > reduce.MaxOrOutputs {
			return nil, LimitSplit
		}
		l.addTask(sys, t)
	}
	sys.Prepare()
	return sys, NoLimit
}

// maxBesideOrJoins bounds the tokens of a condition in a net with or-joins. The cost of their decisions grows fast with
// the number of tokens, and a net with more is hardly intended.
const maxBesideOrJoins = 8

// wayIn is one way in which a task can start, wayOut one in which it can complete.
type wayIn struct {
	takes []statespace.Arc
	empty []int32
	or    int32
	input int32
}

type wayOut struct {
	puts   []statespace.Arc
	output int32
	chosen uint64
}

// addTask adds the moves of a task.
func (l *netLowering) addTask(sys *statespace.System, t net.TaskID) {
	resets, spares := l.regionOf(t)
	outs := l.waysOut(t)
	busy := l.busyAt[t]
	for _, in := range l.waysIn(t) {
		what := netMove{task: t, input: in.input}
		if busy >= 0 {
			in.empty = append(in.empty, busy)
			what.moment, what.output = Starts, -1
			l.addMove(sys, what, statespace.Move{In: in.takes, Inhibitors: in.empty, OrJoin: in.or, Out: []statespace.Arc{{Place: busy, Weight: 1}}})
		}
		for _, out := range outs {
			what.moment, what.output, what.chosen = Whole, out.output, out.chosen
			l.addMove(sys, what, statespace.Move{
				In: in.takes, Inhibitors: in.empty, OrJoin: in.or, Out: out.puts, Resets: resets, MemberResets: spares,
			})
		}
	}
	if busy < 0 {
		return
	}
	for _, out := range outs {
		what := netMove{task: t, moment: Completes, input: -1, output: out.output, chosen: out.chosen}
		l.addMove(sys, what, statespace.Move{
			In: []statespace.Arc{{Place: busy, Weight: 1}}, OrJoin: -1, Out: out.puts, Resets: resets, MemberResets: spares,
		})
	}
}

func (l *netLowering) addMove(sys *statespace.System, what netMove, m statespace.Move) {
	m.Task, m.Label = int32(what.task), int32(len(l.moves))
	m.Urgent = l.n.Task(what.task).Kind == net.Routing
	m.Persistent = m.Urgent && !l.regions && !l.orJoins && len(l.n.PrivateInputs(what.task)) == len(l.n.Inputs(what.task)) &&
		!slices.Contains(l.n.Outputs(what.task), l.n.End())
	l.moves = append(l.moves, what)
	sys.Moves = append(sys.Moves, m)
}

func (l *netLowering) waysIn(t net.TaskID) []wayIn {
	inputs := l.n.Inputs(t)
	arcs := make([]statespace.Arc, len(inputs))
	for i, c := range inputs {
		arcs[i] = statespace.Arc{Place: int32(c), Weight: 1}
	}
	switch join := l.n.Task(t).Join; {
	case join == net.Or && len(inputs) > 1:
		return []wayIn{{takes: arcs, or: int32(t), input: -1}}
	case join == net.Xor && len(inputs) > 1:
		ways, earlier := make([]wayIn, len(inputs)), make([]int32, len(inputs))
		for i, c := range inputs {
			earlier[i] = int32(c) // one list for all moves: separate lists would need millions of entries for thousands of inputs
			ways[i] = wayIn{takes: arcs[i : i+1], empty: earlier[:i:i], or: -1, input: int32(i)}
		}
		return ways
	}
	return []wayIn{{takes: arcs, or: -1, input: -1}}
}

func (l *netLowering) waysOut(t net.TaskID) []wayOut {
	outputs := l.n.Outputs(t)
	arcs := make([]statespace.Arc, len(outputs))
	for i, c := range outputs {
		arcs[i] = statespace.Arc{Place: int32(c), Weight: 1}
	}
	if len(outputs) == 1 {
		return []wayOut{{puts: arcs, output: -1}}
	}
	var ways []wayOut
	switch l.n.Task(t).Split {
	case net.Xor:
		for i := range outputs {
			ways = append(ways, wayOut{puts: arcs[i : i+1], output: int32(i)})
		}
	case net.Or:
		for set := uint64(1); set < 1<<len(outputs); set++ {
			way := wayOut{output: -1, chosen: set}
			for i := range outputs {
				if set>>i&1 != 0 {
					way.puts = append(way.puts, arcs[i])
				}
			}
			ways = append(ways, way)
		}
	default:
		ways = append(ways, wayOut{puts: arcs, output: -1})
	}
	return ways
}

// regionOf returns the places that a completion of the task empties: the conditions of its region, the busy places of
// the members, and the private inputs of members that are enabled.
func (l *netLowering) regionOf(t net.TaskID) (resets []int32, spares []statespace.MemberReset) {
	tasks, conditions := l.n.Region(t)
	for _, c := range conditions {
		resets = append(resets, int32(c))
	}
	for _, u := range tasks {
		if u == t {
			continue
		}
		if busy := l.busyAt[u]; busy >= 0 {
			resets = append(resets, busy)
		}
		s := statespace.MemberReset{Task: u, Owner: t, Inputs: l.n.Inputs(u)}
		for _, c := range l.n.PrivateInputs(u) {
			if !slices.Contains(conditions, c) {
				s.Clears = append(s.Clears, int32(c))
			}
		}
		if len(s.Clears) > 0 {
			spares = append(spares, s)
		}
	}
	return resets, spares
}

// OrJoinEnabled asks package net whether an or-join may start. States that differ only outside of its scope share one
// cached answer.
func (l *netLowering) OrJoinEnabled(m *statespace.Move, state []uint8) bool {
	places := l.scope(m.OrJoin).key
	if places == nil {
		l.load(state)
		return l.decide(net.TaskID(m.OrJoin)).Enabled
	}
	l.key = append(l.key[:0], byte(m.OrJoin), byte(m.OrJoin>>8), byte(m.OrJoin>>16))
	for _, p := range places {
		l.key = append(l.key, state[p])
	}
	l.work += len(l.key) >> 3
	d, known := l.decided[string(l.key)]
	if !known {
		l.load(state)
		d = l.decide(net.TaskID(m.OrJoin))
		if l.kept += len(l.key); l.kept <= maxDecided {
			l.decided[string(l.key)] = d
		}
	} else if d.Undecided {
		l.undecided++
	}
	return d.Enabled
}

// The bounds in bytes of one cached question and of the cache.
const (
	maxKey     = 1024
	maxDecided = 16 << 20
)

// scope is the set of places that the decision of an or-join depends on.
type scope struct {
	places net.Bits
	key    []int32 // the same as a list; nil if it is too long for a key
}

// scope returns the scope of an or-join.
func (l *netLowering) scope(join int32) scope {
	s, known := l.scopes[join]
	if known {
		return s
	}
	s.places = net.NewBits(l.n.NumConditions() + len(l.busyTasks))
	add := func(place int32) {
		s.places.Add(int(place))
		if len(s.key) <= maxKey {
			s.key = append(s.key, place)
		}
	}
	tasks, conditions := l.n.OrJoinScope(net.TaskID(join))
	for _, c := range conditions {
		add(int32(c))
	}
	for _, t := range append([]net.TaskID{net.TaskID(join)}, tasks...) {
		if busy := l.busyAt[t]; busy >= 0 {
			add(busy)
		}
	}
	if len(s.key) > maxKey {
		s.key = nil
	}
	l.scopes[join] = s
	return s
}

// MemberEnabled reports whether a member of a region is enabled while the owner of the region is still busy.
func (l *netLowering) MemberEnabled(s *statespace.MemberReset, state []uint8) bool {
	l.load(state)
	l.running.Add(int(s.Owner))
	return l.decide(s.Task).Enabled
}

func (l *netLowering) decide(t net.TaskID) net.Decision {
	d, work := l.n.Decide(t, l.marking, l.running)
	if l.work += work + len(l.marking); d.Undecided {
		l.undecided++
	}
	return d
}

func (l *netLowering) Undecided() int { return l.undecided }

func (l *netLowering) Spent() int { return l.work / workPerState }

// workPerState is the number of words of work, see [net.search], that counts as one state: a search with many decisions
// of or-joins explores fewer states, so that it takes no longer than others.
const workPerState = 2048

// manyTokens represents an unbounded count in questions to package net.
const manyTokens = 1 << 10

// load converts a state to a marking and the set of busy tasks.
func (l *netLowering) load(state []uint8) {
	for c := range l.marking {
		if l.marking[c] = int32(state[c]); state[c] == statespace.Omega {
			l.marking[c] = manyTokens
		}
	}
	clear(l.running)
	for i, t := range l.busyTasks {
		if state[len(l.marking)+i] != 0 {
			l.running.Add(int(t))
		}
	}
}

// DependsOn reports whether the decision of a move's or-join can depend on a token in a place.
func (l *netLowering) DependsOn(m *statespace.Move, place int32) bool {
	return l.scope(m.OrJoin).places.Has(int(place))
}
