package verify_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// shape makes a small plain net of shapes that no editor of workflows draws: several parts without a path between
// them, several places with several tokens, places that nothing puts into, transitions without inputs or without
// outputs, weights, transitions that put back what they take or empty what they take or put.
func shape(rng *rand.Rand) *net.Petri {
	p := &net.Petri{Name: "shape"}
	for range 1 + rng.Intn(2) {
		part(p, rng)
	}
	for i := range p.Places {
		p.Places[i].Name = fmt.Sprintf("p%d", i)
	}
	for i := range p.Transitions {
		p.Transitions[i].Name = fmt.Sprintf("t%d", i)
	}
	return p
}

// part adds a part that has no arcs to the others.
func part(p *net.Petri, rng *rand.Rand) {
	first, size := len(p.Places), 2+rng.Intn(4)
	for range size {
		p.Places = append(p.Places, net.PetriPlace{Initial: max(0, rng.Intn(6)-3) * rng.Intn(2)})
	}
	p.Places[first].Initial = max(1, p.Places[first].Initial)
	arcs := func(most int) []net.PetriArc {
		var list []net.PetriArc
		for range rng.Intn(most + 1) {
			list = addArc(list, first+rng.Intn(size))
		}
		for i := range list {
			list[i].Weight += max(0, rng.Intn(8)-5)
		}
		return list
	}
	for range 1 + rng.Intn(4) {
		t := net.PetriTransition{In: arcs(2), Out: arcs(2)}
		if len(t.In) == 0 && rng.Intn(6) > 0 {
			t.In = []net.PetriArc{{Place: first + rng.Intn(size), Weight: 1}}
		}
		if len(t.In) > 0 && rng.Intn(8) == 0 {
			t.Out = addArc(t.Out, t.In[0].Place) // puts back
		}
		switch rng.Intn(8) {
		case 0:
			t.Resets = []int{first + rng.Intn(size)}
		case 1:
			if len(t.Out) > 0 {
				t.Resets = []int{t.Out[0].Place}
			}
		}
		p.Transitions = append(p.Transitions, t)
	}
}

// TestShapesAgainstExhaustiveWalk compares verdicts, findings and runs for such nets.
func TestShapesAgainstExhaustiveWalk(t *testing.T) {
	tally := map[string]int{}
	for seed := range 4 * rounds() {
		p := shape(rand.New(rand.NewSource(int64(seed))))
		compareWithWalk(t, tally, fmt.Sprintf("shape %d: %s", seed, describePetri(p)), p, 3000)
	}
	t.Log(tally)
	require.Zero(t, tally["disagree"])
}

// Very many tokens are decided where their number does not matter: the run that shows a finding has the true counts.
func TestVeryManyTokens(t *testing.T) {
	const many = 1_000_000
	type arcs = [3][]string
	marks := map[string]int{"i": 1, "pool": many}
	for _, c := range []struct {
		name     string
		net      *net.Petri
		findings []string
		run      string
	}{
		{"a pool is left over", petri(marks, arcs{{"i", "pool"}, {"a"}}, arcs{{"a"}, {"o"}}),
			names("improper-completion"), "t0; t1; then pool 999999, o 1"},
		{"a pool is given back", petri(marks, arcs{{"i", "pool"}, {"a"}}, arcs{{"a"}, {"pool", "o"}}),
			names("improper-completion"), "t0; t1; then pool 1000000, o 1"},
		{"stuck beside a pool", petri(marks, arcs{{"i", "pool"}, {"a"}}, arcs{{"a", "b"}, {"o"}}),
			names("dead-task t1", "no-option-to-complete"), "t0; then pool 999999, a 1"},
		{"cases in a row, one end", petri(map[string]int{"i": many}, arcs{{"i"}, {"a"}}, arcs{{"a"}, {"o"}}),
			names("improper-completion"), "t0; t1; then i 999999, o 1"},
		{"each token finds one of two ends", petri(map[string]int{"i": many}, arcs{{"i"}, {"o1"}}, arcs{{"i"}, {"a"}}, arcs{{"a"}, {"o2"}}), nil, ""},
		{"each token may get stuck", petri(map[string]int{"i": many}, arcs{{"i"}, {"o1"}}, arcs{{"i"}, {"a"}}, arcs{{"a"}, {"a"}}, arcs{{"i"}, {"o2"}}),
			names("no-option-to-complete"), "t1; then i 999999, a 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := verify.Petri(c.net, verify.Options{})
			require.Equal(t, c.findings, codesOf(rep))
			require.Equal(t, c.findings == nil, rep.Verdict == verify.Sound, rep.Exhausted)
			for _, f := range rep.Findings {
				if f.Witness != nil {
					require.Equal(t, c.run, f.Witness.String())
					replayPetri(t, c.net, f)
				}
			}
		})
	}
}

