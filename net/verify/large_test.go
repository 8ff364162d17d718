package verify_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// largeNet grows a sound workflow net of about the given number of conditions and tasks.
func largeNet(seed int64, nodes int, orBlocks, regions bool) *net.Net {
	g := newGrower(seed)
	g.orBlocks, g.regions = orBlocks, regions
	first, last := "", ""
	for size := 0; size < nodes/2; { // a chain of pieces, for a single one of that size is often just two long branches
		a, b := g.piece(min(nodes/2-size, 200+g.rng.Intn(2000)), context{})
		if size = len(g.d.Tasks); first == "" {
			first = a
		} else {
			g.join(last, a)
		}
		last = b
	}
	g.flow("begin", first)
	g.flow(last, "done")
	return net.MustCompile(g.d)
}

// largePetri grows a sound plain workflow net: places and transitions are refined into pieces, side by side or one
// after the other, with loops, and a few places that couple what runs in parallel.
func largePetri(seed int64, nodes int) *net.Petri {
	rng := rand.New(rand.NewSource(seed))
	p := &net.Petri{Name: fmt.Sprintf("grown-%d", nodes)}
	place := func() int {
		p.Places = append(p.Places, net.PetriPlace{Name: fmt.Sprintf("p%d", len(p.Places))})
		return len(p.Places) - 1
	}
	transition := func(from, to int) int {
		p.Transitions = append(p.Transitions, net.PetriTransition{
			Name: fmt.Sprintf("t%d", len(p.Transitions)),
			In:   []net.PetriArc{{Place: from, Weight: 1}}, Out: []net.PetriArc{{Place: to, Weight: 1}},
		})
		return len(p.Transitions) - 1
	}
	start, end := place(), place()
	p.Places[start].Initial = 1
	transition(start, end)
	for len(p.Places)+len(p.Transitions) < nodes {
		t := rng.Intn(len(p.Transitions))
		switch rng.Intn(5) {
		case 0, 1: // a transition becomes two, one after the other
			mid := place()
			u := transition(mid, mid)
			p.Transitions[u].Out, p.Transitions[t].Out = p.Transitions[t].Out, []net.PetriArc{{Place: mid, Weight: 1}}
		case 2: // a second way to do the same
			u := transition(start, end)
			p.Transitions[u].In = append([]net.PetriArc(nil), p.Transitions[t].In...)
			p.Transitions[u].Out = append([]net.PetriArc(nil), p.Transitions[t].Out...)
		case 3: // a transition becomes two with two places between them
			a, b := place(), place()
			u := transition(a, a)
			p.Transitions[u].In = append(p.Transitions[u].In, net.PetriArc{Place: b, Weight: 1})
			p.Transitions[u].Out = p.Transitions[t].Out
			p.Transitions[t].Out = []net.PetriArc{{Place: a, Weight: 1}, {Place: b, Weight: 1}}
		case 4: // a loop at a place
			if q := p.Transitions[t].Out[0].Place; q != end {
				transition(q, q)
			}
		}
	}
	return p
}

func TestLargeNets(t *testing.T) {
	const nodes = 24_000
	for seed := range int64(3) {
		requireFast(t, fmt.Sprintf("plain net %d", seed), func() verify.Report {
			return verify.Petri(largePetri(seed, nodes), verify.Options{})
		})
	}
	for _, with := range []struct{ orBlocks, regions bool }{{false, false}, {true, false}, {true, true}} {
		n := largeNet(1, nodes, with.orBlocks, with.regions)
		requireFast(t, fmt.Sprintf("workflow net, %+v", with), func() verify.Report {
			return verify.Net(n, verify.Options{})
		})
	}
}

func requireFast(t *testing.T, name string, decide func() verify.Report) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	rep := decide()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	t.Logf("%s: %v, %v, %d states, %d MiB allocated", name, rep.Verdict, took, rep.States, (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Equal(t, verify.Sound, rep.Verdict, name)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
}
