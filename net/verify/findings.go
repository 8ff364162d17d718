package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// named is a lowered net that can name its places and moves.
type named interface {
	lowering
	place(p int32) Element        // for a busy place, its task
	busy(p int32) bool            // whether a place represents a busy task
	task(t int32) Element         // a task or transition
	tasks() int                   // the number of tasks or transitions
	step(m *statespace.Move) Step // a move as a step of a witness
	// tokens returns what a place holds after a run, given what the search has counted there.
	tokens(p int32, counted uint8, run []int32, sys *statespace.System) int
	weak() bool // whether dead tasks leave the net weakly sound
	words() words
}

// words are the terms for the parts of a net in texts.
type words struct {
	run, task string
	plain     bool // a plain net, which has no joins
}

// joinFix suggests a fix for a task that waits for tokens that do not come.
func (w words) joinFix(task string, or bool) string {
	switch {
	case w.plain:
		return fmt.Sprintf("make sure that all inputs of %q get a token, or let it take fewer", task)
	case or:
		return fmt.Sprintf("make the join of %q an xor-join, or make sure that all its inputs get a token", task)
	}
	return fmt.Sprintf("make the join of %q an xor- or or-join, or make sure that all its inputs get a token", task)
}

// findings returns the findings of an analysis in words.
type findings struct {
	named
	*analysis
	list []Finding
}

func (f *findings) all() []Finding {
	if f.search == nil {
		return nil
	}
	if x, at := f.first(func(x *statespace.Search) int32 { return x.Improper }); x != nil {
		f.improper(f.witness(x, at, f.completesImproperly), f.state(x, at))
	}
	f.secondTokens()
	for _, p := range f.search.Coverings {
		f.unbounded(p)
	}
	if x, at := f.first(func(x *statespace.Search) int32 { return x.Deadlock }); x != nil {
		f.deadlock(f.witness(x, at, f.deadlocks), f.state(x, at))
	} else if x, at := f.first(func(x *statespace.Search) int32 { return x.Hopeless }); x != nil {
		f.hopeless(f.witness(x, at, f.anyState), f.state(x, at))
	}
	f.deadTasks()
	f.fromRun()
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return f.list
}

// first returns the first search that reached a state of some kind, and that state; none if no search did.
func (f *findings) first(of func(*statespace.Search) int32) (*statespace.Search, int32) {
	for _, x := range append([]*statespace.Search{f.search}, f.also...) {
		if at := of(x); at >= 0 {
			return x, at
		}
	}
	return nil, -1
}

// fromRun reports the violation of a single run, if no search found one.
func (f *findings) fromRun() {
	if f.run == nil || slices.ContainsFunc(f.list, func(x Finding) bool { return x.Code == f.run.code }) {
		return
	}
	w := f.toWitness(f.run.moves, f.run.state)
	w.Long, w.Repeats = true, f.run.repeats
	switch f.run.code {
	case ImproperCompletion:
		f.improper(w, f.run.state)
	case Unsafe:
		f.unsafe(w, f.run.places)
	case Unbounded:
		for _, p := range f.run.places {
			f.growing(p, w)
		}
	case NoOptionToComplete:
		if f.deadlocks(f.run.state) {
			f.deadlock(w, f.run.state)
		} else {
			f.hopeless(w, f.run.state)
		}
	}
}

func (f *findings) improper(w *Witness, state []uint8) {
	left := f.markedBut(state, f.sys.End)
	what := fmt.Sprintf("%q holds several tokens", f.place(f.sys.End).Name)
	if len(left) > 0 {
		what = "work is left over: " + f.placeNames(left)
	}
	f.add(Finding{
		Code: ImproperCompletion, Witness: w, Elements: f.elements(f.sys.End, left),
		Text: fmt.Sprintf("a %s can complete while %s", f.words().run, what),
		Fix: "let the branches meet in an and-join before the end, let only one of them run (an xor-split), or let the last task cancel the others " +
			"(a cancellation region)",
	})
}

