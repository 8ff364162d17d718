package verify_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// freeChoicePetri makes a plain net in which transitions that share an input share all, with one or two sinks.
func freeChoicePetri(rng *rand.Rand) *net.Petri {
	p := &net.Petri{Name: "free"}
	sinks := 1 + rng.Intn(2)
	inner := 3 + rng.Intn(6)
	for i := range inner + sinks {
		p.Places = append(p.Places, net.PetriPlace{Name: fmt.Sprintf("p%d", i)})
	}
	p.Places[0].Initial = 1
	for at := 0; at < inner; {
		size := 1 + rng.Intn(4)/3
		var in []net.PetriArc
		for ; size > 0 && at < inner; size-- {
			in = append(in, net.PetriArc{Place: at, Weight: 1})
			at++
		}
		for range 1 + rng.Intn(2) {
			t := net.PetriTransition{Name: fmt.Sprintf("t%d", len(p.Transitions)), In: in}
			for range 1 + rng.Intn(5)/2 {
				to := at + rng.Intn(len(p.Places)-at) // mostly further on
				if rng.Intn(8) == 0 {
					to = rng.Intn(len(p.Places))
				}
				t.Out = addArc(t.Out, to)
			}
			p.Transitions = append(p.Transitions, t)
		}
	}
	return p
}

// What settles a net without a search of all states agrees with a walk over all markings, finding by finding.
func TestSettledNetsAgainstExhaustiveWalk(t *testing.T) {
	tally, settled := map[string]int{}, 0
	for seed := range 4 * rounds() {
		p := freeChoicePetri(rand.New(rand.NewSource(int64(seed))))
		full := verify.Petri(p, verify.Options{})
		restore := verify.SettleAfter(1)
		soon := verify.Petri(p, verify.Options{})
		compareWithWalk(t, tally, fmt.Sprintf("seed %d: %s", seed, describePetri(p)), p, 3000)
		restore()
		require.Equal(t, full.Verdict, soon.Verdict, "seed %d", seed)
		require.True(t, full.Exhausted == soon.Exhausted || soon.Exhausted == verify.NoLimit, "seed %d", seed)
		if full.Exhausted == verify.NoLimit {
			require.Equal(t, findingsOf(full), findingsOf(soon), "seed %d: %s", seed, describePetri(p))
			requireRunsAsLong(t, full, soon, describePetri(p))
		}
		if soon.Exhausted == verify.NoLimit && soon.States < full.States {
			settled++
		}
	}
	t.Log(settled, tally)
	require.Zero(t, tally["disagree"])
	require.Greater(t, settled, 10)
}

// requireRunsAsLong compares the runs of two reports with the same findings.
func requireRunsAsLong(t *testing.T, one, other verify.Report, name string) {
	t.Helper()
	for i, f := range one.Findings {
		g := other.Findings[i]
		require.Equal(t, f.Code, g.Code, name)
		if f.Code == verify.DeadTask {
			require.Equal(t, f.Text, g.Text, name)
		} else if f.Code != verify.Unsafe || f.Subject == g.Subject {
			require.Len(t, g.Witness.Steps, len(f.Witness.Steps), "%s: %s", name, f)
		}
	}
}

// A loop without an exit is found although there is no deadlock: its places lead to no sink.
func TestLivelockIsNotSettled(t *testing.T) {
	defer verify.SettleAfter(1)()
	type arcs = [3][]string
	p := petri(map[string]int{"i": 1}, arcs{{"i"}, {"x", "a"}}, arcs{{"a"}, {"c"}}, arcs{{"c"}, {"a"}}, arcs{{"x"}, {"y", "z"}},
		arcs{{"y"}, {"w"}}, arcs{{"z"}, {"w"}}, arcs{{"w"}, {"o1"}}, arcs{{"w"}, {"o2"}})
	require.Equal(t, names("no-option-to-complete", "unsafe w"), codesOf(verify.Petri(p, verify.Options{})))
}
