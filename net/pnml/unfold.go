package pnml

import (
	"cmp"
	"fmt"

	"github.com/tasq-dev/tasq/net"
)

// maxOrOutputs limits the outputs of an unfolded or-split, which needs a transition for each set of them.
const maxOrOutputs = 10

// maxUnfolded limits the arcs of an unfolded net: the number for a task can be exponential in the size of the file.
const maxUnfolded = 1 << 20

// Unfold returns a plain Petri net with the behaviour of a definition, for tools without joins and splits. A task with an and-join
// and an and-split becomes one transition. Any other becomes one for each way to start and to end: a task x with an
// xor-split to a and b becomes x_to_a and x_to_b. If it has several ways of both, a place x_busy is between them.
//
// Names are those of the definition if they are valid and unique. That a task is busy is represented only by that
// place: with two tokens before it, the task may run twice at the same time, which never happens in a sound workflow.
//
// An or-join of two or more inputs and a cancellation region have no equivalent in plain nets; the error names the
// task. The same holds for an or-split with more than 10 outputs, which would need over a thousand transitions, and for
// a net that would have over a million arcs.
func Unfold(def *net.Definition) (*net.Petri, error) {
	w, err := layOut(def)
	if err != nil {
		return nil, err
	}
	p := &net.Petri{Name: def.Name, Pos: def.Pos}
	for _, c := range w.conditions {
		place := net.PetriPlace{Name: w.names.Name(plainName(c)), Pos: c.pos}
		if c.role == net.Start {
			place.Initial = 1
		}
		p.Places = append(p.Places, place)
	}
	for i := range def.Tasks {
		if err := w.unfold(p, i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (w *layout) unfold(p *net.Petri, i int) error {
	t := &w.def.Tasks[i]
	starts, ends, err := w.ways(i)
	if err != nil {
		return err
	}
	if len(starts) == 1 && len(ends) == 1 {
		w.addTransition(p, t, t.Name, starts[0], ends[0])
		return nil
	}
	if len(starts) > 1 && len(ends) > 1 {
		busy := []int{len(p.Places)}
		p.Places = append(p.Places, net.PetriPlace{Name: w.names.Name(t.Name + "_busy"), Pos: t.Pos})
		for _, s := range starts {
			w.addTransition(p, t, w.fromName(t, s), s, busy)
		}
		starts = [][]int{busy}
	}
	for _, s := range starts {
		for _, e := range ends {
			name := w.toName(t, e)
			if len(starts) > 1 {
				name = w.fromName(t, s)
			}
			w.addTransition(p, t, name, s, e)
		}
	}
	return nil
}

// plainName joins the names of both ends of an implicit condition with "_".
func plainName(c laidCondition) string {
	if c.before != "" {
		return c.after + "_" + c.before
	}
	return c.name
}

// fromName names the start of a task by the sources of its tokens: a condition, or the task before an implicit one.
func (w *layout) fromName(t *net.Task, way []int) string {
	name := t.Name + "_from"
	for _, i := range way {
		name += "_" + cmp.Or(w.conditions[i].after, w.conditions[i].name)
	}
	return name
}

func (w *layout) toName(t *net.Task, way []int) string {
	name := t.Name + "_to"
	for _, i := range way {
		name += "_" + cmp.Or(w.conditions[i].before, w.conditions[i].name)
	}
	return name
}

// ways lists the sets of places from which a task may take, and those into which it may put.
func (w *layout) ways(i int) (starts, ends [][]int, err error) {
	t := &w.def.Tasks[i]
	in, out := w.inputs[i], w.outputs[i]
	switch {
	case len(t.Cancels) > 0:
		return nil, nil, fmt.Errorf("pnml: task %q has a cancellation region, which a plain net cannot express", t.Name)
	case t.Join == net.Or && len(in) > 1:
		return nil, nil, fmt.Errorf("pnml: task %q has an or-join, which a plain net cannot express", t.Name)
	case t.Split == net.Or && len(out) > maxOrOutputs:
		return nil, nil, fmt.Errorf("pnml: task %q has an or-split of %d outputs; a plain net would need %d transitions",
			t.Name, len(out), uint64(1)<<min(len(out), 63)-1)
	}
	starts, ends = [][]int{in}, [][]int{out}
	if t.Join == net.Xor && len(in) > 1 {
		starts = each(in)
	}
	switch {
	case t.Split == net.Xor && len(out) > 1:
		ends = each(out)
	case t.Split == net.Or && len(out) > 1:
		ends = subsets(out)
	}
	if w.arcs += (len(starts) + len(ends)) * (len(in) + len(out)); w.arcs > maxUnfolded {
		return nil, nil, fmt.Errorf("pnml: a plain net of workflow %q would have more than %d arcs", w.def.Name, maxUnfolded)
	}
	return starts, ends, nil
}

func each(places []int) [][]int {
	ways := make([][]int, len(places))
	for i, p := range places {
		ways[i] = []int{p}
	}
	return ways
}

// subsets lists the non-empty sets of places, small ones first among those with the same last place.
func subsets(places []int) [][]int {
	var ways [][]int
	for mask := 1; mask < 1<<len(places); mask++ {
		var way []int
		for i, p := range places {
			if mask&(1<<i) != 0 {
				way = append(way, p)
			}
		}
		ways = append(ways, way)
	}
	return ways
}

func (w *layout) addTransition(p *net.Petri, t *net.Task, name string, in, out []int) {
	p.Transitions = append(p.Transitions, net.PetriTransition{
		Name: w.names.Name(name), In: arcsTo(in), Out: arcsTo(out), Pos: t.Pos,
	})
}

func arcsTo(places []int) []net.PetriArc {
	arcs := make([]net.PetriArc, len(places))
	for i, p := range places {
		arcs[i] = net.PetriArc{Place: p, Weight: 1}
	}
	return arcs
}
