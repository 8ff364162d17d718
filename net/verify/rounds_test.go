package verify_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// tangles parts a token into branches that are state machines without structure: a choice among several entries, and
// from each place ways to the next and to others, forth and back. At the end the branches meet.
func tangles(rng *rand.Rand, branches, places, entries int) *net.Petri {
	p := &net.Petri{Name: "tangles"}
	place := func() int {
		p.Places = append(p.Places, net.PetriPlace{Name: fmt.Sprint("p", len(p.Places))})
		return len(p.Places) - 1
	}
	transition := func(in, out []int) {
		tr := net.PetriTransition{Name: fmt.Sprint("t", len(p.Transitions))}
		for _, q := range in {
			tr.In = append(tr.In, net.PetriArc{Place: q, Weight: 1})
		}
		for _, q := range out {
			tr.Out = append(tr.Out, net.PetriArc{Place: q, Weight: 1})
		}
		p.Transitions = append(p.Transitions, tr)
	}
	start, end := place(), place()
	p.Places[start].Initial = 1
	in, all, last := make([][]int, entries), make([][]int, branches), make([]int, branches)
	for b := range branches {
		for range places {
			all[b] = append(all[b], place())
		}
		last[b] = all[b][places-1]
		for e := range entries {
			in[e] = append(in[e], all[b][e*(1+rng.Intn(2))%places])
		}
	}
	for e := range entries {
		transition([]int{start}, in[e])
	}
	for _, ps := range all {
		for i, q := range ps[:places-1] {
			transition([]int{q}, []int{ps[i+1]})
			if to := ps[rng.Intn(places)]; to != q {
				transition([]int{q}, []int{to})
			}
		}
	}
	transition(last, []int{end})
	return p
}

// Parallel state machines have more states than anybody can look at, but a token that can go round may as well stay.
func TestTanglesAreReduced(t *testing.T) {
	p := tangles(rand.New(rand.NewSource(1)), 40, 40, 3)
	require.Equal(t, verify.Sound, verify.Petri(p, verify.Options{States: 100}).Verdict)

	first := &p.Transitions[1]
	lost := p.Places[first.Out[7].Place].Name
	first.Out = slices.Delete(first.Out, 7, 8)
	rep := verify.Petri(p, verify.Options{States: 1000})
	require.Equal(t, []string{"no-option-to-complete"}, codesOf(rep), lost)
	replayPetri(t, p, rep.Findings[0])
}

// A transition that waits for two places that are never marked together is dead, whatever runs beside it: so it is in
// the reduced net, where there are few states.
func TestDeadTasksAreSeenInTheReducedNet(t *testing.T) {
	arcs := [][3][]string{{{"a"}, {"x"}}, {{"a"}, {"y"}}, {{"x"}, {"x2"}}, {{"x2"}, {"b"}}, {{"y"}, {"b"}},
		{{"x2", "y"}, {"w"}}, {{"w"}, {"b"}}}
	fork, join := []string{"a"}, []string{"b"}
	for i := range 40 {
		c, d := fmt.Sprint("c", i), fmt.Sprint("d", i)
		arcs = append(arcs, [3][]string{{c}, {d}})
		fork, join = append(fork, c), append(join, d)
	}
	arcs = append(arcs, [3][]string{{"i"}, fork}, [3][]string{join, {"o"}})
	rep := verify.Petri(petri(map[string]int{"i": 1}, arcs...), verify.Options{States: 1000})
	require.Equal(t, verify.Unsound, rep.Verdict)
	require.Contains(t, codesOf(rep), "dead-task t5")
	require.Subset(t, []string{"dead-task t5", "dead-task t6"}, codesOf(rep))
}

// What a search that ends early says of dead tasks is what one that sees everything says.
func TestDeadTasksOfTheReducedNetAgainstOracle(t *testing.T) {
	tally := map[string]int{}
	for seed := range rounds() {
		rng := rand.New(rand.NewSource(int64(seed)))
		p := tangles(rng, 1+rng.Intn(3), 2+rng.Intn(4), 1+rng.Intn(4))
		for range rng.Intn(3) {
			tr := &p.Transitions[rng.Intn(len(p.Transitions))]
			if at := rng.Intn(len(tr.Out)); len(tr.Out) > 1 && rng.Intn(2) == 0 {
				tr.Out = slices.Delete(tr.Out, at, at+1)
			} else if q := 1 + rng.Intn(len(p.Places)-1); !slices.ContainsFunc(tr.Out, func(a net.PetriArc) bool { return a.Place == q }) {
				tr.Out[at].Place = q
			}
		}
		walk := newExhaustive(p, oracleStates).decide()
		if walk.tooLarge {
			continue
		}
		want := walk.findings
		rep := verify.Petri(p, verify.Options{States: 1 + rng.Intn(20)})
		tally[rep.Verdict.String()]++
		require.True(t, rep.Verdict != verify.Sound || len(want) == 0, "seed %d: %v", seed, want)
		for _, f := range rep.Findings {
			if f.Witness != nil {
				replayPetri(t, p, f)
			} else {
				require.Contains(t, want, f.String(), "seed %d", seed)
			}
		}
	}
	t.Log(tally)
}

// Where more moves take from a place than a walk notifies of its changes, it tests itself whether they are enabled.
func TestLockOfManyBranches(t *testing.T) {
	var arcs [][3][]string
	fork, join := []string{"lock"}, []string{"lock"}
	for i := range 100 {
		free, held, done := fmt.Sprint("f", i), fmt.Sprint("h", i), fmt.Sprint("d", i)
		fork, join = append(fork, free), append(join, done)
		arcs = append(arcs, [3][]string{{free, "lock"}, {held}}, [3][]string{{held}, {done, "lock"}})
	}
	arcs[101][1] = arcs[101][1][:1] // one forgets to give it back
	arcs = append(arcs, [3][]string{{"i"}, fork}, [3][]string{join, {"o"}})
	p := petri(map[string]int{"i": 1}, arcs...)
	rep := verify.Petri(p, verify.Options{States: 2000})
	require.Equal(t, []string{"no-option-to-complete"}, codesOf(rep))
	replayPetri(t, p, rep.Findings[0])
}

// A loop that adds a token each time round is found in the reduced net even if most runs take all of them again, and
// lie too deep for a search.
func TestGrowthIsSeenInTheReducedNet(t *testing.T) {
	var arcs [][3][]string
	var fork, join []string
	for i := range 40 {
		a, b, c := fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)
		fork, join = append(fork, a), append(join, c)
		arcs = append(arcs, [3][]string{{a}, {b}}, [3][]string{{b}, {c}}, [3][]string{{c}, {b}})
	}
	arcs[3][1], arcs[4][0], arcs[5][1] = []string{"x"}, []string{"z"}, []string{"x"}
	arcs = append(arcs, [3][]string{{"x"}, {"x", "q"}}, [3][]string{{"x", "q"}, {"z"}}, [3][]string{{"z"}, {"x"}},
		[3][]string{{"i"}, fork}, [3][]string{join, {"o"}})
	p := petri(map[string]int{"i": 1}, arcs...)
	rep := verify.Petri(p, verify.Options{States: 300})
	require.Equal(t, verify.Unsound, rep.Verdict)
	replayPetri(t, p, rep.Findings[0])
}
