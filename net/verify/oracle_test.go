package verify_test

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// interpreter plays a net by the rules of the engine, one moment at a time, and knows nothing of how verification
// works. It asks the net only for its structure, and for the decisions of or-joins.
type interpreter struct{ n *net.Net }

// state of a case: tokens by condition, and the tasks that are started.
type caseState struct {
	tokens net.Marking
	busy   net.Bits
}

// event is something that can happen: a task starts, or completes into the given conditions.
type event struct {
	task  net.TaskID
	start bool
	into  []net.ConditionID
}

func (in interpreter) first() caseState {
	return caseState{tokens: in.n.InitialMarking(), busy: net.NewBits(in.n.NumTasks())}
}

func (s caseState) clone() caseState {
	return caseState{tokens: s.tokens.Clone(), busy: s.busy.Clone()}
}

func (s caseState) key() string {
	var b []byte
	for _, c := range s.tokens {
		b = binary.AppendVarint(b, int64(c))
	}
	s.busy.Each(func(t int) { b = binary.AppendVarint(b, int64(-1-t)) })
	return string(b)
}

// over says that the case has ended, and whether anything is left over then.
func (in interpreter) over(s caseState) (over, proper bool) {
	sum := int32(0)
	for _, c := range s.tokens {
		sum += c
	}
	return s.tokens[in.n.End()] > 0, sum == 1 && s.busy.Empty()
}

// enabled lists the tasks that may start; routing tasks alone if there is one among them, since they run by themselves.
func (in interpreter) enabled(s caseState) []net.TaskID {
	var all, routing []net.TaskID
	for t := range net.TaskID(in.n.NumTasks()) {
		if in.n.Enabled(t, s.tokens, s.busy).Enabled {
			all = append(all, t)
			if in.n.Task(t).Kind == net.Routing {
				routing = append(routing, t)
			}
		}
	}
	if routing != nil {
		return routing
	}
	return all
}

// events lists what can happen next. A routing task that has started does nothing but complete.
func (in interpreter) events(s caseState) []event {
	var list []event
	if over, _ := in.over(s); over {
		return nil
	}
	var completing net.Bits
	s.busy.Each(func(t int) {
		if in.n.Task(net.TaskID(t)).Kind == net.Routing {
			completing = net.NewBits(in.n.NumTasks())
			completing.Add(t)
		}
	})
	if completing == nil {
		enabled := in.enabled(s)
		for _, t := range enabled {
			list = append(list, event{task: t, start: true})
		}
		if len(enabled) > 0 && in.n.Task(enabled[0]).Kind == net.Routing {
			return list
		}
		completing = s.busy
	}
	completing.Each(func(t int) {
		for _, into := range in.routes(net.TaskID(t)) {
			list = append(list, event{task: net.TaskID(t), into: into})
		}
	})
	return list
}

// routes lists the sets of conditions that a split may mark.
func (in interpreter) routes(t net.TaskID) [][]net.ConditionID {
	outputs := in.n.Outputs(t)
	var list [][]net.ConditionID
	switch in.n.Task(t).Split {
	case net.Xor:
		for _, c := range outputs {
			list = append(list, []net.ConditionID{c})
		}
	case net.Or:
		for set := 1; set < 1<<len(outputs); set++ {
			var into []net.ConditionID
			for i, c := range outputs {
				if set>>i&1 != 0 {
					into = append(into, c)
				}
			}
			list = append(list, into)
		}
	default:
		list = append(list, outputs)
	}
	return list
}

// do returns the state after an event.
func (in interpreter) do(s caseState, e event) caseState {
	next := s.clone()
	if e.start {
		for _, c := range in.n.Consumes(nil, e.task, s.tokens) {
			next.tokens[c]--
		}
		next.busy.Add(int(e.task))
		return next
	}
	next.busy.Remove(int(e.task))
	tasks, conditions := in.n.Region(e.task)
	emptied := slices.Clone(conditions)
	for _, u := range tasks {
		switch {
		case u == e.task:
		case s.busy.Has(int(u)):
			next.busy.Remove(int(u))
		case in.n.Enabled(u, s.tokens, s.busy).Enabled:
			emptied = append(emptied, in.n.PrivateInputs(u)...)
		}
	}
	for _, c := range emptied {
		next.tokens[c] = 0
	}
	for _, c := range e.into {
		next.tokens[c]++
	}
	return next
}

// truth is what an exhaustive walk over all states says of a net.
type truth struct {
	whole    bool     // the walk saw every state: the lists below say all there is
	growing  bool     // it gave up because tokens piled up
	findings []string // as [net.Finding.String] has them
	states   int
}

const (
	oracleStates = 4000
	oracleTokens = 6
)

// oracle walks every state, without any short cut.
func oracle(n *net.Net) truth { return oracleFrom(n, interpreter{n}.first()) }

// oracleFrom walks every state that a case can reach from one.
func oracleFrom(n *net.Net, first caseState) truth {
	in := interpreter{n}
	ids := map[string]int{}
	var states []caseState
	var edges [][2]int
	started := net.NewBits(n.NumTasks())
	id := func(s caseState) int {
		key := s.key()
		if _, ok := ids[key]; !ok {
			ids[key] = len(states)
			states = append(states, s)
		}
		return ids[key]
	}
	id(first)
	found := map[string]bool{}
	good := map[int]bool{}
	for i := 0; i < len(states); i++ {
		if slices.Max(states[i].tokens) > oracleTokens {
			return truth{growing: true, states: i}
		}
		if i > oracleStates {
			return truth{states: i}
		}
		if over, proper := in.over(states[i]); over {
			good[i] = true
			if !proper {
				found[string(verify.ImproperCompletion)] = true
			}
		}
		for _, e := range in.events(states[i]) {
			if e.start {
				started.Add(int(e.task))
			}
			edges = append(edges, [2]int{i, id(in.do(states[i], e))})
		}
	}
	for changed := true; changed; {
		changed = false
		for k := len(edges) - 1; k >= 0; k-- {
			if e := edges[k]; good[e[1]] && !good[e[0]] {
				good[e[0]], changed = true, true
			}
		}
	}
	if len(good) < len(states) {
		found[string(verify.NoOptionToComplete)] = true
	}
	for t := range net.TaskID(n.NumTasks()) {
		if !started.Has(int(t)) {
			found[string(verify.DeadTask)+" "+n.TaskName(t)] = true
		}
	}
	res := truth{whole: true, states: len(states)}
	for f := range found {
		res.findings = append(res.findings, f)
	}
	sort.Strings(res.findings)
	return res
}
