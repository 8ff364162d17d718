package net

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// blocks builds nets of nested blocks: sequences, and-blocks, xor-blocks, or-blocks and loops, as people draw them.
type blocks struct {
	d       *Definition
	rng     *rand.Rand
	regions bool
}

// blockNet is a net of some number of tasks. With regions, one task in ten cancels what stands in another part of the
// net, so blocks are entangled.
func blockNet(seed uint64, tasks int, regions bool) *Net {
	b := &blocks{
		d:   &Definition{Name: "w", Conditions: []Condition{{Name: "i", Role: Start}, {Name: "o", Role: End}}},
		rng: rand.New(rand.NewPCG(seed, 0)), regions: regions,
	}
	first, last := b.block(tasks)
	b.flow("i", first)
	b.flow(last, "o")
	if regions {
		for i := range b.d.Tasks {
			if b.rng.IntN(10) == 0 {
				f := b.d.Flows[b.rng.IntN(len(b.d.Flows)-2)]
				b.d.Tasks[i].Cancels = []string{b.d.Tasks[b.rng.IntN(len(b.d.Tasks))].Name, ImplicitName(f.From, f.To)}
			}
		}
	}
	return MustCompile(b.d)
}

func (b *blocks) task(join, split Rule) string {
	name := fmt.Sprintf("t%d", len(b.d.Tasks))
	b.d.Tasks = append(b.d.Tasks, Task{Name: name, Join: join, Split: split})
	return name
}

func (b *blocks) flow(from, to string) { b.d.Flows = append(b.d.Flows, Flow{From: from, To: to}) }

// block makes a block of about so many tasks, and returns its first and its last one.
func (b *blocks) block(tasks int) (first, last string) {
	if tasks < 4 {
		t := b.task(And, And)
		return t, t
	}
	switch kind := b.rng.IntN(6); kind {
	case 0, 1:
		first, mid := b.block(tasks / 2)
		next, last := b.block(tasks - tasks/2)
		b.flow(mid, next)
		return first, last
	case 2:
		in, out := b.task(Xor, And), b.task(And, Xor)
		first, last := b.block(tasks - 2)
		b.flow(in, first)
		b.flow(last, out)
		b.flow(out, in)
		return in, out
	default:
		gate := []Rule{And, Xor, Or}[kind-3]
		split, join := b.task(And, gate), b.task(gate, And)
		branches := min(2+b.rng.IntN(4), tasks-2)
		for range branches {
			first, last := b.block((tasks - 2) / branches)
			b.flow(split, first)
			b.flow(last, join)
		}
		return split, join
	}
}

// question is a decision that a case has to make.
type question struct {
	join    TaskID
	marking Marking
	busy    Bits
}

// play runs a case at random, starting and completing whatever can be, and collects the questions on its way.
func play(n *Net, rng *rand.Rand, steps int) []question {
	var asked []question
	m, busy := n.InitialMarking(), NewBits(n.NumTasks())
	for range steps {
		var can []TaskID
		for i := range n.NumTasks() {
			t := TaskID(i)
			if n.Task(t).Join == Or && !busy.Has(i) && partly(n, t, m) {
				asked = append(asked, question{t, m.Clone(), busy.Clone()})
			}
			if busy.Has(i) || n.Enabled(t, m, busy).Enabled {
				can = append(can, t)
			}
		}
		if len(can) == 0 {
			return asked
		}
		t := can[rng.IntN(len(can))]
		if !busy.Has(int(t)) {
			for _, c := range n.Consumes(nil, t, m) {
				m[c]--
			}
			busy.Add(int(t))
			continue
		}
		busy.Remove(int(t))
		tasks, conditions := n.Region(t)
		for _, u := range tasks {
			busy.Remove(int(u))
		}
		for _, c := range conditions {
			m[c] = 0
		}
		outputs := n.Outputs(t)
		only := rng.IntN(len(outputs))
		for i, c := range outputs {
			if gate := n.Task(t).Split; gate == And || i == only || gate == Or && rng.IntN(2) == 0 {
				m[c]++
			}
		}
	}
	return asked
}

