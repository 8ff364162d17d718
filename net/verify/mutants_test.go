package verify_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// mutate removes or adds an arc, a place or a transition of a copy of the net.
func mutatePetri(p *net.Petri, rng *rand.Rand) *net.Petri {
	m := &net.Petri{Name: p.Name, Places: slices.Clone(p.Places)}
	for _, t := range p.Transitions {
		t.In, t.Out, t.Resets = slices.Clone(t.In), slices.Clone(t.Out), slices.Clone(t.Resets)
		m.Transitions = append(m.Transitions, t)
	}
	place, t := rng.Intn(len(m.Places)), &m.Transitions[rng.Intn(len(m.Transitions))]
	switch rng.Intn(6) {
	case 0:
		if all := len(t.In) + len(t.Out); all > 0 {
			if at := rng.Intn(all); at < len(t.In) {
				t.In = slices.Delete(t.In, at, at+1)
			} else {
				t.Out = slices.Delete(t.Out, at-len(t.In), at-len(t.In)+1)
			}
		}
	case 1:
		if rng.Intn(2) == 0 {
			t.In = addArc(t.In, place)
		} else {
			t.Out = addArc(t.Out, place)
		}
	case 2:
		removePlace(m, place)
	case 3:
		m.Places = append(m.Places, net.PetriPlace{Name: "added"})
		if rng.Intn(3) > 0 {
			t.Out = addArc(t.Out, len(m.Places)-1)
		}
		if u := &m.Transitions[rng.Intn(len(m.Transitions))]; rng.Intn(3) > 0 {
			u.In = addArc(u.In, len(m.Places)-1)
		}
	case 4:
		at := rng.Intn(len(m.Transitions))
		m.Transitions = slices.Delete(m.Transitions, at, at+1)
	default:
		added := net.PetriTransition{Name: "added"}
		if rng.Intn(8) > 0 {
			added.In = addArc(nil, place)
		}
		if rng.Intn(8) > 0 {
			added.Out = addArc(nil, rng.Intn(len(m.Places)))
		}
		m.Transitions = append(m.Transitions, added)
	}
	return m
}

func addArc(arcs []net.PetriArc, place int) []net.PetriArc {
	if slices.ContainsFunc(arcs, func(a net.PetriArc) bool { return a.Place == place }) {
		return arcs
	}
	return append(arcs, net.PetriArc{Place: place, Weight: 1})
}

func removePlace(p *net.Petri, place int) {
	p.Places = slices.Delete(p.Places, place, place+1)
	without := func(arcs []net.PetriArc) []net.PetriArc {
		var list []net.PetriArc
		for _, a := range arcs {
			if a.Place > place {
				a.Place--
			} else if a.Place == place {
				continue
			}
			list = append(list, a)
		}
		return list
	}
	for i := range p.Transitions {
		t := &p.Transitions[i]
		t.In, t.Out = without(t.In), without(t.Out)
		var resets []int
		for _, r := range t.Resets {
			if r > place {
				r--
			} else if r == place {
				continue
			}
			resets = append(resets, r)
		}
		t.Resets = resets
	}
}

// findingsOf lists what a report says, with every unsafe place by itself, as [exhaustive.decide] has them.
func findingsOf(rep verify.Report) []string {
	var list []string
	for _, f := range rep.Findings {
		if f.Code != verify.Unsafe {
			list = append(list, f.String())
			continue
		}
		for _, e := range f.Elements {
			list = append(list, "unsafe "+e.Name)
		}
	}
	slices.Sort(list)
	return list
}

// disagreement compares a report with what an exhaustive walk found; "" if they agree. The report may lack findings
// only if it says that it is incomplete.
func disagreement(rep verify.Report, want decided) string {
	got, sound := findingsOf(rep), len(want.findings) == 0
	switch {
	case rep.Verdict == verify.Unknown && rep.Exhausted == verify.NoLimit:
		return "unknown, and nothing ran out"
	case rep.Verdict != verify.Unknown && (rep.Verdict == verify.Sound) != sound:
		return fmt.Sprintf("%s, but the walk found %v", rep.Verdict, want.findings)
	}
	for _, f := range got {
		if !slices.Contains(want.findings, f) && !(want.open && f == string(verify.NoOptionToComplete)) {
			return fmt.Sprintf("%q is not so: the walk found %v", f, want.findings)
		}
	}
	for _, f := range want.findings {
		if !slices.Contains(got, f) && rep.Exhausted == verify.NoLimit {
			return fmt.Sprintf("%q is missing among %v, and the report does not say that it is incomplete", f, got)
		}
	}
	return ""
}

