package bpmn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

// TestRandomCollaborations compares nets with a reference that moves tokens as BPMN says: two pools of tasks, exclusive,
// parallel and event-based gateways and several ends, put together at random, with messages between them. Each pool alone
// and both together must get stuck, and leave out tasks, exactly where the reference does.
func TestRandomCollaborations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &graph{t: t}
		for pool := range 2 {
			g.pool(pool)
		}
		g.exchange()
		src := g.xml()
		r, err := Decode(strings.NewReader(src), Options{})
		require.NoError(t, err, src)
		for i, n := range r.Nets {
			g.compare(t, src, n, []int{i}, nil)
		}
		if len(g.messages) > 0 && len(r.Collaborations) > 0 {
			g.compare(t, src, r.Collaborations[0], []int{0, 1}, g.messages)
		}
	})
}

// graph is a random collaboration. Places are flows: one before each way into a node, but a shared one behind an
// event-based gateway.
type graph struct {
	t        *rapid.T
	nodes    []*element
	flows    [][2]int
	messages [][2]int
}

type element struct {
	pool int
	kind string // "start", "task", "send", "receive", "end", "sendEnd", "xor", "and", "choice", "catch"
}

func (g *graph) draw(most int, label string) int { return rapid.IntRange(0, most).Draw(g.t, label) }

func (g *graph) add(pool int, kind string, from int) int {
	g.nodes = append(g.nodes, &element{pool, kind})
	at := len(g.nodes) - 1
	if from >= 0 {
		g.flows = append(g.flows, [2]int{from, at})
	}
	return at
}

func (g *graph) outs(node int) (out []int) {
	for i, f := range g.flows {
		if f[0] == node {
			out = append(out, i)
		}
	}
	return out
}

// pool grows a process from its start: each element is put behind an earlier one, and some flows are added at random.
func (g *graph) pool(pool int) {
	begin := g.add(pool, "start", -1)
	open := []int{begin}
	for range 2 + g.draw(5, "size") {
		kind := rapid.SampledFrom([]string{"task", "send", "receive", "xor", "and", "and", "choice", "end", "sendEnd"}).Draw(g.t, "kind")
		from := open[g.draw(len(open)-1, "from")]
		at := g.add(pool, kind, from)
		switch kind {
		case "end", "sendEnd":
		case "choice":
			open = append(open, g.add(pool, "catch", at), g.add(pool, "catch", at))
		default:
			open = append(open, at)
		}
	}
	joins := []int{}
	for i, n := range g.nodes {
		if n.pool == pool && n.kind != "start" && n.kind != "catch" {
			joins = append(joins, i)
		}
	}
	for range g.draw(3, "more") {
		f := [2]int{open[g.draw(len(open)-1, "from")], joins[g.draw(len(joins)-1, "to")]}
		if f[0] != f[1] && f[0] != begin && !slices.Contains(g.flows, f) && (f[0] < f[1] || g.draw(3, "back") == 0) {
			g.flows = append(g.flows, f)
		}
	}
}

// exchange adds messages.
func (g *graph) exchange() {
	var from, to []int
	for i, n := range g.nodes {
		switch n.kind {
		case "send", "sendEnd", "task":
			from = append(from, i)
		case "receive", "catch", "start":
			to = append(to, i)
		}
	}
	for range 6 {
		if len(from) == 0 {
			return
		}
		m := [2]int{from[g.draw(len(from)-1, "sender")], to[g.draw(len(to)-1, "receiver")]}
		if g.nodes[m[0]].pool != g.nodes[m[1]].pool && !slices.Contains(g.messages, m) {
			g.messages = append(g.messages, m)
		}
	}
}

func (g *graph) xml() string {
	var b strings.Builder
	b.WriteString("<definitions>\n<collaboration id='c'>\n")
	for i, m := range g.messages {
		fmt.Fprintf(&b, "<messageFlow id='m%d' sourceRef='n%d' targetRef='n%d'/>\n", i, m[0], m[1])
	}
	b.WriteString("</collaboration>\n")
	for pool := range 2 {
		fmt.Fprintf(&b, "<process id='P%d'>\n", pool)
		for i, n := range g.nodes {
			if n.pool == pool {
				fmt.Fprintf(&b, map[string]string{
					"start": "<startEvent id='n%d'/>\n", "task": "<task id='n%d'/>\n", "send": "<sendTask id='n%d'/>\n",
					"receive": "<receiveTask id='n%d'/>\n", "end": "<endEvent id='n%d'/>\n", "xor": "<exclusiveGateway id='n%d'/>\n",
					"sendEnd": "<endEvent id='n%d'><messageEventDefinition/></endEvent>\n", "and": "<parallelGateway id='n%d'/>\n",
					"choice": "<eventBasedGateway id='n%d'/>\n",
					"catch":  "<intermediateCatchEvent id='n%d'><messageEventDefinition/></intermediateCatchEvent>\n",
				}[n.kind], i)
			}
		}
		for i, f := range g.flows {
			if g.nodes[f[0]].pool == pool {
				fmt.Fprintf(&b, "<sequenceFlow id='f%d' sourceRef='n%d' targetRef='n%d'/>\n", i, f[0], f[1])
			}
		}
		b.WriteString("</process>\n")
	}
	b.WriteString("</definitions>")
	return b.String()
}

