package verify_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// grower makes nets of pieces: a piece has a first and a last task, takes one token and gives one back, and completes
// whenever its parts do, so the whole is sound.
type grower struct {
	rng   *rand.Rand
	d     *net.Definition
	names int
	// features wanted
	routing, regions, orBlocks bool
	// nestedOr allows an or-block in a branch of another, within a loop. That is not sound: its join and the outer one
	// wait for each other.
	nestedOr bool
}

// context says where a piece lies.
type context struct{ loop, orInLoop bool }

func newGrower(seed int64) *grower {
	return &grower{rng: rand.New(rand.NewSource(seed)), d: &net.Definition{Name: "grown", Conditions: []net.Condition{
		{Name: "begin", Role: net.Start}, {Name: "done", Role: net.End},
	}}}
}

// grow makes a whole net of about the given number of tasks.
func (g *grower) grow(size int) {
	first, last := g.piece(size, context{})
	g.flow("begin", first)
	g.flow(last, "done")
}

func (g *grower) task(join, split net.Rule) string {
	g.names++
	t := net.Task{Name: fmt.Sprintf("T%d", g.names), Join: join, Split: split}
	if g.routing && g.rng.Intn(4) == 0 {
		t.Kind = net.Routing
	}
	g.d.Tasks = append(g.d.Tasks, t)
	return t.Name
}

// work makes a task that is no routing task.
func (g *grower) work() string {
	t := g.task(net.And, net.And)
	g.d.Tasks[len(g.d.Tasks)-1].Kind = net.Atomic
	return t
}

func (g *grower) condition() string {
	g.names++
	c := net.Condition{Name: fmt.Sprintf("c%d", g.names)}
	g.d.Conditions = append(g.d.Conditions, c)
	return c.Name
}

func (g *grower) flow(from, to string) { g.d.Flows = append(g.d.Flows, net.Flow{From: from, To: to}) }

// join joins two tasks, directly or by a condition.
func (g *grower) join(from, to string) {
	if g.rng.Intn(3) > 0 {
		g.flow(from, to)
		return
	}
	c := g.condition()
	g.flow(from, c)
	g.flow(c, to)
}

// piece makes a piece of about the given number of tasks.
func (g *grower) piece(size int, in context) (first, last string) {
	k := g.rng.Intn(12)
	switch {
	case size <= 1:
		t := g.task(net.And, net.And)
		return t, t
	case size == 2 || k < 3:
		first, a := g.piece(size/2, in)
		b, last := g.piece(size-size/2, in)
		g.join(a, b)
		return first, last
	case k < 5:
		return g.block(size, net.And, in)
	case k < 6:
		return g.block(size, net.Xor, in)
	case k < 8 && g.orBlocks && (g.nestedOr || !in.orInLoop):
		in.orInLoop = in.loop
		return g.block(size, net.Or, in)
	case k < 9:
		return g.choice(size, in)
	case k < 10 && g.regions:
		return g.discriminator(size, in)
	default:
		return g.loop(size, in)
	}
}

// block is a split and a join of the same kind around some branches.
func (g *grower) block(size int, gate net.Rule, in context) (split, join string) {
	split, join = g.task(net.And, gate), g.task(gate, net.And)
	branches := 2 + g.rng.Intn(2)
	if gate != net.And && g.rng.Intn(3) == 0 {
		g.flow(split, join) // an empty branch
		branches = 1
	}
	for range branches {
		first, last := g.piece((size-2)/branches, in)
		g.join(split, first)
		g.join(last, join)
	}
	return split, join
}

// choice is a condition with several tasks behind it: the first to start takes the token. A routing task would leave the others no
// chance.
func (g *grower) choice(size int, in context) (split, join string) {
	split, join = g.task(net.And, net.And), g.task(net.Xor, net.And)
	c := g.condition()
	g.flow(split, c)
	for range 2 {
		t := g.work()
		g.flow(c, t)
		first, last := g.piece((size-4)/2, in)
		g.join(t, first)
		g.join(last, join)
	}
	return split, join
}

// loop repeats a piece, and may go back by another.
func (g *grower) loop(size int, in context) (head, tail string) {
	head, tail = g.task(net.Xor, net.And), g.task(net.And, net.Xor)
	in.loop = true
	first, last := g.piece(size-3, in)
	g.join(head, first)
	g.join(last, tail)
	if g.rng.Intn(2) == 0 {
		g.join(tail, head)
		return head, tail
	}
	first, last = g.piece(1, in)
	g.join(tail, first)
	g.join(last, head)
	return head, tail
}