// TestMutantsAgainstExhaustiveWalk compares verdict and findings for mutants of the nets of a library.
func TestMutantsAgainstExhaustiveWalk(t *testing.T) {
	l := ibmLibrary(t)
	mutants, most := testsize.Pick(5, 15, 1500), testsize.Pick(4000, 4000, 50_000)
	tally := map[string]int{}
	for seed := range mutants {
		rng := rand.New(rand.NewSource(int64(seed)))
		name := l.names[rng.Intn(len(l.names))]
		p := mutatePetri(l.nets[name], rng)
		compareWithWalk(t, tally, fmt.Sprintf("mutant %d of %s", seed, name), p, most)
	}
	t.Log(tally)
	require.Zero(t, tally["disagree"])
}

func compareWithWalk(t *testing.T, tally map[string]int, name string, p *net.Petri, most int) {
	t.Helper()
	rep := verify.Petri(p, verify.Options{})
	for _, f := range rep.Findings {
		if f.Witness != nil {
			replayPetri(t, p, f)
		}
	}
	want := newExhaustive(p, most).decide()
	if want.tooLarge {
		tally["too large for the walk: "+rep.Verdict.String()]++
		return
	}
	if d := disagreement(rep, want); d != "" {
		t.Errorf("%s: %s", name, d)
		tally["disagree"]++
		return
	}
	tally[rep.Verdict.String()]++
	if rep.Exhausted != verify.NoLimit {
		tally["incomplete: "+rep.Exhausted.String()]++
	}
	if want.open && !slices.Contains(findingsOf(rep), string(verify.NoOptionToComplete)) {
		tally["whether every run can complete is open"]++
	}
}

// TestWalkNoticesWrongVerdicts breaks reports on purpose: each must be a disagreement.
func TestWalkNoticesWrongVerdicts(t *testing.T) {
	stuck := petri(map[string]int{"i": 1}, [3][]string{{"i"}, {"a"}}, [3][]string{{"i"}, {"b"}}, [3][]string{{"a", "b"}, {"o"}})
	right := verify.Petri(stuck, verify.Options{})
	want := newExhaustive(stuck, 100).decide()
	require.Empty(t, disagreement(right, want))

	wrong := right
	wrong.Verdict = verify.Sound
	require.Contains(t, disagreement(wrong, want), "sound, but")
	wrong = right
	wrong.Findings = right.Findings[1:]
	require.Contains(t, disagreement(wrong, want), "is missing")
	wrong.Exhausted = verify.LimitStates
	require.Empty(t, disagreement(wrong, want), "a report may say that it is incomplete")
	wrong = right
	wrong.Findings = append(slices.Clone(right.Findings), verify.Finding{Code: verify.Unbounded, Subject: "a"})
	require.Contains(t, disagreement(wrong, want), "is not so")
	wrong = right
	wrong.Verdict, wrong.Findings = verify.Unknown, nil
	require.Contains(t, disagreement(wrong, want), "nothing ran out")

	fine := petri(map[string]int{"i": 1}, [3][]string{{"i"}, {"o"}})
	broken := verify.Petri(fine, verify.Options{})
	broken.Verdict = verify.Unsound
	require.Contains(t, disagreement(broken, newExhaustive(fine, 100).decide()), "unsound, but")
}