// compare explores a net and the reference.
func (g *graph) compare(t *rapid.T, src string, n Net, pools []int, messages [][2]int) {
	want := &reference{graph: g, messages: messages, ran: map[int]bool{}, after: map[string][]string{}}
	if !want.explore(pools) {
		return // too large, or without a bound
	}
	compiled, err := net.Compile(n.Definition)
	if err != nil && len(pools) > 1 {
		return // a pool has no path to an end, and may never begin
	}
	if err != nil { // no path leads to an end
		require.False(t, want.completes(), "%v\n%s", err, src)
		return
	}
	got := modeltest.Explore(compiled, 20_000)
	if got.Big {
		return
	}
	all := src + "\n" + modeltest.Show(n.Definition)
	require.Equal(t, want.completes(), got.Stuck == "" && got.Left == "", "%v: %s\n%s\n%s", got, got.Stuck, got.Left, all)
	if got.Left != "" {
		// What leads to the end acts at once and ends the case, so that other branches do not continue to where they stop.
		got = modeltest.Explore(net.MustCompile(patient(n)), 20_000)
	}
	var dead []string
	for i, e := range g.nodes {
		if slices.Contains(pools, e.pool) && !want.ran[i] {
			dead = append(dead, fmt.Sprint("n", i))
		}
	}
	slices.Sort(dead)
	var gotDead []string
	for _, name := range got.Dead {
		if n.IDs[name] != "" {
			gotDead = append(gotDead, name)
		}
	}
	slices.Sort(gotDead)
	if got.Big {
		return
	}
	require.Equal(t, dead, gotDead, all)
}

// patient lets the gateways before the end, and what gathers ends, take their time.
func patient(n Net) *net.Definition {
	d := *n.Definition
	d.Tasks = slices.Clone(d.Tasks)
	end := d.Conditions[slices.IndexFunc(d.Conditions, func(c net.Condition) bool { return c.Role == net.End })].Name
	for i := range d.Tasks {
		t := &d.Tasks[i]
		ends := slices.ContainsFunc(d.Flows, func(f net.Flow) bool { return f.From == t.Name && f.To == end })
		if ends || t.Join == net.Or && n.IDs[t.Name] == "" {
			t.Kind = net.Atomic
		}
	}
	return &d
}

// reference moves tokens. A state has the tokens of each flow, then the messages for each node, then the starts to come.
type reference struct {
	*graph
	messages [][2]int
	ran      map[int]bool
	after    map[string][]string // by state
	initial  string
	empty    []string
}

func (r *reference) awaits(node int) bool {
	return slices.ContainsFunc(r.messages, func(m [2]int) bool { return m[1] == node })
}

// explore looks at every state, and reports whether there are few.
func (r *reference) explore(pools []int) bool {
	state := make([]byte, len(r.flows)+2*len(r.nodes))
	for i, n := range r.nodes {
		if n.kind == "start" && slices.Contains(pools, n.pool) && !r.awaits(i) {
			state[len(r.flows)+len(r.nodes)+i] = 1
		}
	}
	r.initial = string(state)
	for open := []string{r.initial}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		if _, seen := r.after[at]; seen {
			continue
		}
		if len(r.after) > 2000 || slices.Max([]byte(at)) > 4 {
			return false
		}
		next := r.steps(at)
		r.after[at] = next
		open = append(open, next...)
		if !strings.ContainsFunc(at[:len(r.flows)]+at[len(r.flows)+len(r.nodes):], func(c rune) bool { return c != 0 }) {
			r.empty = append(r.empty, at)
		}
	}
	return true
}

// completes reports whether a state without a token can be reached from every state.
func (r *reference) completes() bool {
	before := map[string][]string{}
	for at, next := range r.after {
		for _, to := range next {
			before[to] = append(before[to], at)
		}
	}
	good := map[string]bool{}
	for open := r.empty; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		if !good[at] {
			good[at] = true
			open = append(open, before[at]...)
		}
	}
	return len(good) == len(r.after)
}

// steps lists the states after one step of one node.
func (r *reference) steps(at string) (next []string) {
	for i, n := range r.nodes {
		var in []int
		for k, f := range r.flows {
			switch {
			case f[1] == i && n.kind == "catch":
				in = append(in, r.outs(f[0])[0]) // the flows behind an event-based gateway are one place
			case f[1] == i:
				in = append(in, k)
			}
		}
		switch {
		case n.kind == "start":
			in = []int{len(r.flows) + len(r.nodes) + i}
			if r.awaits(i) {
				in = []int{len(r.flows) + i}
			}
			next = append(next, r.fire(at, i, in)...)
		case n.kind == "and":
			next = append(next, r.fire(at, i, in)...)
		default:
			for _, k := range in {
				take := []int{k}
				if r.awaits(i) {
					take = append(take, len(r.flows)+i)
				}
				next = append(next, r.fire(at, i, take)...)
			}
		}
	}
	return next
}

// fire takes a token from each of some places, and returns the states behind it: one for each choice.
func (r *reference) fire(at string, node int, take []int) (next []string) {
	state := []byte(at)
	for _, k := range take {
		if state[k] == 0 {
			return nil
		}
		state[k]--
	}
	r.ran[node] = true
	for _, m := range r.messages {
		if m[0] == node {
			state[len(r.flows)+m[1]]++
		}
	}
	out := r.outs(node)
	switch kind := r.nodes[node].kind; {
	case kind == "xor" && len(out) > 0:
		for _, k := range out {
			one := slices.Clone(state)
			one[k]++
			next = append(next, string(one))
		}
		return next
	case kind == "choice":
		out = out[:1]
	}
	for _, k := range out {
		state[k]++
	}
	return []string{string(state)}
}
