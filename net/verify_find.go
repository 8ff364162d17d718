package net

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// named is a lowered net that can say what its places and moves are called.
type named interface {
	lowered
	place(p int32) Element // of a busy place: the task
	busy(p int32) bool     // whether a place stands for a busy task
	task(t int32) Element  // a task or transition
	tasks() int            // how many there are
	step(m *gameMove) Step // what a move is for a person
	weak() bool            // whether dead tasks leave the net weakly sound
	words() words
}

// words are what the parts of a net are called in texts.
type words struct{ run, task string }

// findings puts into words what verification found.
type findings struct {
	named
	*judgement
	list []Finding
}

func (f *findings) all() []Finding {
	if f.x == nil {
		return nil
	}
	if f.x.spilled >= 0 {
		f.improper(f.witness(f.x.spilled, f.spills), f.state(f.x.spilled))
	}
	if len(f.x.crowds) > 0 {
		c := f.x.crowds[0]
		run := append(f.x.runTo(c.state), c.move)
		f.unsafe(f.tell(run, f.play(run)), c.place)
	}
	for _, p := range f.x.pumps {
		f.unbounded(p)
	}
	switch {
	case f.x.stuck >= 0:
		f.stuck(f.witness(f.x.stuck, f.stops), f.state(f.x.stuck))
	case f.x.doomed >= 0:
		f.doomed(f.witness(f.x.doomed, f.anything), f.state(f.x.doomed))
	}
	f.deadTasks()
	f.fromRun()
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return f.list
}

// fromRun tells of the violation that a single run showed.
func (f *findings) fromRun() {
	if f.run == nil {
		return
	}
	w := f.tell(f.run.moves, f.run.state)
	w.Long, w.Repeats = true, f.run.repeats
	switch f.run.code {
	case ImproperCompletion:
		f.improper(w, f.run.state)
	case Unsafe:
		f.unsafe(w, f.run.places[0])
	case Unbounded:
		for _, p := range f.run.places {
			f.growing(p, w)
		}
	case NoOptionToComplete:
		if f.stops(f.run.state) {
			f.stuck(w, f.run.state)
		} else {
			f.doomed(w, f.run.state)
		}
	}
}

func (f *findings) improper(w *Witness, state []uint8) {
	left := f.markedBut(state, f.g.end)
	what := "several tokens reach the end"
	if len(left) > 0 {
		what = "work is left over: " + f.list1(left)
	}
	f.add(Finding{
		Code: ImproperCompletion, Witness: w, Elements: f.elements(f.g.end, left),
		Text: fmt.Sprintf("a %s can complete while %s", f.words().run, what),
		Fix:  "let the branches meet in an and-join before the end, or let only one of them run (an xor-split)",
	})
}

func (f *findings) unsafe(w *Witness, place int32) {
	e := f.place(place)
	f.add(Finding{
		Code: Unsafe, Subject: e.Name, Witness: w, Elements: []Element{e},
		Text: fmt.Sprintf("%q can get a second token: branches that run side by side are not synchronised before it", e.Name),
		Fix:  fmt.Sprintf("let the branches meet before %q in a transition that takes from each of them", e.Name),
	})
}

func (f *findings) unbounded(p pump) {
	for _, q := range p.places {
		e := f.place(q)
		if slices.ContainsFunc(f.list, func(o Finding) bool { return o.Code == Unbounded && o.Subject == e.Name }) {
			continue
		}
		w := f.witness(p.state, func(state []uint8) bool { return state[q] > 1 })
		if w != nil && f.repeats(p, q) {
			w.Repeats = len(f.x.s.path(p.state)) - len(f.x.s.path(p.from))
		}
		f.growing(q, w)
	}
}

func (f *findings) growing(place int32, w *Witness) {
	e := f.place(place)
	f.add(Finding{
		Code: Unbounded, Subject: e.Name, Witness: w, Elements: []Element{e},
		Text: fmt.Sprintf("tokens can pile up in %q for ever: a loop adds to it each time round", e.Name),
		Fix:  fmt.Sprintf("let each round of the loop take from %q what it puts there", e.Name),
	})
}

