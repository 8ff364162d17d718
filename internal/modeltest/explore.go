package modeltest

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// Outcome is the result of exploring all runs of a net.
type Outcome struct {
	Sound bool     // every run can complete, with nothing left over, and every task can start
	Big   bool     // there were more states than allowed, so the result is unknown
	Stuck string   // a state from which the end cannot be reached; "" if there is none
	Left  string   // a state in which the end is reached but work is left; "" if there is none
	Dead  []string // tasks that never start
}

// String describes the result in one line.
func (o Outcome) String() string {
	switch {
	case o.Big:
		return "big"
	case o.Sound:
		return "sound"
	}
	var s []string
	if o.Stuck != "" {
		s = append(s, "stuck")
	}
	if o.Left != "" {
		s = append(s, "improper")
	}
	if len(o.Dead) > 0 {
		s = append(s, "dead "+strings.Join(o.Dead, " "))
	}
	return strings.Join(s, ", ")
}

// Explore visits every state of a net, up to a limit: any enabled task may start, any busy task may complete, with any
// choice of its split. Routing tasks do both in one step, before any other. It implements the definition of soundness
// directly and is slow; it shares no code with verification.
func Explore(n *net.Net, limit int) Outcome {
	x := &explorer{n: n, index: map[string]int{}, started: map[net.TaskID]bool{}}
	x.visit(n.InitialMarking(), net.NewBits(n.NumTasks()))
	for at := 0; at < len(x.states); at++ {
		if len(x.states) > limit {
			return Outcome{Big: true}
		}
		x.expand(at)
	}
	o := Outcome{Left: x.left, Stuck: x.stuck()}
	for t := range n.NumTasks() {
		if !x.started[net.TaskID(t)] {
			o.Dead = append(o.Dead, n.TaskName(net.TaskID(t)))
		}
	}
	o.Sound = o.Left == "" && o.Stuck == "" && len(o.Dead) == 0
	return o
}

type explorer struct {
	n       *net.Net
	states  []exploredState
	index   map[string]int
	from    int // the state being expanded
	started map[net.TaskID]bool
	left    string
}

type exploredState struct {
	marking net.Marking
	busy    net.Bits
	before  []int
}

func (s *exploredState) key() string {
	var b []byte
	for _, k := range s.marking {
		b = binary.AppendVarint(b, int64(k))
	}
	for _, w := range s.busy {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}

func (x *explorer) visit(m net.Marking, busy net.Bits) {
	s := exploredState{marking: m, busy: busy}
	key := s.key()
	i, known := x.index[key]
	if !known {
		i = len(x.states)
		x.index[key] = i
		x.states = append(x.states, s)
	}
	if i != x.from || known {
		x.states[i].before = append(x.states[i].before, x.from)
	}
}

func (x *explorer) expand(at int) {
	x.from = at
	m, busy := x.states[at].marking, x.states[at].busy
	if m[x.n.End()] > 0 {
		tokens := int32(0)
		for _, k := range m {
			tokens += k
		}
		if (tokens > 1 || !busy.Empty()) && x.left == "" {
			x.left = x.describe(at)
		}
		return
	}
	for _, routing := range []bool{true, false} {
		moved := false
		for t := range net.TaskID(x.n.NumTasks()) {
			switch {
			case routing != (x.n.Task(t).Kind == net.Routing):
			case busy.Has(int(t)):
				x.complete(t, m, busy)
			case x.n.Enabled(t, m, busy).Enabled:
				moved = true
				x.start(t, m, busy)
			}
		}
		if routing && moved {
			return
		}
	}
}

// start takes the tokens of the join; an xor-join takes any marked input here, not just the first.
func (x *explorer) start(t net.TaskID, m net.Marking, busy net.Bits) {
	x.started[t] = true
	takes := [][]net.ConditionID{x.n.Consumes(nil, t, m)}
	if x.n.Task(t).Join == net.Xor {
		takes = nil
		for _, c := range x.n.Inputs(t) {
			if m[c] > 0 {
				takes = append(takes, []net.ConditionID{c})
			}
		}
	}
	for _, conditions := range takes {
		next, nextBusy := m.Clone(), busy.Clone()
		for _, c := range conditions {
			next[c]--
		}
		nextBusy.Add(int(t))
		if x.n.Task(t).Kind == net.Routing {
			x.complete(t, next, nextBusy)
		} else {
			x.visit(next, nextBusy)
		}
	}
}

func (x *explorer) complete(t net.TaskID, m net.Marking, busy net.Bits) {
	next, nextBusy := m.Clone(), busy.Clone()
	tasks, conditions := x.n.Region(t)
	for _, u := range tasks {
		if !nextBusy.Has(int(u)) && x.n.Enabled(u, m, busy).Enabled {
			for _, c := range x.n.PrivateInputs(u) {
				next[c] = 0
			}
		}
		nextBusy.Remove(int(u))
	}
	for _, c := range conditions {
		next[c] = 0
	}
	nextBusy.Remove(int(t))
	for _, way := range x.ways(t) {
		after := next.Clone()
		for _, c := range way {
			after[c]++
		}
		x.visit(after, nextBusy)
	}
}

func (x *explorer) ways(t net.TaskID) [][]net.ConditionID {
	out := x.n.Outputs(t)
	var ways [][]net.ConditionID
	switch x.n.Task(t).Split {
	case net.Xor:
		for _, c := range out {
			ways = append(ways, []net.ConditionID{c})
		}
	case net.Or:
		for set := 1; set < 1<<len(out); set++ {
			var way []net.ConditionID
			for i, c := range out {
				if set&(1<<i) != 0 {
					way = append(way, c)
				}
			}
			ways = append(ways, way)
		}
	default:
		ways = append(ways, out)
	}
	return ways
}

// stuck searches backwards from the ends; a state that it does not reach is stuck.
func (x *explorer) stuck() string {
	ok := make([]bool, len(x.states))
	var open []int
	for i, s := range x.states {
		if s.marking[x.n.End()] > 0 {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if !ok[i] {
			ok[i] = true
			open = append(open, x.states[i].before...)
		}
	}
	if i := slices.Index(ok, false); i >= 0 {
		return x.describe(i)
	}
	return ""
}

func (x *explorer) describe(at int) string {
	var parts []string
	for c, k := range x.states[at].marking {
		if k > 0 {
			parts = append(parts, x.n.ConditionName(net.ConditionID(c)))
		}
	}
	x.states[at].busy.Each(func(t int) { parts = append(parts, "busy "+x.n.TaskName(net.TaskID(t))) })
	return strings.Join(parts, ", ")
}
