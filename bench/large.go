package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// largeNodes is how many places and transitions, or conditions and tasks, a large net has.
const largeNodes = 24_000

// refiner grows a plain net that is sound and free-choice by construction: it begins with one transition between a
// source and a sink, and refines what is there by rules that keep a net sound.
type refiner struct {
	p   *net.Petri
	rng *rand.Rand
}

// drawPlain grows a plain net of so many nodes.
func drawPlain(seed uint64, nodes int) *net.Petri {
	g := &refiner{p: &net.Petri{Name: "refined"}, rng: rand.New(rand.NewPCG(seed, 2))}
	start, end := g.place(), g.place()
	g.p.Places[start].Initial = 1
	g.transition(arc(start), arc(end))
	for len(g.p.Places)+len(g.p.Transitions) < nodes {
		g.refine(g.rng.IntN(len(g.p.Transitions)), end)
	}
	return g.p
}

// refine replaces a transition t with more than that.
func (g *refiner) refine(t, end int) {
	is := &g.p.Transitions[t]
	switch g.rng.IntN(5) {
	case 0, 1: // two, one after the other
		mid, out := g.place(), is.Out
		is.Out = arc(mid)
		g.transition(arc(mid), out)
	case 2: // a second one that does the same
		g.transition(slices.Clone(is.In), slices.Clone(is.Out))
	case 3: // two with parallel places between
		a, b, out := g.place(), g.place(), is.Out
		is.Out = append(arc(a), arc(b)...)
		g.transition(append(arc(a), arc(b)...), out)
	case 4: // a loop at a place behind it
		if q := is.Out[0].Place; q != end {
			g.transition(arc(q), arc(q))
		}
	}
}

func arc(place int) []net.PetriArc { return []net.PetriArc{{Place: place, Weight: 1}} }

func (g *refiner) place() int {
	g.p.Places = append(g.p.Places, net.PetriPlace{Name: fmt.Sprintf("p%d", len(g.p.Places))})
	return len(g.p.Places) - 1
}

func (g *refiner) transition(in, out []net.PetriArc) {
	g.p.Transitions = append(g.p.Transitions, net.PetriTransition{Name: fmt.Sprintf("t%d", len(g.p.Transitions)),
		In: in, Out: out})
}

// mutate takes one token from what a parting transition puts, about halfway through the list. The net is then unsound:
// a run that completes without the token would, in the sound net, have completed with the token left over.
func mutate(p *net.Petri) *net.Petri {
	n := len(p.Transitions)
	for i := range n {
		if t := &p.Transitions[(n/2+i)%n]; len(t.Out) > 1 {
			t.Out = t.Out[1:]
			return p
		}
	}
	return p
}

// drawChain draws a workflow net of about so many nodes: a chain of small blocks, of and- and xor-gates, and of loops.
// More adds or-gates, and races of which the winner cancels the rest.
func drawChain(seed uint64, nodes int, more bool) *net.Definition {
	a := &author{rng: rand.New(rand.NewPCG(seed, 3)), d: &net.Definition{Name: "chain",
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}}}}
	kinds := []net.Rule{net.And, net.Xor}
	if more {
		kinds = append(kinds, net.Or)
	}
	last := "i"
	for len(a.d.Tasks)+len(a.d.Flows) < nodes { // every flow between tasks stands for a condition
		var first, next string
		switch kind := a.rng.IntN(8); {
		case kind < 2:
			first, next = a.loop()
		case kind == 2 && more:
			first, next = a.race()
		default:
			first, next = a.fork(kinds[a.rng.IntN(len(kinds))])
		}
		a.flow(last, first)
		last = next
	}
	a.flow(last, "o")
	return a.d
}

// loop is a task that may run again.
func (a *author) loop() (first, last string) {
	in, out := a.task(net.Xor, net.And), a.task(net.And, net.Xor)
	body := a.task(net.And, net.And)
	a.flow(in, body)
	a.flow(body, out)
	a.flow(out, in)
	return in, out
}

// fork parts into a few branches of one to three tasks each, which meet again.
func (a *author) fork(gate net.Rule) (first, last string) {
	first, last = a.task(net.And, gate), a.task(gate, net.And)
	for range 2 + a.rng.IntN(3) {
		from := first
		for range 1 + a.rng.IntN(3) {
			t := a.task(net.And, net.And)
			a.flow(from, t)
			from = t
		}
		a.flow(from, last)
	}
	return first, last
}

// race starts two branches, of which the first to end cancels the other.
func (a *author) race() (first, last string) {
	first, last = a.task(net.And, net.And), a.task(net.Xor, net.And)
	winner := len(a.d.Tasks) - 1
	for range 2 {
		t := a.task(net.And, net.And)
		a.flow(first, t)
		a.flow(t, last)
		a.d.Tasks[winner].Cancels = append(a.d.Tasks[winner].Cancels,
			t, net.ImplicitName(first, t), net.ImplicitName(t, last))
	}
	return first, last
}
