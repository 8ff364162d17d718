package verify_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// bytesReader takes small numbers off a string of bytes, and zeros once it is used up.
type bytesReader struct{ rest []byte }

func (r *bytesReader) below(n int) int {
	if len(r.rest) == 0 || n == 0 {
		return 0
	}
	x := int(r.rest[0]) % n
	r.rest = r.rest[1:]
	return x
}

// fuzzedDefinition makes a definition of any shape, well-formed or not.
func fuzzedDefinition(data []byte) *net.Definition {
	r := &bytesReader{data}
	d := &net.Definition{Name: "fuzzed", Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}}}
	for i := range r.below(5) {
		d.Conditions = append(d.Conditions, net.Condition{Name: fmt.Sprintf("c%d", i), Role: net.Role(max(0, r.below(20)-17))})
	}
	for i := range 1 + r.below(6) {
		d.Tasks = append(d.Tasks, net.Task{
			Name: fmt.Sprintf("T%d", i), Kind: net.Kind(max(0, r.below(8)-5)), Join: net.Rule(r.below(3)), Split: net.Rule(r.below(3)),
		})
	}
	name := func() string {
		k := r.below(len(d.Conditions) + len(d.Tasks) + 1)
		switch {
		case k < len(d.Conditions):
			return d.Conditions[k].Name
		case k < len(d.Conditions)+len(d.Tasks):
			return d.Tasks[k-len(d.Conditions)].Name
		}
		return net.ImplicitName(d.Tasks[0].Name, d.Tasks[len(d.Tasks)-1].Name)
	}
	d.Flows = append(d.Flows, net.Flow{From: "i", To: "T0"}, net.Flow{From: d.Tasks[len(d.Tasks)-1].Name, To: "o"})
	for i := range d.Tasks[1:] {
		d.Flows = append(d.Flows, net.Flow{From: d.Tasks[i].Name, To: d.Tasks[i+1].Name})
	}
	for range r.below(12) {
		d.Flows = append(d.Flows, net.Flow{From: name(), To: name()})
	}
	for range r.below(4) {
		t := &d.Tasks[r.below(len(d.Tasks))]
		t.Cancels = append(t.Cancels, name())
	}
	return d
}

// Whatever is compiled is verified, as an exhaustive walk says, with any budget.
func FuzzVerify(f *testing.F) {
	f.Add([]byte{2, 0, 0, 4, 0, 2, 1, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6}, uint16(1000))
	f.Add([]byte{0, 3, 0, 0, 2, 0, 1, 1, 0, 2, 0, 6, 2, 3, 4, 4, 5, 2, 3, 3, 1, 2}, uint16(3))
	f.Fuzz(func(t *testing.T, data []byte, states uint16) {
		n, err := net.Compile(fuzzedDefinition(data))
		if err != nil {
			return
		}
		want := oracle(n)
		rep := verify.Net(n, verify.Options{States: int(states)})
		requireNoContradiction(t, n, want, rep, describe(n))
		if want.whole && want.states <= int(states)/8 && len(want.findings) > 0 {
			require.Equal(t, want.findings, codesOf(rep), describe(n))
		}
	})
}

// fuzzedPetri makes a plain net of any shape.
func fuzzedPetri(data []byte) *net.Petri {
	r := &bytesReader{data}
	p := &net.Petri{Name: "fuzzed"}
	for i := range r.below(8) {
		p.Places = append(p.Places, net.PetriPlace{Name: fmt.Sprintf("p%d", i), Initial: max(0, r.below(12)-9)})
	}
	arcs := func() []net.PetriArc {
		var list []net.PetriArc
		for range r.below(4) {
			if len(p.Places) > len(list) {
				list = append(list, net.PetriArc{Place: (r.below(8) + len(list)) % len(p.Places), Weight: 1 + max(0, r.below(20)-18)})
			}
		}
		return distinct(list)
	}
	for i := range r.below(8) {
		tr := net.PetriTransition{Name: fmt.Sprintf("t%d", i), In: arcs(), Out: arcs()}
		if len(p.Places) > 0 && r.below(5) == 4 {
			tr.Resets = []int{r.below(len(p.Places))}
		}
		p.Transitions = append(p.Transitions, tr)
	}
	return p
}

func distinct(arcs []net.PetriArc) []net.PetriArc {
	var list []net.PetriArc
	seen := map[int]bool{}
	for _, a := range arcs {
		if !seen[a.Place] {
			seen[a.Place] = true
			list = append(list, a)
		}
	}
	return list
}

// Any plain net is verified, within any budget, and what is found can be replayed.
func FuzzVerifyPetri(f *testing.F) {
	f.Add([]byte{3, 11, 0, 0, 2, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 2, 0}, uint16(100))
	f.Add([]byte{4, 11, 11, 0, 0, 3, 2, 0, 0, 1, 0, 2, 2, 0, 3, 0, 1, 2, 0, 1, 3, 0, 4, 1}, uint16(5))
	f.Fuzz(func(t *testing.T, data []byte, states uint16) {
		p := fuzzedPetri(data)
		rep := verify.Petri(p, verify.Options{States: int(states)})
		for _, x := range rep.Findings {
			if x.Witness != nil {
				replayPetri(t, p, x)
			}
		}
		require.True(t, rep.Verdict != verify.Unknown || rep.Exhausted != verify.NoLimit, "%+v", p)
		if len(p.Places) == 0 {
			return
		}
		if want := newExhaustive(p, oracleStates).decide(); !want.tooLarge {
			require.Empty(t, disagreement(rep, want), describePetri(p))
		}
	})
}
