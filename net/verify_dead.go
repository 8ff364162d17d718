package net

import (
	"fmt"
	"slices"
)

// deadTasks reports the tasks that can never start, if the search or reduction has shown that.
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
	if dead.Empty() {
		return
	}
	moves := make([][]*gameMove, f.tasks())
	for k := range f.g.moves {
		if m := &f.g.moves[k]; !slices.ContainsFunc(m.in, func(a gameArc) bool { return f.busy(a.place) }) {
			moves[m.task] = append(moves[m.task], m)
		}
	}
	dead.Each(func(t int) {
		d := &deadTask{task: int32(t), moves: moves[t]}
		if whole {
			f.inquire(d)
		}
		f.tellDead(d)
	})
}

// deadTask is what a whole search says about a task that never starts.
type deadTask struct {
	task   int32
	moves  []*gameMove // by which it can start
	known  bool        // the fields below hold
	never  []int32     // inputs that nothing marks
	inTime bool        // a state has the tokens of a move, before the run is over
	late   bool        // a state has them in which the run is over
}

// inquire looks for the tokens of the task in all states.
func (f *findings) inquire(d *deadTask) {
	d.known = true
	seen := NewBits(f.g.places)
	for _, m := range d.moves {
		for _, a := range m.in {
			if f.g.start[a.place] == 0 && !f.x.marked[a.place] && !seen.Has(int(a.place)) {
				seen.Add(int(a.place))
				d.never = append(d.never, a.place)
			}
		}
	}
	if len(d.never) > 0 {
		return
	}
	counts := make([]uint8, f.g.places)
	var at []int32
	for i := range int32(f.x.s.len()) {
		at = f.x.s.load(at, i, counts)
		for _, m := range d.moves {
			if !f.supplied(m, counts) {
				continue
			}
			if over, _ := f.g.complete(counts); over {
				d.late = true
			} else {
				d.inTime = true
			}
		}
	}
}

// supplied reports whether the tokens are there that a move takes: for an or-join, any of them.
func (f *findings) supplied(m *gameMove, state []uint8) bool {
	if m.or >= 0 {
		return anyMarked(m.in, state)
	}
	return len(f.missing(m, state)) == 0
}

func (f *findings) tellDead(d *deadTask) {
	e, w := f.task(d.task), f.words()
	x := Finding{
		Code: DeadTask, Subject: e.Name, Elements: append([]Element{e}, f.elements(-1, d.never)...),
		Text: fmt.Sprintf("%s %q can never start", w.task, e.Name), Fix: fmt.Sprintf("lead a way to %q, or take it out", e.Name),
	}
	if d.known {
		x.Text += ": " + f.whyDead(d)
	}
	if d.late && !d.inTime {
		x.Fix = fmt.Sprintf("let %q run before the end is reached, or take it out", e.Name)
	}
	f.add(x)
}

// whyDead says why a task never starts, as the states show it.
func (f *findings) whyDead(d *deadTask) string {
	m := d.moves[0]
	switch {
	case len(d.never) > 0:
		return "nothing ever marks " + f.list1(d.never)
	case d.inTime && m.or >= 0:
		return "whenever an input is marked, its or-join waits for another"
	case d.inTime:
		return "whenever its inputs are marked, a routing task goes first"
	case d.late:
		return fmt.Sprintf("its inputs are marked only when the %s has ended", f.words().run)
	case len(m.in) == 1:
		return fmt.Sprintf("its input never holds %d tokens", m.in[0].n)
	}
	return "its inputs are never marked at the same time"
}
