package verify_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// epc makes an event-driven process chain at random and unfolds it into a plain net as WofYAWL does, which is how the
// SAP reference models are published: any subset of the starts may happen, any subset of the ends may be reached, and
// both are optional tasks around the chain. So many branches run side by side that markings come by the million.
type epc struct {
	p      *net.Petri
	places map[string]int
}

func newEPC(rng *rand.Rand, size int) *net.Petri {
	e := &epc{p: &net.Petri{Name: "epc"}, places: map[string]int{}}
	var kinds []net.Rule
	var edges [][2]int
	node := func(k net.Rule) int {
		kinds = append(kinds, k)
		return len(kinds) - 1
	}
	gates := []net.Rule{net.And, net.Xor, net.Or}
	var front []int // the nodes that lead nowhere yet
	for range 1 + rng.Intn(4) {
		front = append(front, node(net.Xor))
	}
	for len(kinds) < size {
		at := rng.Intn(len(front))
		switch from := front[at]; rng.Intn(3) {
		case 0:
			front[at] = node(net.Xor)
			edges = append(edges, [2]int{from, front[at]})
		case 1:
			split := node(gates[rng.Intn(3)])
			edges = append(edges, [2]int{from, split})
			front = append(front[:at], front[at+1:]...)
			for range 2 + rng.Intn(3) {
				front = append(front, node(net.Xor))
				edges = append(edges, [2]int{split, front[len(front)-1]})
			}
		default:
			rng.Shuffle(len(front), func(i, j int) { front[i], front[j] = front[j], front[i] })
			join, n := node(gates[rng.Intn(3)]), min(len(front), 2+rng.Intn(2))
			for _, f := range front[:n] {
				edges = append(edges, [2]int{f, join})
			}
			front = append(front[n:], join)
		}
	}
	in, out := make([][]string, len(kinds)), make([][]string, len(kinds))
	for _, x := range edges {
		out[x[0]] = append(out[x[0]], fmt.Sprintf("%d*%d", x[0], x[1]))
		in[x[1]] = append(in[x[1]], fmt.Sprintf("%d*%d", x[0], x[1]))
	}
	e.wrap(in, out)
	for i, k := range kinds {
		e.task(fmt.Sprint(i), k, in[i], out[i])
	}
	e.p.Places[e.place("i")].Initial = 1
	return e.p
}

// wrap puts the optional starts before the chain and the optional ends behind it.
func (e *epc) wrap(in, out [][]string) {
	var starts, begun, ends, reached []string
	for i := range in {
		if n := fmt.Sprint(i); len(in[i]) == 0 {
			in[i] = []string{"begin*" + n}
			e.task("without "+n, net.And, []string{"start " + n}, []string{"begun " + n})
			e.task("with "+n, net.And, []string{"start " + n}, []string{"begun " + n, in[i][0]})
			starts, begun = append(starts, "start "+n), append(begun, "begun "+n)
		}
		if n := fmt.Sprint(i); len(out[i]) == 0 {
			out[i] = []string{n + "*end"}
			e.task("no "+n, net.And, []string{"end " + n}, []string{"reached " + n})
			e.task("yes "+n, net.And, []string{"end " + n, out[i][0]}, []string{"reached " + n})
			ends, reached = append(ends, "end "+n), append(reached, "reached "+n)
		}
	}
	e.task("split", net.And, []string{"i"}, starts)
	e.task("skip", net.And, begun, ends)
	e.task("output", net.And, reached, []string{"o"})
}

// task adds a task with one gate for both sides: transitions that begin it, a busy place, transitions that end it.
func (e *epc) task(name string, gate net.Rule, in, out []string) {
	for i, ways := range [][][]string{sets(gate, in), sets(gate, out)} {
		for j, way := range ways {
			t := net.PetriTransition{Name: fmt.Sprintf("%s %d.%d", name, i, j)}
			busy := []net.PetriArc{{Place: e.place(name + " busy"), Weight: 1}}
			if t.In, t.Out = e.arcs(way), busy; i == 1 {
				t.In, t.Out = busy, t.In
			}
			e.p.Transitions = append(e.p.Transitions, t)
		}
	}
}

// sets lists what a gate may take or put: everything, one of all, or any of them.
func sets(gate net.Rule, all []string) [][]string {
	if gate == net.And {
		return [][]string{all}
	}
	var list [][]string
	for mask := 1; mask < 1<<len(all); mask++ {
		var set []string
		for i, s := range all {
			if mask>>i&1 == 1 {
				set = append(set, s)
			}
		}
		if gate == net.Or || len(set) == 1 {
			list = append(list, set)
		}
	}
	return list
}

func (e *epc) arcs(places []string) []net.PetriArc {
	var list []net.PetriArc
	for _, p := range places {
		list = append(list, net.PetriArc{Place: e.place(p), Weight: 1})
	}
	return list
}

func (e *epc) place(name string) int {
	if _, ok := e.places[name]; !ok {
		e.places[name] = len(e.p.Places)
		e.p.Places = append(e.p.Places, net.PetriPlace{Name: name})
	}
	return e.places[name]
}

// Chains of SAP's kind are all unsound: an end may be passed over that is reached later. That is found within a moderate
// number of states, however many there are, and mostly by a shortest run.
func TestUnfoldedChainsAreDecided(t *testing.T) {
	rng := rand.New(rand.NewSource(590))
	nets, long, many := testsize.Pick(30, 60, 590), 0, 0
	for i := range nets {
		p := newEPC(rng, 3+rng.Intn(40))
		rep := verify.Petri(p, verify.Options{})
		require.Equal(t, verify.Unsound, rep.Verdict, "net %d", i)
		if rep.States > 100_000 {
			many++
		}
		for _, f := range rep.Findings {
			if f.Witness != nil {
				replayPetri(t, p, f)
			}
			if f.Code == verify.ImproperCompletion && f.Witness.Long {
				long++
			}
		}
	}
	require.LessOrEqual(t, many, nets/50)
	require.Less(t, long, nets/5)
	t.Log(nets, "nets,", many, "with many states,", long, "with runs that may not be shortest")
}