// discriminator starts two branches; the first to arrive continues and cancels the other.
func (g *grower) discriminator(size int, in context) (split, join string) {
	split, join = g.task(net.And, net.And), g.task(net.Xor, net.And)
	owner, tasks, conditions, flows := len(g.d.Tasks)-1, len(g.d.Tasks), len(g.d.Conditions), len(g.d.Flows)
	in.orInLoop = in.loop // an or-join in one branch would wait for what comes when the other wins, and goes round
	for range 2 {
		first, last := g.piece((size-2)/2, in)
		g.join(split, first)
		g.join(last, join)
	}
	isTask := map[string]bool{}
	for i := range g.d.Tasks {
		isTask[g.d.Tasks[i].Name] = true
	}
	var region []string
	for _, t := range g.d.Tasks[tasks:] {
		region = append(region, t.Name)
	}
	for _, c := range g.d.Conditions[conditions:] {
		region = append(region, c.Name)
	}
	for _, f := range g.d.Flows[flows:] {
		if isTask[f.From] && isTask[f.To] {
			region = append(region, net.ImplicitName(f.From, f.To))
		}
	}
	g.d.Tasks[owner].Cancels = region
	return split, join
}

// mutate changes the definition in one random way.
func (g *grower) mutate() {
	d := g.d
	if len(d.Flows) == 0 {
		return
	}
	t := &d.Tasks[g.rng.Intn(len(d.Tasks))]
	switch g.rng.Intn(11) {
	case 0, 1:
		t.Join = net.Rule(g.rng.Intn(3))
	case 2, 3:
		t.Split = net.Rule(g.rng.Intn(3))
	case 4:
		g.flow(t.Name, d.Tasks[g.rng.Intn(len(d.Tasks))].Name)
	case 5:
		i := g.rng.Intn(len(d.Flows))
		d.Flows = append(append([]net.Flow(nil), d.Flows[:i]...), d.Flows[i+1:]...)
	case 6:
		t.Cancels = append(append([]string(nil), t.Cancels...), d.Tasks[g.rng.Intn(len(d.Tasks))].Name)
		if c := d.Conditions[g.rng.Intn(len(d.Conditions))]; g.rng.Intn(2) == 0 {
			t.Cancels = append(t.Cancels, c.Name)
		}
	case 7:
		t.Kind = net.Kind(g.rng.Intn(2))
	case 8, 9:
		if c := d.Conditions[g.rng.Intn(len(d.Conditions))]; c.Role != net.End {
			g.flow(c.Name, t.Name)
		}
	case 10:
		if len(d.Conditions) > 2 {
			g.flow(t.Name, d.Conditions[1+g.rng.Intn(len(d.Conditions)-1)].Name)
		}
	}
}

// compile makes a net of what has grown. Routing tasks on a cycle are refused; then no task is a routing task.
func (g *grower) compile() *net.Net {
	if n, err := net.Compile(g.d); err == nil {
		return n
	}
	for i := range g.d.Tasks {
		g.d.Tasks[i].Kind = net.Atomic
	}
	n, err := net.Compile(g.d)
	if err != nil {
		return nil // a mutant that is no net
	}
	return n
}

// rounds is how many random nets a test tries: 20,000 in the nightly form.
func rounds() int {
	return testsize.Pick(400, 400, 20_000)
}

func codesOf(rep verify.Report) []string {
	var list []string
	for _, f := range rep.Findings {
		list = append(list, f.String())
	}
	return list
}

// TestRandomNetsAgainstOracle compares every finding, for sound nets by construction and for mutants of them, with a
// walk over all states.
func TestRandomNetsAgainstOracle(t *testing.T) {
	tally := map[string]int{}
	for seed := range rounds() {
		g := newGrower(int64(seed))
		g.orBlocks, g.regions, g.routing, g.nestedOr = seed%2 == 0, seed%3 == 0, seed%5 == 0, seed%4 == 0
		g.grow(1 + g.rng.Intn(12))
		mutations := g.rng.Intn(4)
		for range mutations {
			g.mutate()
		}
		n := g.compile()
		if n == nil {
			tally["no net"]++
			continue
		}
		what := truthKind(t, n, fmt.Sprintf("seed %d", seed))
		if mutations == 0 && !g.nestedOr && !(g.routing && g.regions) { // a routing branch is always the first to arrive
			require.Contains(t, []string{"sound", "too large"}, what, "seed %d: %s", seed, describe(n))
		}
		tally[what]++
	}
	t.Log(tally)
}