func (f *findings) stuck(w *Witness, state []uint8) {
	left := f.markedBut(state, -1)
	text := fmt.Sprintf("a %s can get stuck with %s", f.words().run, f.list1(left))
	elements := f.elements(-1, left)
	fix := "lead every way to the end"
	if m := f.waiting(state); m != nil {
		t := f.task(m.task)
		missing := f.missing(m, state)
		text += fmt.Sprintf("; %q waits for %s", t.Name, f.list1(missing))
		better := "an xor- or or-join"
		if m.or >= 0 {
			better = "an xor-join"
		}
		fix = fmt.Sprintf("make the join of %q %s, or make sure that all its inputs get a token", t.Name, better)
		elements = append([]Element{t}, elements...)
	}
	f.add(Finding{Code: NoOptionToComplete, Witness: w, Elements: elements, Text: text, Fix: fix})
}

func (f *findings) doomed(w *Witness, state []uint8) {
	left := f.markedBut(state, -1)
	f.add(Finding{
		Code: NoOptionToComplete, Witness: w, Elements: f.elements(-1, left),
		Text: fmt.Sprintf("a %s can come to run for ever: from %s no way leads to the end", f.words().run, f.list1(left)),
		Fix:  "give the loop a way out",
	})
}

// deadTasks tells of the tasks that can never start, if the search or reduction has shown that.
func (f *findings) deadTasks() {
	dead := NewBits(f.tasks())
	for _, t := range f.dead {
		dead.Add(int(t))
	}
	whole := f.x.exact()
	if whole {
		for k := range f.g.moves {
			dead.Add(int(f.g.moves[k].task))
		}
		for k, fired := range f.x.fired {
			if fired {
				dead.Remove(int(f.g.moves[k].task))
			}
		}
	}
	for k := range f.g.moves {
		m := &f.g.moves[k]
		if !dead.Has(int(m.task)) {
			continue
		}
		dead.Remove(int(m.task)) // its first move is enough
		var never []int32
		for _, a := range m.in {
			if f.g.start[a.place] == 0 && (whole && !f.x.marked[a.place] || !whole && len(m.in) == 1) {
				never = append(never, a.place)
			}
		}
		f.deadTask(m.task, never)
	}
}

func (f *findings) deadTask(t int32, never []int32) {
	e := f.task(t)
	why := "its inputs are never marked at the same time"
	if len(never) > 0 {
		why = "nothing ever marks " + f.list1(never)
	}
	f.add(Finding{
		Code: DeadTask, Subject: e.Name, Elements: append([]Element{e}, f.elements(-1, never)...),
		Text: fmt.Sprintf("%s %q can never start: %s", f.words().task, e.Name, why),
		Fix:  fmt.Sprintf("lead a way to %q, or take it out", e.Name),
	})
}

func (f *findings) add(x Finding) { f.list = append(f.list, x) }

// waiting is a move that some but not all of the tokens that it takes are there for.
func (f *findings) waiting(state []uint8) *gameMove {
	for i := range f.g.moves {
		m := &f.g.moves[i]
		if len(m.in) > 1 && anyMarked(m.in, state) {
			return m
		}
	}
	return nil
}

func (f *findings) missing(m *gameMove, state []uint8) []int32 {
	var list []int32
	for _, a := range m.in {
		if state[a.place] < a.n {
			list = append(list, a.place)
		}
	}
	return list
}

// markedBut lists the marked places other than one.
func (f *findings) markedBut(state []uint8, but int32) []int32 {
	var list []int32
	for p := range int32(f.g.places) {
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

// maxListed bounds how many places a sentence names.
const maxListed = 4

// list1 names places in a sentence.
func (f *findings) list1(places []int32) string {
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
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
