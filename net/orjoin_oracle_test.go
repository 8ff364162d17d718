package net

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// The oracle answers the question of an or-join by plain enumeration: breadth first over all states of the whole net,
// with every start and end a step of its own and every choice of an or-split tried. It shares nothing with the ladder
// but the compiled net, and is written for being read.
type oracle struct {
	n     *Net
	join  TaskID
	limit int
	rule  memberRule
}

// memberRule says when an idle and-join of several inputs loses the tokens in its private inputs by a region. The zero
// value is the rule; the others show what it matters.
type memberRule int

const (
	emptiedIfEnabled memberRule = iota
	sparedAlways
	emptiedAlways
)

// enumerated bounds the states of one enumeration.
var enumerated = 200

type snapshot struct {
	tokens []int32
	busy   []bool
}

func (v snapshot) key() string {
	var key []byte
	for _, k := range v.tokens {
		key = append(key, byte(k))
	}
	for _, b := range v.busy {
		if b {
			key = append(key, 'x')
		} else {
			key = append(key, '-')
		}
	}
	return string(key)
}

func (v snapshot) clone() snapshot { return snapshot{slices.Clone(v.tokens), slices.Clone(v.busy)} }

// arrives says whether a further input can get a token; unknown if there are too many states, or too many tokens in one
// place, for an answer.
func (o oracle) arrives(m Marking, busy Bits) answer {
	first := snapshot{tokens: slices.Clone(m), busy: make([]bool, o.n.NumTasks())}
	for t := range first.busy {
		first.busy[t] = busy.Has(t)
	}
	seen := map[string]bool{first.key(): true}
	complete := true
	for queue := []snapshot{first}; len(queue) > 0; queue = queue[1:] {
		if o.reached(m, queue[0]) {
			return yes
		}
		if len(seen) > o.limit || slices.Max(queue[0].tokens) > 5 {
			complete = false
			continue
		}
		for _, next := range o.steps(queue[0]) {
			if key := next.key(); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
	}
	if complete {
		return no
	}
	return unknown
}

func (o oracle) reached(m Marking, v snapshot) bool {
	further := false
	for _, c := range o.n.Inputs(o.join) {
		if m[c] > 0 && v.tokens[c] == 0 {
			return false
		}
		further = further || m[c] == 0 && v.tokens[c] > 0
	}
	return further
}

func (o oracle) steps(v snapshot) []snapshot {
	var next []snapshot
	for i := range v.busy {
		t := TaskID(i)
		if v.busy[t] {
			next = append(next, o.ends(v, t)...)
		} else if t != o.join {
			next = append(next, o.starts(v, t)...)
		}
	}
	return next
}

func (o oracle) starts(v snapshot, t TaskID) []snapshot {
	var next []snapshot
	if o.n.Task(t).Join == And {
		w := v.clone()
		w.busy[t] = true
		for _, c := range o.n.Inputs(t) {
			if w.tokens[c]--; w.tokens[c] < 0 {
				return nil
			}
		}
		return []snapshot{w}
	}
	for _, c := range o.n.Inputs(t) {
		if v.tokens[c] > 0 {
			w := v.clone()
			w.busy[t] = true
			w.tokens[c]--
			next = append(next, w)
		}
	}
	return next
}

func (o oracle) ends(v snapshot, t TaskID) []snapshot {
	w := v.clone()
	w.busy[t] = false
	tasks, conditions := o.n.Region(t)
	for _, u := range tasks {
		if u == t || u == o.join {
			continue
		}
		if !v.busy[u] && o.loses(v, u) {
			for _, c := range o.private(u) {
				w.tokens[c] = 0
			}
		}
		w.busy[u] = false
	}
	for _, c := range conditions {
		w.tokens[c] = 0
	}
	var next []snapshot
	for _, chosen := range o.routes(t) {
		x := w.clone()
		for _, c := range chosen {
			x.tokens[c]++
		}
		next = append(next, x)
	}
	return next
}

// loses says whether an idle member of a region is enabled, and loses the tokens in its private inputs. An or-join of
// several inputs is spared, see above.
func (o oracle) loses(v snapshot, u TaskID) bool {
	inputs := o.n.Inputs(u)
	if len(inputs) > 1 && o.n.Task(u).Join == Or {
		return false
	}
	if len(inputs) > 1 && o.n.Task(u).Join == And && o.rule != emptiedIfEnabled {
		return o.rule == emptiedAlways
	}
	marked := 0
	for _, c := range inputs {
		marked += int(min(v.tokens[c], 1))
	}
	return marked > 0 && (o.n.Task(u).Join != And || marked == len(inputs))
}

func (o oracle) private(u TaskID) []ConditionID {
	var private []ConditionID
	for _, c := range o.n.Inputs(u) {
		if slices.Equal(o.n.Consumers(c), []TaskID{u}) {
			private = append(private, c)
		}
	}
	return private
}

func (o oracle) routes(t TaskID) [][]ConditionID {
	outputs := o.n.Outputs(t)
	if o.n.Task(t).Split == And {
		return [][]ConditionID{outputs}
	}
	var routes [][]ConditionID
	for set := 1; set < 1<<len(outputs); set++ {
		var route []ConditionID
		for i, c := range outputs {
			if set&(1<<i) != 0 {
				route = append(route, c)
			}
		}
		if o.n.Task(t).Split == Or || len(route) == 1 {
			routes = append(routes, route)
		}
	}
	return routes
}

// drawnNet is a small net of any shape with at least one or-join of several inputs: loops, shared conditions, several
// or-joins and cancellation regions are common. What chance left unconnected is connected.
func drawnNet(t *rapid.T, regions bool) *Net {
	d := &Definition{Name: "w", Conditions: []Condition{{Name: "i", Role: Start}, {Name: "o", Role: End}}}
	conditions := rapid.IntRange(0, 5).Draw(t, "conditions")
	for i := range conditions {
		d.Conditions = append(d.Conditions, Condition{Name: fmt.Sprintf("c%d", i)})
	}
	gate := rapid.SampledFrom([]Rule{And, Xor, Or})
	for i := range rapid.IntRange(3, 6).Draw(t, "tasks") {
		d.Tasks = append(d.Tasks, Task{
			Name: fmt.Sprintf("T%d", i), Join: gate.Draw(t, "join"), Split: gate.Draw(t, "split"),
		})
	}
	element := rapid.IntRange(0, conditions+len(d.Tasks)-1)
	name := func(i int) string {
		if i < conditions {
			return d.Conditions[i+2].Name
		}
		return d.Tasks[i-conditions].Name
	}
	for i := range d.Tasks {
		for range rapid.IntRange(1, 2).Draw(t, "inputs") {
			d.Flows = append(d.Flows, Flow{From: name(element.Draw(t, "from")), To: d.Tasks[i].Name})
		}
		for range rapid.IntRange(0, 2).Draw(t, "outputs") {
			d.Flows = append(d.Flows, Flow{From: d.Tasks[i].Name, To: name(element.Draw(t, "to"))})
		}
	}
	d.Tasks[0].Join = Or
	d.Flows = append(d.Flows, Flow{From: d.Tasks[1].Name, To: "T0"}, Flow{From: d.Tasks[2].Name, To: "T0"})
	completeFlows(d)
	if regions {
		drawRegions(t, d)
	}
	return MustCompile(d)
}

func drawRegions(t *rapid.T, d *Definition) {
	n := MustCompile(d)
	dense := rapid.IntRange(-3, 2).Draw(t, "dense")
	for i := range d.Tasks {
		for range max(0, rapid.IntRange(dense, 3).Draw(t, "members")) {
			if k := rapid.IntRange(0, n.NumConditions()+n.NumTasks()-1).Draw(t, "member"); k < n.NumConditions() {
				d.Tasks[i].Cancels = append(d.Tasks[i].Cancels, n.ConditionName(ConditionID(k)))
			} else {
				d.Tasks[i].Cancels = append(d.Tasks[i].Cancels, n.TaskName(TaskID(k-n.NumConditions())))
			}
		}
	}
}

// completeFlows adds flows until the definition is well-formed.
func completeFlows(d *Definition) {
	for {
		problems := d.Check()
		if len(problems) == 0 {
			return
		}
		p := problems[0]
		isTask := slices.ContainsFunc(d.Tasks, func(t Task) bool { return t.Name == p.Subject })
		f := Flow{From: d.Tasks[len(d.Tasks)-1].Name, To: p.Subject}
		switch {
		case (p.Code == NoFlowIn || p.Code == Unreachable) && isTask:
			f.From = "i"
		case (p.Code == NoFlowOut || p.Code == NoPathToEnd) && isTask:
			f = Flow{From: p.Subject, To: "o"}
		case p.Code == NoFlowOut || p.Code == NoPathToEnd:
			f = Flow{From: p.Subject, To: d.Tasks[len(d.Tasks)-1].Name}
		case p.Code != NoFlowIn && p.Code != Unreachable:
			panic(p.String())
		}
		d.Flows = append(d.Flows, f)
	}
}

// drawnState marks some inputs of the join but not all, and anything else.
func drawnState(t *rapid.T, n *Net, join TaskID) (Marking, Bits) {
	m, busy := make(Marking, n.NumConditions()), NewBits(n.NumTasks())
	tokens := rapid.SampledFrom([]int32{0, 0, 0, 0, 1, 1, 2})
	for c := range m {
		m[c] = tokens.Draw(t, "tokens")
	}
	for u := range n.NumTasks() {
		if TaskID(u) != join && rapid.IntRange(0, 4).Draw(t, "busy") == 0 {
			busy.Add(u)
		}
	}
	inputs := n.Inputs(join)
	with := rapid.IntRange(0, len(inputs)-1).Draw(t, "marked")
	without := (with + rapid.IntRange(1, len(inputs)-1).Draw(t, "empty")) % len(inputs)
	m[inputs[with]], m[inputs[without]] = max(m[inputs[with]], 1), 0
	return m, busy
}

// Every rung of the ladder that gives an answer gives the one that plain enumeration gives, and so does the ladder.
func TestOrJoinAgainstEnumeration(t *testing.T) {
	enumerated = testsize.Pick(200, 200, 5000)
	for _, regions := range []bool{false, true} {
		t.Run(fmt.Sprintf("regions=%v", regions), func(t *testing.T) {
			tally := map[string]int{}
			rapid.Check(t, func(t *rapid.T) {
				for range 10 {
					n := drawnNet(t, regions)
					for u := range n.NumTasks() {
						if n.Task(TaskID(u)).Join != Or || len(n.Inputs(TaskID(u))) < 2 {
							continue
						}
						for range 2 {
							m, busy := drawnState(t, n, TaskID(u))
							compare(t, n, TaskID(u), m, busy, tally)
						}
					}
				}
			})
			t.Log(tally)
		})
	}
}

func compare(t require.TestingT, n *Net, join TaskID, m Marking, busy Bits, tally map[string]int) {
	want := oracle{n: n, join: join, limit: enumerated}.arrives(m, busy)
	names := [...]string{"unknown", "yes", "no"}
	tally["enumeration "+names[want]]++
	answers := map[string]answer{}
	s := ask(n, join, m, busy)
	answers["look"] = s.look(n)
	require.Equal(t, answers["look"], s.lookAround(n), "known ways or not")
	if answers["project"] = s.project(n); answers["project"] == unknown {
		answers["plan"] = s.plan()
		require.NotEqual(t, no, answers["plan"], "a plan that fails proves nothing")
	}
	answers["forward"] = s.forward(true)
	answers["plain forward"] = s.forward(false)
	answers["backward"] = s.backward()
	agreed := want
	for rung, got := range answers {
		tally[rung+" "+names[got]]++
		if agreed == unknown {
			agreed = got
		}
		if got != unknown && agreed != unknown {
			require.Equal(t, names[agreed], names[got], "%s of %s at %s", rung, n.TaskName(join), describe(n, m, busy))
		}
	}
	got := n.Enabled(join, m, busy)
	if want != unknown && !got.Undecided {
		require.Equal(t, want == no, got.Enabled)
	}
	if got.Undecided {
		tally["undecided where enumeration says "+names[want]]++
	}
}

func describe(n *Net, m Marking, busy Bits) string {
	text := ""
	for _, c := range n.Definition().Conditions {
		text += fmt.Sprintf("condition %s\n", c.Name)
	}
	for _, t := range n.Definition().Tasks {
		text += fmt.Sprintf("task %s join=%v split=%v cancels %q\n", t.Name, t.Join, t.Split, t.Cancels)
	}
	for _, f := range n.Definition().Flows {
		text += f.From + " -> " + f.To + "\n"
	}
	for c, tokens := range m {
		if tokens > 0 {
			text += fmt.Sprintf("%s=%d ", n.ConditionName(ConditionID(c)), tokens)
		}
	}
	busy.Each(func(t int) { text += n.TaskName(TaskID(t)) + " " })
	return text
}
