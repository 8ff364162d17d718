package net

import "slices"

// Verify decides whether a workflow net is sound: whether every case, from every state, can complete (or else: stuck,
// or going round for ever), completes with nothing left over, and every task can start in some case. A condition in
// which tokens can pile up for ever is a finding too.
//
// The states are those of the engine. A case ends with the first token in the end condition. A task starts, which takes
// its tokens, is busy, when it cannot start again, and completes, which empties its cancellation region and puts tokens
// out. An xor-join takes from its first marked input. Or-joins start when [Net.Enabled] says so. Routing tasks run as
// soon as they can, before anything else. What data decides is taken as free: any flow of an xor-split may be followed,
// any non-empty set of flows of an or-split. A composite task counts as a task: that its child cases end is for the
// verification of their nets.
func Verify(n *Net, opts VerifyOptions) Report {
	l := &netLowering{n: n, moments: newMoments(n)}
	w := newNetWatcher(l)
	more := defaultMore
	if l.orJoins {
		more = defaultMoreOrJoins
	}
	j := judge(l, w, opts.limits(more))
	rep := report(l, n.Name(), j)
	rep.Warnings = warnings(l, w, j, &rep, opts)
	return rep
}

// netLowering is a workflow net on its way to verification.
type netLowering struct {
	n *Net
	*moments
	moves     []netMove           // of the exact game, by label
	leaves    []netMove           // of the reduced net, by label
	busyAt    []int32             // by task: its busy place in the exact game, or -1
	busyTasks []TaskID            // by busy place, less the number of conditions
	undecided int                 // answers that were not decided
	work      int                 // spent on or-joins, in words copied and compared
	kept      int                 // bytes that decided holds
	marking   Marking             // scratch
	running   Bits                // scratch
	decided   map[string]Decision // answers for or-joins, by the join and what it looks at
	scopes    map[int32]scope     // by or-join
	key       []byte              // scratch
	flows     map[string]Pos      // of implicit conditions; made when first needed
}

// netMove is what a move stands for.
type netMove struct {
	task   TaskID
	moment Moment
	input  int32  // which input an xor-join takes from; -1 otherwise
	output int32  // which output an xor-split marks; -1 otherwise
	chosen uint64 // the outputs that an or-split marks, as bits
}

// game lowers the net as it is: one move for every way in which a task can start, complete, or do both.
func (l *netLowering) game() (*game, Limit) {
	n := l.n
	l.marking, l.running = make(Marking, n.NumConditions()), NewBits(n.NumTasks())
	l.busyAt, l.busyTasks, l.moves = filledWith(n.NumTasks(), -1), nil, nil
	l.decided, l.scopes, l.kept = map[string]Decision{}, map[int32]scope{}, 0
	l.split.Each(func(t int) {
		l.busyAt[t] = int32(n.NumConditions() + len(l.busyTasks))
		l.busyTasks = append(l.busyTasks, TaskID(t))
	})
	g := &game{places: n.NumConditions() + len(l.busyTasks), end: int32(n.End()), most: maxCount}
	if l.orJoins {
		g.most = maxBesideOrJoins
	}
	g.start = make([]uint8, g.places)
	g.start[n.Start()] = 1
	g.ask = l
	for t := range TaskID(n.NumTasks()) {
		if n.Task(t).Split == Or && len(n.Outputs(t)) > maxOrOutputs {
			return nil, LimitSplit
		}
		l.addTask(g, t)
	}
	g.index()
	return g, NoLimit
}

// maxBesideOrJoins bounds the tokens of a condition in a net with or-joins. What an or-join must think of grows fast
// with them, and a net that piles up more will hardly be meant to.
const maxBesideOrJoins = 8

func filledWith(n int, x int32) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = x
	}
	return list
}

// wayIn is one way in which a task can start, wayOut one in which it can complete.
type wayIn struct {
	takes []gameArc
	empty []int32
	or    int32
	input int32
}

type wayOut struct {
	puts   []gameArc
	output int32
	chosen uint64
}

// addTask adds the moves of a task.
func (l *netLowering) addTask(g *game, t TaskID) {
	resets, spares := l.regionOf(t)
	outs := l.waysOut(t)
	busy := l.busyAt[t]
	for _, in := range l.waysIn(t) {
		what := netMove{task: t, input: in.input}
		if busy >= 0 {
			in.empty = append(in.empty, busy)
			what.moment, what.output = Starts, -1
			l.addMove(g, what, gameMove{in: in.takes, empty: in.empty, or: in.or, out: []gameArc{{place: busy, n: 1}}})
		}
		for _, out := range outs {
			what.moment, what.output, what.chosen = Whole, out.output, out.chosen
			l.addMove(g, what, gameMove{
				in: in.takes, empty: in.empty, or: in.or, out: out.puts, resets: resets, spares: spares,
			})
		}
	}
	if busy < 0 {
		return
	}
	for _, out := range outs {
		what := netMove{task: t, moment: Completes, input: -1, output: out.output, chosen: out.chosen}
		l.addMove(g, what, gameMove{
			in: []gameArc{{place: busy, n: 1}}, or: -1, out: out.puts, resets: resets, spares: spares,
		})
	}
}

