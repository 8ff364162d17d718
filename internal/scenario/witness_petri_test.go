package scenario

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// petri makes a plain net of transitions, each with the numbers of the places that it takes from and puts into; marked
// is how many of the first places hold a token.
func petri(places, marked int, transitions ...[2][]int) *net.Petri {
	p := &net.Petri{Name: "w"}
	for i := range places {
		place := net.PetriPlace{Name: fmt.Sprintf("p%d", i)}
		if i < marked {
			place.Initial = 1
		}
		p.Places = append(p.Places, place)
	}
	for i, t := range transitions {
		arcs := func(places []int) (arcs []net.PetriArc) {
			for _, place := range places {
				arcs = append(arcs, net.PetriArc{Place: place, Weight: 1})
			}
			return arcs
		}
		p.Transitions = append(p.Transitions, net.PetriTransition{Name: fmt.Sprintf("t%d", i), In: arcs(t[0]), Out: arcs(t[1])})
	}
	return p
}

func replayPetri(t *testing.T, p *net.Petri, seen map[net.Code]int) {
	t.Helper()
	for _, f := range verify.Petri(p, verify.Options{States: 5000}).Findings {
		text, err := WitnessPetri(p, f)
		if f.Witness == nil {
			require.ErrorIs(t, err, ErrNoWitness)
			continue
		}
		require.NoError(t, err)
		seen[f.Code]++
		replay(t, text, f)
	}
}

func TestPlainWitnessesRunInTheEngine(t *testing.T) {
	type arcs = [2][]int
	tests := map[string]*net.Petri{
		"left over":         petri(4, 1, arcs{{0}, {1, 2}}, arcs{{1}, {3}}, arcs{{2}, {3}}),
		"stuck":             petri(4, 1, arcs{{0}, {1}}, arcs{{0}, {2}}, arcs{{1, 2}, {3}}),
		"several sinks":     petri(4, 1, arcs{{0}, {1, 2}}, arcs{{1}, {3}}, arcs{{1, 2}, {3}}, arcs{{1}, {3}}),
		"unsafe":            petri(5, 1, arcs{{0}, {1, 2}}, arcs{{1}, {3}}, arcs{{2}, {3}}, arcs{{3}, {4}}),
		"several sources":   petri(4, 2, arcs{{0}, {2}}, arcs{{1}, {2}}, arcs{{2}, {3}}),
		"marked, with loop": petri(3, 1, arcs{{0}, {0, 1}}, arcs{{0, 1}, {2}}),
		"no output":         petri(3, 1, arcs{{0}, {1, 2}}, arcs{{1}, nil}, arcs{{1, 2}, nil}),
		"no way out":        petri(4, 1, arcs{{0}, {1, 2}}, arcs{{1}, {3}}, arcs{{2}, {2}}),
		"no end":            petri(3, 1, arcs{{0}, {1, 2}}, arcs{{1}, {1, 2}}, arcs{{2}, {2}}),
		"dead parts":        petri(8, 2, arcs{{0}, {2}}, arcs{{2, 1}, {3}}, arcs{{2, 4}, {5}}, arcs{{5, 6}, {7}}),
		"dead part":         petri(7, 1, arcs{{0}, {1, 2}}, arcs{{1}, {3}}, arcs{{2}, {3}}, arcs{{4, 5}, {3, 6}}),
	}
	tests["resets"] = petri(4, 1, arcs{{0}, {1, 2}}, arcs{{1}, {3}}, arcs{{2}, {3}})
	tests["resets"].Transitions[1].Resets = []int{0}
	seen := map[net.Code]int{}
	for name, p := range tests {
		t.Run(name, func(t *testing.T) { replayPetri(t, p, seen) })
	}
	for _, code := range []net.Code{verify.ImproperCompletion, verify.NoOptionToComplete, verify.Unsafe, verify.Unbounded} {
		require.Positive(t, seen[code], code)
	}
}

func TestPlainNetsThatAreNoWorkflows(t *testing.T) {
	type arcs = [2][]int
	weight := petri(2, 1, arcs{{0}, {1}})
	weight.Transitions[0].Out[0].Weight = 2
	many := petri(2, 1, arcs{{0}, {1}})
	many.Places[0].Initial = 2
	tests := map[string]struct {
		p    *net.Petri
		want string
	}{
		"weight":   {weight, `an arc of transition "t0" moves several tokens`},
		"several":  {many, `place "p0" begins with several tokens`},
		"no input": {petri(2, 1, arcs{{0}, {1}}, arcs{nil, {1}}), `transition "t1" has no input`},
		"unmarked": {petri(2, 0, arcs{{0}, {1}}), `no place with an arc is marked`},
	}
	for name, test := range tests {
		_, err := WitnessPetri(test.p, verify.Finding{Code: verify.Unsafe, Witness: &verify.Witness{}})
		require.ErrorContains(t, err, test.want, name)
	}
}

func TestRandomPlainWitnessesRunInTheEngine(t *testing.T) {
	nets := testsize.Pick(20, 60, 4000)
	seen := map[net.Code]int{}
	for seed := range uint64(nets) {
		rng := rand.New(rand.NewPCG(seed, 11))
		places := 3 + rng.IntN(5)
		var transitions [][2][]int
		for i := range places - 1 {
			in := []int{i}
			if other := rng.IntN(4 * places); other < places-1 && other != i {
				in = append(in, other)
			}
			transitions = append(transitions, [2][]int{in, {i + 1}})
		}
		if rng.IntN(2) == 0 { // a second sink
			transitions = append(transitions, [2][]int{{rng.IntN(places - 1)}, {places}})
			places++
		}
		for range rng.IntN(6) {
			in, out := rng.Perm(places - 2)[:1+rng.IntN(min(2, places-2))], rng.Perm(places)[:1+rng.IntN(2)]
			transitions = append(transitions, [2][]int{in, out})
		}
		p := petri(places, 1+rng.IntN(2), transitions...)
		for i := range p.Transitions {
			if rng.IntN(8) == 0 {
				p.Transitions[i].Resets = []int{rng.IntN(places - 1)}
			}
		}
		replayPetri(t, p, seen)
	}
	t.Log(seen)
	require.Len(t, seen, 4)
}