func partly(n *Net, t TaskID, m Marking) bool {
	marked := 0
	for _, c := range n.Inputs(t) {
		if m[c] > 0 {
			marked++
		}
	}
	return marked > 0 && marked < len(n.Inputs(t))
}

// questions collects what cases of many nets ask.
func questions(nets int, tasks int, regions bool) (ask []func() Decision, asked []question) {
	for seed := range uint64(nets) {
		n := blockNet(seed, tasks, regions)
		for _, q := range play(n, rand.New(rand.NewPCG(seed, 1)), 400) {
			ask = append(ask, func() Decision { return n.Enabled(q.join, q.marking, q.busy) })
			asked = append(asked, q)
		}
	}
	return ask, asked
}

// Decisions of cases on nets of 200 tasks: the mean is what go test prints, and the percentiles are over the decisions.
func BenchmarkOrJoin(b *testing.B) {
	for _, regions := range []bool{false, true} {
		b.Run(fmt.Sprintf("blocks/regions=%v", regions), func(b *testing.B) {
			ask, _ := questions(40, 200, regions)
			times := make([]time.Duration, len(ask))
			for i, f := range ask {
				times[i] = time.Hour
				for range 5 {
					began := time.Now()
					f()
					times[i] = min(times[i], time.Since(began))
				}
			}
			slices.Sort(times)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				ask[i%len(ask)]()
				i++
			}
			b.ReportMetric(float64(len(ask)), "questions")
			for _, p := range []float64{50, 99, 99.9, 100} {
				b.ReportMetric(float64(times[int(float64(len(times)-1)*p/100)].Nanoseconds()), fmt.Sprintf("p%v-ns", p))
			}
		})
	}
	for _, shape := range []struct{ name, marking string }{
		{"nothing elsewhere", "b0x8->J"},
		{"lone token", "b0x8->J b7x2"},
		{"behind an and-join", "b0x8->J S7->b7x0 S7->b8x0"},
		{"behind a dead and-join", "b0x8->J S7->b7x0"},
	} {
		b.Run(shape.name, func(b *testing.B) {
			n := fanNet()
			join, _ := n.TaskByName("J")
			m, busy := marked(n, shape.marking)
			b.ReportAllocs()
			for b.Loop() {
				n.Enabled(join, m, busy)
			}
		})
	}
}

// fanNet has an or-split over 20 branches of 9 tasks, two by two behind an and-join but the first.
func fanNet() *Net {
	d := notation("start i\nend o\ntask S split=or\ntask J join=or\ni -> S\nJ -> o")
	for i := range 20 {
		name := func(k int) string { return fmt.Sprintf("b%dx%d", i, k) }
		for k := range 9 {
			d.Tasks = append(d.Tasks, Task{Name: name(k)})
			if k > 0 {
				d.Flows = append(d.Flows, Flow{From: name(k - 1), To: name(k)})
			}
		}
		pair := (i+1)/2*2 - 1
		if i == 0 {
			d.Flows = append(d.Flows, Flow{From: "S", To: name(0)}, Flow{From: name(8), To: "J"})
			continue
		}
		split, join := fmt.Sprintf("S%d", pair), fmt.Sprintf("A%d", pair)
		if i == pair {
			d.Tasks = append(d.Tasks, Task{Name: split}, Task{Name: join})
			d.Flows = append(d.Flows, Flow{From: "S", To: split}, Flow{From: join, To: "J"})
		}
		d.Flows = append(d.Flows, Flow{From: split, To: name(0)}, Flow{From: name(8), To: join})
	}
	return MustCompile(d)
}

// Cases on nets of blocks, each with every block closed by its own gate, never meet a decision that the budgets do not
// cover, and no decision allocates memory.
func TestOrJoinOnBlocks(t *testing.T) {
	for _, regions := range []bool{false, true} {
		ask, asked := questions(10, 120, regions)
		require.Greater(t, len(ask), 200)
		for i, f := range ask {
			require.False(t, f().Undecided, "join %d", asked[i].join)
		}
		allocated := testing.AllocsPerRun(20, func() {
			for _, f := range ask[:100] {
				f()
			}
		})
		require.True(t, underRace || allocated <= 5, "%v in 100 decisions; the pool may lose its memory to the collector", allocated)
	}
}
