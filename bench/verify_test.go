package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// The naive search and verification agree on small nets of each kind, whole and with a token lost, and what compare
// counts adds up.
func TestNaiveSearchAgrees(t *testing.T) {
	var all []subject
	for seed := range uint64(20) {
		all = append(all,
			subject{name: fmt.Sprint("plain ", seed), petri: drawPlain(seed, 40)},
			subject{name: fmt.Sprint("mutant ", seed), petri: mutate(drawPlain(seed, 40))},
			subject{name: fmt.Sprint("chain ", seed), definition: drawChain(seed, 30, seed%2 == 0)})
	}
	m, err := compare(all, 5000)
	require.NoError(t, err)
	require.EqualValues(t, len(all), m["decided"]+m["over"])
	require.Greater(t, m["decided"], 50.0)
	require.Positive(t, m["ratio"])
}

func TestNaiveSearchDecides(t *testing.T) {
	place := func(names ...string) (all []net.PetriPlace) {
		for i, name := range names {
			p := net.PetriPlace{Name: name}
			if i == 0 {
				p.Initial = 1
			}
			all = append(all, p)
		}
		return all
	}
	both := append(arc(1), arc(2)...)
	for _, c := range []struct {
		name string
		p    net.Petri
		want answer
	}{
		{"a sequence", net.Petri{Places: place("i", "o"), Transitions: []net.PetriTransition{{In: arc(0), Out: arc(1)}}},
			answer{states: 2, sound: true, proper: true}},
		{"one of two sinks", net.Petri{Places: place("i", "o1", "o2"), Transitions: []net.PetriTransition{
			{In: arc(0), Out: arc(1)}, {In: arc(0), Out: arc(2)}}}, answer{states: 2, sound: true, proper: true}},
		{"both sinks, and one twice", net.Petri{Places: place("i", "a", "b", "o1", "o2"), Transitions: []net.PetriTransition{
			{In: arc(0), Out: both}, {In: arc(1), Out: arc(3)}, {In: arc(2), Out: append(arc(3), arc(4)...)}}},
			answer{states: 5, sound: true, proper: true}},
		{"a token is left", net.Petri{Places: place("i", "a", "b", "o"), Transitions: []net.PetriTransition{
			{In: arc(0), Out: both}, {In: arc(1), Out: arc(3)}, {In: arc(2), Out: arc(3)}}}, answer{states: 4}},
		{"the only way gets stuck", net.Petri{Places: place("i", "a", "b", "o"), Transitions: []net.PetriTransition{
			{In: arc(0), Out: arc(1)}, {In: both, Out: arc(3)}}}, answer{states: 2}},
		{"a transition never fires", net.Petri{Places: place("i", "a", "b", "o"), Transitions: []net.PetriTransition{
			{In: arc(0), Out: arc(3)}, {In: arc(1), Out: arc(2)}, {In: arc(2), Out: arc(1)}}},
			answer{states: 2, proper: true}},
		{"tokens pile up", net.Petri{Places: place("i", "a", "o"), Transitions: []net.PetriTransition{
			{In: arc(0), Out: arc(1)}, {In: arc(1), Out: []net.PetriArc{{Place: 1, Weight: 2}}}, {In: arc(1), Out: arc(2)}}},
			answer{states: 102, over: true}},
	} {
		require.Equal(t, c.want, searchPetri(&c.p, 100), c.name)
	}
}

// A disagreement is an error that names the net.
func TestDisagreementIsAnError(t *testing.T) {
	for verdict, agrees := range map[verify.Verdict]bool{verify.Sound: true, verify.WeaklySound: false, verify.Unsound: false} {
		require.Equal(t, agrees, answer{sound: true, proper: true}.agrees(verdict), verdict)
	}
	require.True(t, answer{proper: true}.agrees(verify.WeaklySound))
	require.True(t, answer{proper: true}.agrees(verify.Unsound), "a dead transition, in a net without cancellation")
	require.False(t, answer{}.agrees(verify.WeaklySound))
	require.False(t, answer{}.agrees(verify.Sound))
}

// The large nets have the size and the verdict that they are to have.
func TestLargeNets(t *testing.T) {
	for _, n := range large {
		s := n.draw()
		nodes := 0
		if s.petri != nil {
			nodes = len(s.petri.Places) + len(s.petri.Transitions)
		} else {
			compiled, err := net.Compile(s.definition)
			require.NoError(t, err)
			nodes = compiled.NumConditions() + compiled.NumTasks()
		}
		require.InDelta(t, largeNodes, nodes, 40, n.name)
		rep, err := s.verify()
		require.NoError(t, err)
		require.Equal(t, n.verdict, rep.Verdict, n.name)
	}
	_, err := verifyLarge(job{quick: true}, subject{name: "chain", definition: drawChain(1, 50, true)}, verify.Unsound)
	require.EqualError(t, err, "chain is unsound by construction, and verified as sound")
}

// Without an archive its steps are left out, and the report says where to put it.
func TestAbsentLibraries(t *testing.T) {
	t.Setenv("TASQ_MODELS", t.TempDir())
	b := &bench{quick: true, results: make(map[string]map[string]sample)}
	for _, s := range verifySteps() {
		require.Equal(t, s.needs == "", b.has(s), s.name)
	}
	require.Len(t, b.absent, len(libraries))
	var out bytes.Buffer
	b.report(&out, header{})
	require.Contains(t, out.String(), "Left out for want of models: ibm-a-b1.tar.gz, yawl.tar.gz, bpmn.tar.gz; for each, set TASQ_MODELS to the folder")
	require.NotContains(t, out.String(), "Targets")
	_, err := verifyLibrary(newJob("", true), libraries[0])
	require.ErrorIs(t, err, modeltest.ErrAbsent)
}

// The given libraries are measured, every net gets a verdict, and the naive search agrees where it comes to an end.
func TestLibraries(t *testing.T) {
	for _, l := range libraries {
		if _, err := modeltest.Find(l.archive); err != nil {
			t.Skipf("the archive of models is not on this machine: %v", err)
		}
		files, err := modeltest.Read(l.archive, l.endings...)
		require.NoError(t, err)
		all, err := decode(files)
		require.NoError(t, err)
		all = wellFormed(all)
		m, err := compare(all, 500)
		require.NoError(t, err)
		require.EqualValues(t, len(all), m["decided"]+m["over"], l.name)
		require.Greater(t, m["decided"], 0.8*m["n"], l.name)
	}
}
