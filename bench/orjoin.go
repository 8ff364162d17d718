package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/net"
)

// author draws nets as people do: nested blocks, each closed by the gate that opened it. One task in ten may cancel
// what stands elsewhere in the net, a task and a condition, which entangles the blocks.
type author struct {
	d   *net.Definition
	rng *rand.Rand
}

func drawNet(seed uint64, tasks int, regions bool) (*net.Net, error) {
	a := &author{rng: rand.New(rand.NewPCG(seed, 0)), d: &net.Definition{Name: "blocks",
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}}}}
	first, last := a.block(tasks)
	a.flow("i", first)
	a.flow(last, "o")
	for i := range a.d.Tasks {
		if regions && a.rng.IntN(10) == 0 {
			f := a.d.Flows[a.rng.IntN(len(a.d.Flows)-2)] // the last two lead from the start and to the end
			a.d.Tasks[i].Cancels = []string{a.d.Tasks[a.rng.IntN(len(a.d.Tasks))].Name, net.ImplicitName(f.From, f.To)}
		}
	}
	return net.Compile(a.d)
}

func (a *author) task(join, split net.Rule) string {
	name := fmt.Sprintf("t%d", len(a.d.Tasks))
	a.d.Tasks = append(a.d.Tasks, net.Task{Name: name, Join: join, Split: split})
	return name
}

func (a *author) flow(from, to string) { a.d.Flows = append(a.d.Flows, net.Flow{From: from, To: to}) }

// block draws a block of about so many tasks. Half of those that part are or-blocks.
func (a *author) block(tasks int) (first, last string) {
	if tasks < 4 {
		t := a.task(net.And, net.And)
		return t, t
	}
	kind := a.rng.IntN(7)
	switch {
	case kind < 2: // a sequence
		first, mid := a.block(tasks / 2)
		next, last := a.block(tasks - tasks/2)
		a.flow(mid, next)
		return first, last
	case kind == 2: // a loop
		in, out := a.task(net.Xor, net.And), a.task(net.And, net.Xor)
		first, last := a.block(tasks - 2)
		a.flow(in, first)
		a.flow(last, out)
		a.flow(out, in)
		return in, out
	}
	gate := []net.Rule{net.And, net.Xor, net.Or, net.Or}[kind-3]
	split, join := a.task(net.And, gate), a.task(gate, net.And)
	branches := min(2+a.rng.IntN(4), tasks-2)
	for range branches {
		first, last := a.block((tasks - 2) / branches)
		a.flow(split, first)
		a.flow(last, join)
	}
	return split, join
}

// game plays a case at random and times every or-join that has to be decided on its way: one with tokens in some of its
// inputs and none in others.
type game struct {
	n    *net.Net
	rng  *rand.Rand
	m    net.Marking
	busy net.Bits
	took []time.Duration
	open int // decisions that went past the budgets
}

func (g *game) play(steps int) {
	for range steps {
		if can := g.look(); len(can) > 0 {
			g.move(can[g.rng.IntN(len(can))])
			continue
		}
		return
	}
}

// look lists the tasks that can start or complete.
func (g *game) look() []net.TaskID {
	var can []net.TaskID
	for i := range g.n.NumTasks() {
		t := net.TaskID(i)
		if g.busy.Has(i) || !g.busy.Has(i) && g.decide(t) {
			can = append(can, t)
		}
	}
	return can
}

// decide asks the net, and measures the answer: the best of five, since the other four may have been interrupted.
func (g *game) decide(t net.TaskID) bool {
	marked := 0
	for _, c := range g.n.Inputs(t) {
		if g.m[c] > 0 {
			marked++
		}
	}
	if g.n.Task(t).Join != net.Or || marked == 0 || marked == len(g.n.Inputs(t)) {
		return g.n.Enabled(t, g.m, g.busy).Enabled
	}
	best := time.Hour
	var d net.Decision
	for range 5 {
		at := time.Now()
		d = g.n.Enabled(t, g.m, g.busy)
		best = min(best, time.Since(at))
	}
	g.took = append(g.took, best)
	if d.Undecided {
		g.open++
	}
	return d.Enabled
}

func (g *game) move(t net.TaskID) {
	if !g.busy.Has(int(t)) {
		for _, c := range g.n.Consumes(nil, t, g.m) {
			g.m[c]--
		}
		g.busy.Add(int(t))
		return
	}
	g.busy.Remove(int(t))
	tasks, conditions := g.n.Region(t)
	for _, u := range tasks {
		g.busy.Remove(int(u))
	}
	for _, c := range conditions {
		g.m[c] = 0
	}
	outputs, gate := g.n.Outputs(t), g.n.Task(t).Split
	only := g.rng.IntN(len(outputs))
	for i, c := range outputs {
		if gate == net.And || i == only || gate == net.Or && g.rng.IntN(2) == 0 {
			g.m[c]++
		}
	}
}

// orJoins plays so many nets of 200 tasks and returns percentiles over all decisions, in microseconds.
func orJoins(nets int, regions bool) (metrics, error) {
	var took []time.Duration
	open := 0
	for seed := range uint64(nets) {
		n, err := drawNet(seed, 200, regions)
		if err != nil {
			return nil, err
		}
		g := &game{n: n, rng: rand.New(rand.NewPCG(seed, 1)), m: n.InitialMarking(), busy: net.NewBits(n.NumTasks())}
		g.play(400)
		took, open = append(took, g.took...), open+g.open
	}
	slices.Sort(took)
	us := func(p float64) float64 { return 1000 * ms(percentile(took, p)) }
	return metrics{"p50": us(50), "p99": us(99), "max": us(100), "n": float64(len(took)), "open": float64(open)}, nil
}
