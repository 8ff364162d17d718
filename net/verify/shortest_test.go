package verify_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// shortestPetri walks over the markings of a plain net in rings, and says in how few firings each kind of violation can
// be shown. Nothing is looked for behind a second token in a place, if that is a violation itself.
func shortestPetri(p *net.Petri, strict bool, limit int) (least map[net.Code]int, whole bool) {
	sinks := p.Sinks()
	least = map[net.Code]int{}
	found := func(c net.Code, steps int) {
		if _, ok := least[c]; !ok {
			least[c] = steps
		}
	}
	first := dropSinks(p.Initial(), sinks)
	seen := map[string]bool{packed(first): true}
	for ring, steps := [][]int{first}, 0; len(ring) > 0; steps++ {
		var next [][]int
		for _, m := range ring {
			left := 0
			for _, c := range m {
				left += c
			}
			if over := len(sinks) == 1 && m[sinks[0]] > 0 || len(sinks) != 1 && left == 0; over {
				if len(sinks) == 1 && left > 1 {
					found(verify.ImproperCompletion, steps)
				}
				continue
			}
			moved := false
			for k := range p.Transitions {
				after := slices.Clone(m)
				if !firePetri(after, &p.Transitions[k]) {
					continue
				}
				moved = true
				dropSinks(after, sinks)
				if strict && slices.Max(after) > 1 {
					found(verify.Unsafe, steps+1)
				}
				if key := packed(after); !seen[key] {
					seen[key] = true
					next = append(next, after)
				}
			}
			if !moved {
				found(verify.NoOptionToComplete, steps)
			}
		}
		if len(seen) > limit {
			return least, false
		}
		ring = next
	}
	return least, true
}

func packed(m []int) string {
	key := make([]byte, len(m))
	for i, c := range m {
		key[i] = byte(c)
	}
	return string(key)
}

// Every witness of the IBM nets is as short as one can be. What a walk over all markings cannot come to within its
// bound is not compared. Each third net is tried, or each twelfth with -short; the nightly form tries all of them, with a higher bound.
func TestIBMWitnessesAreShortest(t *testing.T) {
	l := ibmLibrary(t)
	limit, every := testsize.Pick(500, 500, 200_000), testsize.Pick(12, 3, 1)
	tally := map[string]int{}
	for i, name := range l.names {
		if l.sound[name] || i%every != 0 {
			continue
		}
		p := l.nets[name]
		// One net is no workflow net, for a second source is never marked: what is said of safe nets is not asked of
		// it.
		least, whole := shortestPetri(p, len(p.Sinks()) > 1 || len(p.Sources()) == 1, limit)
		shortest, known := 0, 0
		for _, f := range verify.Petri(p, verify.Options{}).Findings {
			if f.Witness == nil {
				continue
			}
			n := len(f.Witness.Steps)
			if shortest == 0 || n < shortest {
				shortest = n
			}
			if steps, ok := least[f.Code]; ok && !loops(p, f) {
				require.Equal(t, steps, n, "%s: %s", name, f)
				tally["shortest of its kind"]++
			}
		}
		for _, steps := range least {
			if known == 0 || steps < known {
				known = steps
			}
		}
		switch {
		case known > 0:
			require.LessOrEqual(t, shortest, known, name)
			tally["nets with a shortest witness"]++
		case whole:
			tally["nets that run without end, or have dead transitions alone"]++
		default:
			tally["nets too large for the walk"]++
		}
	}
	t.Log(tally)
}

// loops reports whether the run leads into a loop without an exit, which the walk does not look for.
func loops(p *net.Petri, f verify.Finding) bool {
	if f.Code != verify.NoOptionToComplete {
		return false
	}
	m := p.Initial()
	for _, s := range f.Witness.Steps {
		i := slices.IndexFunc(p.Transitions, func(t net.PetriTransition) bool { return t.Name == s.Task })
		firePetri(m, &p.Transitions[i])
	}
	return slices.ContainsFunc(p.Transitions, func(t net.PetriTransition) bool { return firePetri(slices.Clone(m), &t) })
}

// shortestRuns walks over the states of a workflow net in rings, and says in how few steps each kind of violation can
// be shown. A step starts a task, completes one, or does both at once; a routing task always does both.
func shortestRuns(n *net.Net, limit int) (least map[net.Code]int, whole bool) {
	in := interpreter{n}
	least = map[net.Code]int{}
	found := func(c net.Code, steps int) {
		if _, ok := least[c]; !ok {
			least[c] = steps
		}
	}
	seen := map[string]bool{in.first().key(): true}
	for ring, steps := []caseState{in.first()}, 0; len(ring) > 0; steps++ {
		var next []caseState
		for _, s := range ring {
			if over, proper := in.over(s); over {
				if !proper {
					found(verify.ImproperCompletion, steps)
				}
				continue
			}
			after := in.steps(s)
			if len(after) == 0 {
				found(verify.NoOptionToComplete, steps)
			}
			for _, a := range after {
				if key := a.key(); !seen[key] {
					seen[key] = true
					next = append(next, a)
				}
			}
		}
		if len(seen) > limit || slices.ContainsFunc(next, func(s caseState) bool { return slices.Max(s.tokens) > oracleTokens }) {
			return least, false
		}
		ring = next
	}
	return least, true
}

// steps lists the states that one step leads to.
func (in interpreter) steps(s caseState) []caseState {
	var list []caseState
	for _, e := range in.events(s) {
		after := in.do(s, e)
		if e.start {
			for _, into := range in.routes(e.task) {
				list = append(list, in.do(after, event{task: e.task, into: into}))
			}
		}
		if !e.start || in.n.Task(e.task).Kind != net.Routing {
			list = append(list, after)
		}
	}
	return list
}

// TestWitnessesAreShortest compares the witnesses of random nets with a walk that knows nothing of moments and
// reduction.
func TestWitnessesAreShortest(t *testing.T) {
	tally := map[net.Code]int{}
	for seed := range rounds() / 4 {
		g := newGrower(int64(seed))
		g.orBlocks, g.regions, g.routing = seed%2 == 0, seed%3 == 0, seed%5 == 0
		g.grow(1 + g.rng.Intn(8))
		for range 1 + g.rng.Intn(3) {
			g.mutate()
		}
		for _, n := range []*net.Net{g.compile(), wild(int64(seed))} {
			if n == nil {
				continue
			}
			least, whole := shortestRuns(n, oracleStates)
			if !whole {
				continue
			}
			for _, f := range verify.Net(n, verify.Options{}).Findings {
				if steps, ok := least[f.Code]; ok && f.Witness != nil {
					require.False(t, f.Witness.Long)
					require.Len(t, f.Witness.Steps, steps, "seed %d: %s: %s\n%s", seed, f, f.Witness, describe(n))
					tally[f.Code]++
				}
			}
		}
	}
	t.Log(tally)
}