// TestSpilling is about ends: which places are, and what they may hold.
func TestSpilling(t *testing.T) {
	at := map[string]int{"i": 1}
	spill := petri(at, [3][]string{{"i"}, {"p", "o"}}, [3][]string{{"p"}, {"o"}})
	lonely := petri(at, [3][]string{{"i"}, {"p", "o"}}, [3][]string{{"p"}, {"o"}})
	lonely.Places = append(lonely.Places, net.PetriPlace{Name: "lonely"})

	one, other := verify.Petri(spill, verify.Options{}), verify.Petri(lonely, verify.Options{})
	require.Equal(t, names("dead-task t1", "improper-completion"), codesOf(one))
	require.Equal(t, one.Findings, other.Findings)
	require.Empty(t, one.Warnings)
	require.Equal(t, "isolated lonely", other.Warnings[0].String())
	require.Equal(t, `transition "t1" can never start: its inputs are marked only when the run has ended`, one.Findings[0].Text)

	two := verify.Petri(petri(at, [3][]string{{"i"}, {"p", "o"}}, [3][]string{{"p"}, {"o", "o2"}}), verify.Options{})
	require.Equal(t, verify.Sound, two.Verdict)
	require.Equal(t, `no transition takes from "o" and "o2", so each is an end: a run counts as complete when every other place is empty`,
		two.Warnings[0].Text)
	silent := verify.Petri(lonely, verify.Options{Silence: []net.Code{verify.Isolated}})
	require.Empty(t, silent.Warnings)
}

// Sinks hold what they like, but not without bound: each round of a loop adds to one here.
func TestUnboundedSinks(t *testing.T) {
	at := map[string]int{"i": 1}
	for _, p := range []*net.Petri{
		petri(at, [3][]string{{"i"}, {"a"}}, [3][]string{{"a"}, {"i", "o"}}, [3][]string{{"a"}, {"o2"}}),
		petri(at, [3][]string{{"i"}, {"a", "b"}}, [3][]string{{"a"}, {"a", "c"}}, [3][]string{{"a"}, {"o2"}}, [3][]string{{"b"}, {"o2"}},
			[3][]string{{"c"}, {"o"}}),
		petri(at, [3][]string{{"i"}, {"o2"}}, [3][]string{{}, {"o"}}),
	} {
		rep := verify.Petri(p, verify.Options{})
		require.Contains(t, codesOf(rep), "unbounded o", "%+v", p)
		require.Empty(t, disagreement(rep, newExhaustive(p, 1000).decide()))
		for _, f := range rep.Findings {
			replayPetri(t, p, f)
		}
	}
	bounded := petri(at, [3][]string{{"i"}, {"a"}}, [3][]string{{"a"}, {"i"}}, [3][]string{{"a"}, {"o", "b"}}, [3][]string{{"b"}, {"o2"}})
	require.Equal(t, verify.Sound, verify.Petri(bounded, verify.Options{}).Verdict)
}

// TestWildNetsAgainstExhaustiveWalk does the same with small nets of any shape: several sources and sinks, isolated
// nodes, transitions that put back what they take, weights, resets.
func TestWildNetsAgainstExhaustiveWalk(t *testing.T) {
	tally := map[string]int{}
	for seed := range 2 * rounds() {
		rng := rand.New(rand.NewSource(int64(seed)))
		p := wildPetri(rng)
		for range rng.Intn(4) {
			if len(p.Places) > 1 && len(p.Transitions) > 1 {
				p = mutatePetri(p, rng)
			}
		}
		for i := range p.Places {
			p.Places[i].Name = fmt.Sprintf("p%d", i)
		}
		for i := range p.Transitions {
			p.Transitions[i].Name = fmt.Sprintf("t%d", i)
		}
		compareWithWalk(t, tally, fmt.Sprintf("seed %d: %s", seed, describePetri(p)), p, 3000)
	}
	t.Log(tally)
	require.Zero(t, tally["disagree"])
}

func describePetri(p *net.Petri) string {
	var b strings.Builder
	arcs := func(list []net.PetriArc) {
		for _, a := range list {
			fmt.Fprintf(&b, " %d*%s", a.Weight, p.Places[a.Place].Name)
		}
	}
	for _, q := range p.Places {
		fmt.Fprintf(&b, "%s %d, ", q.Name, q.Initial)
	}
	for _, t := range p.Transitions {
		fmt.Fprintf(&b, "; %s:", t.Name)
		arcs(t.In)
		b.WriteString(" ->")
		arcs(t.Out)
		for _, r := range t.Resets {
			fmt.Fprintf(&b, " reset %s", p.Places[r].Name)
		}
	}
	return b.String()
}
