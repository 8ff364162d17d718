package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/graph"
)

// openSinks returns the sinks that may get any number of tokens according to the structure of the net: those behind a
// cycle, or behind a transition without inputs. A transition that puts tokens into any other sink takes tokens of which
// the initial marking can produce only a bounded number.
func (l *petriLowering) openSinks() net.Bits {
	places := len(l.p.Places)
	behind := make([][]int, places+len(l.p.Transitions)) // places, then transitions
	for i := range l.p.Transitions {
		t := &l.p.Transitions[i]
		for _, a := range t.In {
			behind[a.Place] = append(behind[a.Place], places+i)
		}
		for _, a := range t.Out {
			behind[places+i] = append(behind[places+i], a.Place)
		}
	}
	component := graph.Components(len(behind), func(x int) []int { return behind[x] })
	size := make([]int, len(behind)+1)
	for _, k := range component {
		size[k]++
	}
	seen := net.NewBits(len(behind))
	var todo []int
	for x := range behind {
		if size[component[x]] > 1 || x >= places && len(l.p.Transitions[x-places].In) == 0 {
			todo = append(todo, x)
		}
	}
	open := net.NewBits(places)
	for len(todo) > 0 {
		x := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; seen.Has(x) {
			continue
		}
		if seen.Add(x); l.sinks.Has(x) && x < places {
			open.Add(x)
		}
		todo = append(todo, behind[x]...)
	}
	return open
}

// leadsToSinks reports whether there is a path from every place that can be marked to a sink.
//
// If choices are free too, and no place is unbounded, every state from which no run completes leads to a deadlock.
// For if it did not, there would be a set of states that lead to each other and nowhere else. In it, a place that gets
// a token loses one again, so one of the transitions behind it fires, and so do the others that share its inputs. Then
// the places behind all of these get tokens too, and so on, up to a sink; but a sink never loses a token.
func (l *petriLowering) leadsToSinks() bool {
	before := make([][]int, len(l.p.Places)) // by place: the transitions that put into it
	for i := range l.p.Transitions {
		for _, a := range l.p.Transitions[i].Out {
			before[a.Place] = append(before[a.Place], i)
		}
	}
	leads := l.sinks.Clone()
	if l.end >= 0 {
		leads.Add(int(l.end))
	}
	var todo []int
	leads.Each(func(p int) { todo = append(todo, p) })
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range before[p] {
			for _, a := range l.p.Transitions[i].In {
				if !leads.Has(a.Place) {
					leads.Add(a.Place)
					todo = append(todo, a.Place)
				}
			}
		}
	}
	for p := range l.p.Places {
		if !leads.Has(p) && (len(before[p]) > 0 || l.p.Places[p].Initial > 0) {
			return false
		}
	}
	return true
}

// emptiesOpen reports whether a transition empties an open sink: then the number of tokens put there is no measure.
func (l *petriLowering) emptiesOpen() bool {
	return slices.ContainsFunc(l.p.Transitions, func(t net.PetriTransition) bool {
		return slices.ContainsFunc(t.Resets, func(p int) bool { return l.open.Has(p) })
	})
}

// warnings returns properties on which the verdict depends and that the author may not intend.
func (l *petriLowering) warnings(silence []net.Code) []Finding {
	var list []Finding
	add := func(f Finding) {
		if !slices.Contains(silence, f.Code) {
			list = append(list, f)
		}
	}
	for _, p := range l.p.Isolated() {
		add(l.isolatedPlace(p))
	}
	for i := range l.p.Transitions {
		if t := &l.p.Transitions[i]; l.isolated(i) {
			add(Finding{Code: Isolated, Subject: t.Name, Elements: []Element{l.task(int32(i))},
				Fix:  fmt.Sprintf("connect %q, or take it out", t.Name),
				Text: fmt.Sprintf("%q has no arcs, so it changes nothing", t.Name)})
		}
	}
	if f, is := l.severalEnds(); is {
		add(f)
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}

// isolatedPlace describes a place that no transition takes from or puts into.
func (l *petriLowering) isolatedPlace(p int) Finding {
	e := l.place(int32(p))
	f := Finding{Code: Isolated, Subject: e.Name, Elements: []Element{e}, Fix: fmt.Sprintf("connect %q, or take it out", e.Name),
		Text: fmt.Sprintf("no transition takes from %q or puts into it, so it changes nothing", e.Name)}
	marked := l.p.Places[p].Initial > 0
	if marked {
		f.Text = fmt.Sprintf("no transition takes from %q or puts into it, so what it holds at first is left over in every run", e.Name)
	}
	emptier := slices.IndexFunc(l.p.Transitions, func(t net.PetriTransition) bool { return slices.Contains(t.Resets, p) })
	if emptier < 0 {
		return f
	}
	t := l.task(int32(emptier))
	f.Elements = append(f.Elements, t)
	if marked {
		f.Text = fmt.Sprintf("only the reset arc of %q touches %q, so what it holds at first is left over in every run without %[1]q", t.Name, e.Name)
		f.Fix = fmt.Sprintf("let a transition take from %q, or let it begin empty", e.Name)
		return f
	}
	f.Text = fmt.Sprintf("only the reset arc of %q touches %q, and no transition puts into it, so there is never anything to remove", t.Name, e.Name)
	f.Fix = fmt.Sprintf("let a transition put tokens into %q, or take it out with its reset arc", e.Name)
	return f
}

// severalEnds names the places that count as ends, unless there is exactly one.
func (l *petriLowering) severalEnds() (Finding, bool) {
	f := Finding{Code: SeveralEnds}
	l.sinks.Each(func(p int) { f.Elements = append(f.Elements, l.place(int32(p))) })
	switch {
	case l.end >= 0:
		return f, false
	case len(f.Elements) == 0:
		f.Text = "every place has a transition that takes from it, so a run counts as complete when every place is empty"
		f.Fix = "if the net has an end, let no transition take from it"
	default:
		f.Subject = f.Elements[0].Name
		f.Text = fmt.Sprintf("no transition takes from %s, so each is an end: a run counts as complete when every other place is empty",
			listed(f.Elements))
		f.Fix = "if one of them is no end, add the arc that takes from it"
	}
	return f, true
}