// wild makes a small net with no design at all: a chain of tasks, some flows across it, some regions.
func wild(seed int64) *net.Net {
	g := newGrower(seed)
	g.routing = seed%4 == 0
	pick := func() net.Rule { return net.Rule(g.rng.Intn(3)) }
	var tasks, targets []string
	for range 2 + g.rng.Intn(4) {
		tasks = append(tasks, g.task(pick(), pick()))
	}
	for range g.rng.Intn(4) {
		c := g.condition()
		targets = append(targets, c)
		g.flow(tasks[g.rng.Intn(len(tasks))], c)
		g.flow(c, tasks[g.rng.Intn(len(tasks))])
	}
	targets = append(targets, tasks...)
	g.flow("begin", tasks[0])
	g.flow(tasks[len(tasks)-1], "done")
	for i := range tasks[1:] {
		g.join(tasks[i], tasks[i+1])
	}
	for range 1 + g.rng.Intn(6) {
		from, to := targets[g.rng.Intn(len(targets))], append(targets, "done")[g.rng.Intn(len(targets)+1)]
		if from[0] == 'T' || to[0] == 'T' {
			g.flow(from, to)
		}
	}
	for range g.rng.Intn(3) {
		t := &g.d.Tasks[g.rng.Intn(len(tasks))]
		for range 1 + g.rng.Intn(3) {
			t.Cancels = append(t.Cancels, targets[g.rng.Intn(len(targets))])
		}
	}
	return g.compile()
}

// TestWildNetsAgainstOracle does the same with nets that no author would design, where everything touches everything.
func TestWildNetsAgainstOracle(t *testing.T) {
	tally := map[string]int{}
	for seed := range rounds() {
		if n := wild(int64(seed)); n != nil {
			tally[truthKind(t, n, fmt.Sprintf("wild seed %d", seed))]++
		} else {
			tally["no net"]++
		}
	}
	t.Log(tally)
}

// truthKind compares one net with the oracle, replays its witnesses, and says what kind of net it was.
func truthKind(t *testing.T, n *net.Net, name string) string {
	t.Helper()
	want := oracle(n)
	rep := verify.Net(n, verify.Options{States: 30_000})
	for _, f := range rep.Findings {
		replayNet(t, n, f)
	}
	switch {
	case want.growing:
		require.NotEqual(t, verify.Sound, rep.Verdict, "%s: %s", name, describe(n))
		if rep.Verdict == verify.Unknown {
			return "growing, unknown"
		}
		return "growing"
	case !want.whole:
		return "too large"
	}
	require.Equal(t, want.findings, codesOf(rep), "%s: %s\n%v", name, describe(n), rep.Verdict)
	if len(want.findings) == 0 {
		require.Equal(t, verify.Sound, rep.Verdict)
		return "sound"
	}
	require.Contains(t, []verify.Verdict{verify.Unsound, verify.WeaklySound}, rep.Verdict)
	return "unsound"
}

// describe writes a net in the notation of scenario files, to be pasted into a test.
func describe(n *net.Net) string {
	d := n.Definition()
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %s\n", d.Name)
	for _, c := range d.Conditions {
		fmt.Fprintf(&b, "  %s %s\n", [...]string{"condition", "start", "end"}[c.Role], c.Name)
	}
	for _, t := range d.Tasks {
		fmt.Fprintf(&b, "  %s %s split=%s join=%s\n", [...]string{"task", "dummy", "composite"}[t.Kind], t.Name, t.Split, t.Join)
	}
	for _, f := range d.Flows {
		fmt.Fprintf(&b, "  flow %s -> %s\n", f.From, f.To)
	}
	for _, t := range d.Tasks {
		if len(t.Cancels) > 0 {
			fmt.Fprintf(&b, "  cancel %s: %s\n", t.Name, strings.Join(t.Cancels, ", "))
		}
	}
	return b.String()
}