// secondTokens reports the places that can get a second token, as one finding with the first run to one of them.
func (f *findings) secondTokens() {
	var places []int32
	var w *Witness
	for _, x := range append([]*statespace.Search{f.search}, f.also...) {
		for _, c := range x.SecondTokens {
			if slices.Contains(places, c.Place) {
				continue
			}
			if places = append(places, c.Place); w != nil {
				continue
			}
			if c.Move < 0 {
				w = f.witness(x, c.State, func(state []uint8) bool { return state[c.Place] > 1 })
				continue
			}
			run := append(x.RunTo(c.State), c.Move)
			w = f.toWitness(run, f.play(run))
		}
	}
	for _, p := range f.second {
		if w != nil && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	if len(places) > 0 {
		f.unsafe(w, places)
	}
}

func (f *findings) unsafe(w *Witness, places []int32) {
	elements := f.elements(-1, places)
	name := elements[0].Name
	text := fmt.Sprintf("%q can get a second token", name)
	if len(places) > 1 {
		text += ", and so can " + f.placeNames(places[1:])
	}
	f.add(Finding{
		Code: Unsafe, Subject: name, Witness: w, Elements: elements, Text: text,
		Fix: fmt.Sprintf("if the tokens come from branches that run side by side, let these meet before %q in a transition that takes "+
			"from each of them", name),
	})
}

func (f *findings) unbounded(p statespace.Covering) {
	for _, q := range p.Places {
		e := f.place(q)
		if slices.ContainsFunc(f.list, func(o Finding) bool { return o.Code == Unbounded && o.Subject == e.Name }) {
			continue
		}
		w := f.witness(f.search, p.State, func(state []uint8) bool { return state[q] > 1 })
		if w != nil && f.repeats(p, q) {
			w.Repeats = len(f.search.States.Path(p.State)) - len(f.search.States.Path(p.Ancestor))
		}
		f.growing(q, w)
	}
}

func (f *findings) growing(place int32, w *Witness) {
	e := f.place(place)
	text := fmt.Sprintf("tokens can pile up in %q without bound", e.Name)
	switch {
	case w == nil || w.Repeats == 0:
	case w.Repeats == 1:
		text += ": the last step of the run can be repeated, and adds to it each time"
	default:
		text += fmt.Sprintf(": the last %d steps of the run can be repeated, and add to it each time", w.Repeats)
	}
	f.add(Finding{
		Code: Unbounded, Subject: e.Name, Witness: w, Elements: []Element{e}, Text: text,
		Fix: fmt.Sprintf("let what is repeated take from %q what it puts there", e.Name),
	})
}

func (f *findings) deadlock(w *Witness, state []uint8) {
	left := f.markedBut(state, -1)
	text := fmt.Sprintf("a %s can get stuck with %s", f.words().run, f.placeNames(left))
	elements := f.elements(-1, left)
	fix := "lead every way to the end"
	if m := f.waiting(state); m != nil {
		t := f.task(m.Task)
		text += fmt.Sprintf("; %q waits for %s", t.Name, f.placeNames(f.missing(m, state)))
		fix = f.words().joinFix(t.Name, m.OrJoin >= 0)
		elements = append([]Element{t}, elements...)
	} else if p := f.stranded(left); p >= 0 {
		name := f.place(p).Name
		text += fmt.Sprintf("; no %s takes from %q", f.words().task, name)
		fix = fmt.Sprintf("let a %s take from %q, or put nothing there", f.words().task, name)
	}
	f.add(Finding{Code: NoOptionToComplete, Witness: w, Elements: elements, Text: text, Fix: fix})
}

// stranded returns the first of some places from which no move takes, and that is no end; -1 if there is none.
func (f *findings) stranded(places []int32) int32 {
	for _, p := range places {
		takes := func(m statespace.Move) bool {
			return slices.ContainsFunc(m.In, func(a statespace.Arc) bool { return a.Place == p })
		}
		if !(f.sys.Open != nil && f.sys.Open.Has(int(p))) && !slices.ContainsFunc(f.sys.Moves, takes) {
			return p
		}
	}
	return -1
}

func (f *findings) hopeless(w *Witness, state []uint8) {
	left := f.markedBut(state, -1)
	f.add(Finding{
		Code: NoOptionToComplete, Witness: w, Elements: f.elements(-1, left),
		Text: fmt.Sprintf("a %s can come to where no way leads to the end: with %s", f.words().run, f.placeNames(left)),
		Fix:  "give the loop a way out",
	})
}

func (f *findings) add(x Finding) { f.list = append(f.list, x) }

// waiting is a move for which some but not all tokens are present.
func (f *findings) waiting(state []uint8) *statespace.Move {
	for i := range f.sys.Moves {
		m := &f.sys.Moves[i]
		if len(m.In) > 1 && statespace.AnyMarked(m.In, state) && len(f.missing(m, state)) > 0 {
			return m
		}
	}
	return nil
}

func (f *findings) missing(m *statespace.Move, state []uint8) []int32 {
	var list []int32
	for _, a := range m.In {
		if state[a.Place] < a.Weight {
			list = append(list, a.Place)
		}
	}
	return list
}

// markedBut returns the marked places except one.
func (f *findings) markedBut(state []uint8, but int32) []int32 {
	var list []int32
	for p := range int32(f.sys.Places) {
		if state[p] != 0 && p != but {
			list = append(list, p)
		}
	}
	return list
}

func (f *findings) elements(first int32, others []int32) []Element {
	var list []Element
	if first >= 0 {
		list = append(list, f.place(first))
	}
	for _, p := range others {
		list = append(list, f.place(p))
	}
	return list
}

// maxListed bounds the number of places in a sentence.
const maxListed = 4

// placeNames returns names of places for a sentence.
func (f *findings) placeNames(places []int32) string {
	if len(places) == 0 {
		return "nothing marked"
	}
	var parts []string
	for i, p := range places {
		if i == maxListed {
			parts = append(parts, fmt.Sprintf("%d more", len(places)-maxListed))
			break
		}
		part := fmt.Sprintf("%q", f.place(p).Name)
		if f.busy(p) {
			part += " busy"
		}
		parts = append(parts, part)
	}
	return sentence(parts)
}
