package pnml

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/net"
)

// layout numbers the conditions of a definition, explicit ones first, and connects them to the tasks.
type layout struct {
	def             *net.Definition
	names           namer
	conditions      []laidCondition
	inputs, outputs [][]int // by task, conditions in flow order
	flows           []laidFlow
	known           map[laidFlow]bool
	arcs            int // number of arcs in the unfolded net so far, approximately
}

type laidCondition struct {
	name          string
	after, before string // the tasks on both sides of an implicit condition, "" for an explicit one
	role          net.Role
	pos           net.Pos
}

// laidFlow connects two elements: tasks or conditions, or two tasks through an implicit condition.
type laidFlow struct {
	from, to int // numbers of tasks, -1 for a condition
	cond     int
}

// layOut returns an error for what cannot be written: two elements with the same name, and flows of unknown elements.
func layOut(def *net.Definition) (*layout, error) {
	if def == nil {
		return nil, errors.New("pnml: a definition is nil")
	}
	w := &layout{def: def, inputs: make([][]int, len(def.Tasks)), outputs: make([][]int, len(def.Tasks)),
		known: map[laidFlow]bool{}}
	task, cond, err := w.number()
	if err != nil {
		return nil, err
	}
	for _, f := range def.Flows {
		from, fromTask := task[f.From]
		to, toTask := task[f.To]
		a, fromCond := cond[f.From]
		b, toCond := cond[f.To]
		switch {
		case fromTask && toTask:
			if err := w.implicit(cond, f, from, to); err != nil {
				return nil, err
			}
		case fromTask && toCond:
			w.join(from, -1, b)
		case fromCond && toTask:
			w.join(-1, to, a)
		default:
			return nil, fmt.Errorf("pnml: workflow %q has a flow from %q to %q, which must be a task and a condition "+
				"or two tasks of it", def.Name, f.From, f.To)
		}
	}
	return w, nil
}

// number numbers the elements in the order of the definition.
func (w *layout) number() (task, cond map[string]int, err error) {
	task, cond = map[string]int{}, map[string]int{}
	for i, t := range w.def.Tasks {
		if t.Name == "" {
			return nil, nil, fmt.Errorf("pnml: a task of workflow %q has no name", w.def.Name)
		}
		if _, twice := task[t.Name]; twice {
			return nil, nil, fmt.Errorf("pnml: two elements of workflow %q are named %q", w.def.Name, t.Name)
		}
		if t.Kind > net.Composite || t.Join > net.Or || t.Split > net.Or {
			return nil, nil, fmt.Errorf("pnml: task %q of workflow %q has a kind, join or split that does not exist",
				t.Name, w.def.Name)
		}
		task[t.Name] = i
	}
	for _, c := range w.def.Conditions {
		if c.Name == "" {
			return nil, nil, fmt.Errorf("pnml: a condition of workflow %q has no name", w.def.Name)
		}
		_, isTask := task[c.Name]
		if _, twice := cond[c.Name]; twice || isTask {
			return nil, nil, fmt.Errorf("pnml: two elements of workflow %q are named %q", w.def.Name, c.Name)
		}
		if c.Role > net.End {
			return nil, nil, fmt.Errorf("pnml: condition %q of workflow %q has a role that does not exist", c.Name, w.def.Name)
		}
		cond[c.Name] = len(w.conditions)
		w.conditions = append(w.conditions, laidCondition{name: c.Name, role: c.Role, pos: c.Pos})
	}
	return task, cond, nil
}

func (w *layout) implicit(cond map[string]int, f net.Flow, from, to int) error {
	name := net.ImplicitName(f.From, f.To)
	if i, known := cond[name]; known && w.conditions[i].before != "" {
		return nil
	} else if known {
		return fmt.Errorf("pnml: two elements of workflow %q are named %q", w.def.Name, name)
	}
	c := len(w.conditions)
	cond[name] = c
	w.conditions = append(w.conditions, laidCondition{name: name, after: f.From, before: f.To, pos: f.Pos})
	w.inputs[to] = append(w.inputs[to], c)
	w.outputs[from] = append(w.outputs[from], c)
	w.flows = append(w.flows, laidFlow{from: from, to: to, cond: c})
	return nil
}

func (w *layout) join(from, to, c int) {
	f := laidFlow{from: from, to: to, cond: c}
	if w.known[f] {
		return
	}
	w.known[f] = true
	w.flows = append(w.flows, f)
	if from < 0 {
		w.inputs[to] = append(w.inputs[to], c)
	} else {
		w.outputs[from] = append(w.outputs[from], c)
	}
}