// What is not decided says so: a transition empties the pool before the end, and nothing shows that it always can.
func TestTooManyTokens(t *testing.T) {
	type arcs = [3][]string
	emptied := petri(map[string]int{"i": 1, "pool": 1_000_000}, arcs{{"i", "pool"}, {"a"}}, arcs{{"a"}, {"i"}}, arcs{{"a"}, {"o"}, {"pool"}})
	rep := verify.Petri(emptied, verify.Options{})
	require.Equal(t, verify.Unknown, rep.Verdict)
	require.Equal(t, verify.LimitTokens, rep.Exhausted)

	heavy := petri(map[string]int{"i": 1}, arcs{{"i"}, {"a"}}, arcs{{"a"}, {"o"}})
	heavy.Transitions[0].Out[0].Weight = 1000
	rep = verify.Petri(heavy, verify.Options{})
	require.Equal(t, verify.Unknown, rep.Verdict)
	require.Equal(t, verify.LimitTokens, rep.Exhausted)
	heavy.Transitions[0].Out[0].Weight, heavy.Places[0].Initial = 1, -1
	require.Equal(t, verify.LimitTokens, verify.Petri(heavy, verify.Options{}).Exhausted)
}

// A run that would take more than there is shows nothing.
func TestManyTokensThatRunOut(t *testing.T) {
	type arcs = [3][]string
	p := petri(map[string]int{"i": 1, "pool": 130}, arcs{{"i", "pool"}, {"a"}}, arcs{{"a", "pool"}, {"o"}})
	p.Transitions[0].In[1].Weight, p.Transitions[1].In[1].Weight = 100, 100
	rep := verify.Petri(p, verify.Options{})
	require.Empty(t, rep.Findings)
	require.Equal(t, verify.LimitTokens, rep.Exhausted)
}

// A place that only a reset arc touches gets advice of its own.
func TestPlaceThatOnlyResetsTouch(t *testing.T) {
	type arcs = [3][]string
	p := petri(map[string]int{"i": 1}, arcs{{"i"}, {"o"}, {"odd"}})
	w := verify.Petri(p, verify.Options{}).Warnings
	require.Len(t, w, 1)
	require.Equal(t, `only the reset arc of "t0" touches "odd", and no transition puts into it, so there is never anything to remove`, w[0].Text)
	require.Equal(t, `let a transition put tokens into "odd", or take it out with its reset arc`, w[0].Fix)
	p.Places[2].Initial = 1
	w = verify.Petri(p, verify.Options{}).Warnings
	require.Equal(t, `only the reset arc of "t0" touches "odd", so what it holds at first is left over in every run without "t0"`, w[0].Text)
	require.Equal(t, `let a transition take from "odd", or let it begin empty`, w[0].Fix)
}

// A token that nothing takes is advised of by the place where it lies.
func TestStrandedToken(t *testing.T) {
	type arcs = [3][]string
	p := petri(map[string]int{"i": 1}, arcs{{"i"}, {"o"}}, arcs{{"i"}, {"o2"}})
	p.Places = append(p.Places, net.PetriPlace{Name: "odd", Initial: 1})
	f := verify.Petri(p, verify.Options{}).Findings
	require.Len(t, f, 1)
	require.Equal(t, `a run can get stuck with "odd"; no transition takes from "odd"`, f[0].Text)
	require.Equal(t, `let a transition take from "odd", or put nothing there`, f[0].Fix)
}
