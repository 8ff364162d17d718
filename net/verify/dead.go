package verify

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// deadTasks reports the tasks that can never start, if the search or reduction has proved that.
func (f *findings) deadTasks() {
	dead := net.NewBits(f.tasks())
	for _, t := range f.dead {
		dead.Add(int(t))
	}
	fired, whole := f.fired()
	if whole {
		for k := range f.sys.Moves {
			dead.Add(int(f.sys.Moves[k].Task))
		}
		for k, yes := range fired {
			if yes {
				dead.Remove(int(f.sys.Moves[k].Task))
			}
		}
	}
	if dead.Empty() {
		return
	}
	moves := make([][]*statespace.Move, f.tasks())
	for k := range f.sys.Moves {
		if m := &f.sys.Moves[k]; !slices.ContainsFunc(m.In, func(a statespace.Arc) bool { return f.busy(a.Place) }) {
			moves[m.Task] = append(moves[m.Task], m)
		}
	}
	dead.Each(func(t int) {
		d := &deadTask{task: int32(t), moves: moves[t]}
		if whole {
			f.examine(d)
		}
		f.addDead(d)
	})
}

// fired returns the moves that fire in some run, and whether these are all.
func (f *findings) fired() (moves []bool, whole bool) {
	if f.settled != nil {
		return f.settled.Fires, true
	}
	return f.search.Fired, f.search.Exact()
}

// marked reports whether a place is marked in some state, after [findings.fired] returned true.
func (f *findings) marked(p int32) bool {
	if f.settled != nil {
		return f.settled.Marked.Has(int(p))
	}
	return f.sys.Start[p] > 0 || f.search.Marked[p]
}

// deadTask is what a complete search shows about a task that never starts.
type deadTask struct {
	task   int32
	moves  []*statespace.Move // with which it can start
	known  bool               // the fields below are known
	never  []int32            // inputs that are never marked
	inTime bool               // a state before the end of the run has the tokens of a move
	late   bool               // a state after the end of the run has them
}

// examine looks for the tokens of the task in all states.
func (f *findings) examine(d *deadTask) {
	d.known = true
	seen := net.NewBits(f.sys.Places)
	for _, m := range d.moves {
		for _, a := range m.In {
			if !f.marked(a.Place) && !seen.Has(int(a.Place)) {
				seen.Add(int(a.Place))
				d.never = append(d.never, a.Place)
			}
		}
	}
	if len(d.never) > 0 || f.settled != nil {
		return // the structure excludes its inputs
	}
	counts := make([]uint8, f.sys.Places)
	var at []int32
	for i := range int32(f.search.States.Len()) {
		at = f.search.States.Load(at, i, counts)
		for _, m := range d.moves {
			if !f.supplied(m, counts) {
				continue
			}
			if over, _ := f.sys.Complete(counts); over {
				d.late = true
			} else {
				d.inTime = true
			}
		}
	}
}

// supplied reports whether a state has the tokens that a move takes: for an or-join, any of them.
func (f *findings) supplied(m *statespace.Move, state []uint8) bool {
	if m.OrJoin >= 0 {
		return statespace.AnyMarked(m.In, state)
	}
	return len(f.missing(m, state)) == 0
}

func (f *findings) addDead(d *deadTask) {
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

// whyDead describes why a task never starts, by the states of the search.
func (f *findings) whyDead(d *deadTask) string {
	m := d.moves[0]
	switch {
	case len(d.never) > 0:
		return "nothing ever marks " + f.placeNames(d.never)
	case d.inTime && m.OrJoin >= 0:
		return "whenever an input is marked, its or-join waits for another"
	case d.inTime:
		return "whenever its inputs are marked, a routing task goes first"
	case d.late:
		return fmt.Sprintf("its inputs are marked only when the %s has ended", f.words().run)
	case len(m.In) == 1:
		return fmt.Sprintf("its input never holds %d tokens", m.In[0].Weight)
	}
	return "its inputs are never marked at the same time"
}
