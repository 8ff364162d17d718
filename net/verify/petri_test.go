package verify_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// petri reads a plain net: "a 1, b 0; t: a -> b" with a first part of places and their tokens.
func petri(marks map[string]int, transitions ...[3][]string) *net.Petri {
	p := &net.Petri{Name: "test"}
	index := map[string]int{}
	place := func(name string) int {
		if _, ok := index[name]; !ok {
			index[name] = len(p.Places)
			p.Places = append(p.Places, net.PetriPlace{Name: name, Initial: marks[name]})
		}
		return index[name]
	}
	for i, t := range transitions {
		tr := net.PetriTransition{Name: fmt.Sprintf("t%d", i)}
		for _, in := range t[0] {
			tr.In = append(tr.In, net.PetriArc{Place: place(in), Weight: 1})
		}
		for _, out := range t[1] {
			tr.Out = append(tr.Out, net.PetriArc{Place: place(out), Weight: 1})
		}
		for _, r := range t[2] {
			tr.Resets = append(tr.Resets, place(r))
		}
		p.Transitions = append(p.Transitions, tr)
	}
	return p
}

func names(list ...string) []string { return list }

func TestVerifyPetri(t *testing.T) {
	at := map[string]int{"i": 1}
	for _, c := range []struct {
		name     string
		net      *net.Petri
		findings []string
	}{
		{"sequence", petri(at, [3][]string{{"i"}, {"a"}}, [3][]string{{"a"}, {"o"}}), nil},
		{"two ends", petri(at, [3][]string{{"i"}, {"o1"}}, [3][]string{{"i"}, {"o2"}}), nil},
		{"two ends at once", petri(at, [3][]string{{"i"}, {"a", "b"}}, [3][]string{{"a"}, {"o1"}}, [3][]string{{"b"}, {"o2"}}), nil},
		{"one end reached twice", petri(at, [3][]string{{"i"}, {"a", "b"}}, [3][]string{{"a"}, {"o"}}, [3][]string{{"b"}, {"o"}}),
			names("improper-completion")},
		{"stuck", petri(at, [3][]string{{"i"}, {"a"}}, [3][]string{{"i"}, {"b"}}, [3][]string{{"a", "b"}, {"o"}}),
			names("dead-task t2", "no-option-to-complete")},
		{"unsafe", petri(at, [3][]string{{"i"}, {"a", "b"}}, [3][]string{{"a"}, {"c"}}, [3][]string{{"b"}, {"c"}}, [3][]string{{"c"}, {"o"}}),
			names("improper-completion", "unsafe c")},
		{"not safe, but no choice is free and all is well", petri(at, [3][]string{{"i"}, {"a", "b", "d"}}, [3][]string{{"a"}, {"c"}},
			[3][]string{{"b"}, {"c"}}, [3][]string{{"c", "d"}, {"d2"}}, [3][]string{{"c", "d2"}, {"o"}}), nil},
		{"unbounded", petri(at, [3][]string{{"i"}, {"a"}}, [3][]string{{"a"}, {"a", "b"}}, [3][]string{{"a", "b"}, {"o"}}),
			names("improper-completion", "unbounded b")},
		{"no token at first", petri(nil, [3][]string{{"i"}, {"o"}}), names("dead-task t0", "no-option-to-complete")},
		{"a reset clears what is left", petri(at, [3][]string{{"i"}, {"a", "b"}}, [3][]string{{"a"}, {"o"}, {"b"}},
			[3][]string{{"b"}, {"b2"}}, [3][]string{{"b2", "a"}, {"o"}}), names("improper-completion")},
		{"a reset clears all that is left", petri(at, [3][]string{{"i"}, {"a", "b"}}, [3][]string{{"a"}, {"o"}, {"b", "b2"}},
			[3][]string{{"b"}, {"b2"}}, [3][]string{{"b2", "a"}, {"o"}}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := verify.Petri(c.net, verify.Options{})
			require.Equal(t, c.findings, codesOf(rep))
			require.Equal(t, len(c.findings) == 0, rep.Verdict == verify.Sound)
			for _, f := range rep.Findings {
				if f.Witness != nil {
					replayPetri(t, c.net, f)
				}
			}
		})
	}
}

func TestWeightsAreCounted(t *testing.T) {
	p := petri(map[string]int{"i": 1}, [3][]string{{"i"}, {"a"}}, [3][]string{{"a"}, {"o"}})
	p.Transitions[0].Out[0].Weight = 3
	require.Equal(t, names("improper-completion"), codesOf(verify.Petri(p, verify.Options{})))
	p.Transitions[1].In[0].Weight = 3
	require.Equal(t, verify.Sound, verify.Petri(p, verify.Options{}).Verdict)
	p.Transitions[1].In[0].Weight = 2
	require.Equal(t, names("improper-completion"), codesOf(verify.Petri(p, verify.Options{})))
	p.Transitions[0].Out[0].Weight = 1000
	rep := verify.Petri(p, verify.Options{})
	require.Equal(t, verify.Unknown, rep.Verdict)
	require.Equal(t, verify.LimitTokens, rep.Exhausted)
}

// dropSinks forgets what several sinks hold.
func dropSinks(m []int, sinks []int) []int {
	if len(sinks) > 1 {
		for _, s := range sinks {
			m[s] = 0
		}
	}
	return m
}

// wildPetri makes a small plain net with no design: sometimes with weights, resets, more sources or sinks.
func wildPetri(rng *rand.Rand) *net.Petri {
	p := &net.Petri{Name: "wild"}
	for i := range 3 + rng.Intn(5) {
		p.Places = append(p.Places, net.PetriPlace{Name: fmt.Sprintf("p%d", i)})
	}
	p.Places[0].Initial = 1
	if rng.Intn(6) == 0 {
		p.Places[1].Initial = 1
	}
	arcs := func(skip int) []net.PetriArc {
		var list []net.PetriArc
		for i := range p.Places {
			if i != skip && rng.Intn(len(p.Places)) == 0 {
				list = append(list, net.PetriArc{Place: i, Weight: 1})
			}
		}
		return list
	}
	last := len(p.Places) - 1
	for i := range 2 + rng.Intn(6) {
		tr := net.PetriTransition{Name: fmt.Sprintf("t%d", i), In: arcs(last), Out: arcs(0)}
		if len(tr.In) == 0 {
			tr.In = []net.PetriArc{{Place: rng.Intn(last), Weight: 1}}
		}
		if len(tr.Out) == 0 && rng.Intn(8) > 0 {
			tr.Out = []net.PetriArc{{Place: 1 + rng.Intn(last), Weight: 1}}
		}
		if rng.Intn(10) == 0 {
			tr.In[0].Weight = 2
		}
		if rng.Intn(5) == 0 {
			tr.Resets = []int{rng.Intn(len(p.Places))}
		}
		p.Transitions = append(p.Transitions, tr)
	}
	return p
}