func (l *netLowering) addMove(g *game, what netMove, m gameMove) {
	m.task, m.label = int32(what.task), int32(len(l.moves))
	m.urgent = l.n.Task(what.task).Kind == Routing
	m.alone = m.urgent && !l.regions && !l.orJoins && len(l.n.PrivateInputs(what.task)) == len(l.n.Inputs(what.task)) &&
		!slices.Contains(l.n.Outputs(what.task), l.n.End())
	l.moves = append(l.moves, what)
	g.moves = append(g.moves, m)
}

func (l *netLowering) waysIn(t TaskID) []wayIn {
	inputs := l.n.Inputs(t)
	arcs := make([]gameArc, len(inputs))
	for i, c := range inputs {
		arcs[i] = gameArc{place: int32(c), n: 1}
	}
	switch join := l.n.Task(t).Join; {
	case join == Or && len(inputs) > 1:
		return []wayIn{{takes: arcs, or: int32(t), input: -1}}
	case join == Xor && len(inputs) > 1:
		ways, earlier := make([]wayIn, len(inputs)), make([]int32, len(inputs))
		for i, c := range inputs {
			earlier[i] = int32(c) // one list for all ways: thousands of inputs would make millions of entries
			ways[i] = wayIn{takes: arcs[i : i+1], empty: earlier[:i:i], or: -1, input: int32(i)}
		}
		return ways
	}
	return []wayIn{{takes: arcs, or: -1, input: -1}}
}

func (l *netLowering) waysOut(t TaskID) []wayOut {
	outputs := l.n.Outputs(t)
	arcs := make([]gameArc, len(outputs))
	for i, c := range outputs {
		arcs[i] = gameArc{place: int32(c), n: 1}
	}
	if len(outputs) == 1 {
		return []wayOut{{puts: arcs, output: -1}}
	}
	var ways []wayOut
	switch l.n.Task(t).Split {
	case Xor:
		for i := range outputs {
			ways = append(ways, wayOut{puts: arcs[i : i+1], output: int32(i)})
		}
	case Or:
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

// regionOf is what a completion of the task empties: the conditions of its region, the busy places of the members, and,
// of members that are enabled, the tokens in their private inputs.
func (l *netLowering) regionOf(t TaskID) (resets []int32, spares []gameSpare) {
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
		s := gameSpare{task: u, owner: t, inputs: l.n.Inputs(u)}
		for _, c := range l.n.PrivateInputs(u) {
			if !slices.Contains(conditions, c) {
				s.clears = append(s.clears, int32(c))
			}
		}
		if len(s.clears) > 0 {
			spares = append(spares, s)
		}
	}
	return resets, spares
}

// orEnabled asks the engine whether an or-join may start. States that differ only where the join doesn't look get one
// answer.
func (l *netLowering) orEnabled(m *gameMove, state []uint8) bool {
	places := l.scope(m.or).key
	if places == nil {
		l.load(state)
		return l.decide(TaskID(m.or)).Enabled
	}
	l.key = append(l.key[:0], byte(m.or), byte(m.or>>8), byte(m.or>>16))
	for _, p := range places {
		l.key = append(l.key, state[p])
	}
	l.work += len(l.key) >> 3
	d, known := l.decided[string(l.key)]
	if !known {
		l.load(state)
		d = l.decide(TaskID(m.or))
		if l.kept += len(l.key); l.kept <= maxDecided {
			l.decided[string(l.key)] = d
		}
	} else if d.Undecided {
		l.undecided++
	}
	return d.Enabled
}

// The bytes of a question whose answer is kept, and of all such questions.
const (
	maxKey     = 1024
	maxDecided = 16 << 20
)

// scope is the set of places that the decision of an or-join depends on.
type scope struct {
	places Bits
	key    []int32 // the same as a list; nil if they are more than a key should hold
}

// scope returns the scope of an or-join.
func (l *netLowering) scope(join int32) scope {
	s, known := l.scopes[join]
	if known {
		return s
	}
	s.places = NewBits(l.n.NumConditions() + len(l.busyTasks))
	add := func(place int32) {
		s.places.Add(int(place))
		if len(s.key) <= maxKey {
			s.key = append(s.key, place)
		}
	}
	tasks, conditions := l.n.OrJoinScope(TaskID(join))
	for _, c := range conditions {
		add(int32(c))
	}
	for _, t := range append([]TaskID{TaskID(join)}, tasks...) {
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

// memberEnabled asks whether a member of a region is enabled while its owner is still busy.
func (l *netLowering) memberEnabled(s *gameSpare, state []uint8) bool {
	l.load(state)
	l.running.Add(int(s.owner))
	return l.decide(s.task).Enabled
}

func (l *netLowering) decide(t TaskID) Decision {
	d, work := l.n.Decide(t, l.marking, l.running)
	if l.work += work + len(l.marking); d.Undecided {
		l.undecided++
	}
	return d
}

func (l *netLowering) guesses() int { return l.undecided }

func (l *netLowering) spent() int { return l.work / workPerState }

// workPerState is how many words of work, see [search], count as much as one state: a search that asks or-joins much
// may look at fewer states, so that it takes no longer than others.
const workPerState = 2048

// manyTokens stands for an unbounded count where the engine is asked.
const manyTokens = 1 << 10

// load turns a state into the engine's terms.
func (l *netLowering) load(state []uint8) {
	for c := range l.marking {
		if l.marking[c] = int32(state[c]); state[c] == unbounded {
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

// awaits reports whether a token in a place can matter to the or-join of a move.
func (l *netLowering) awaits(m *gameMove, place int32) bool {
	return l.scope(m.or).places.Has(int(place))
}
