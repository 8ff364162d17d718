package scenario

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// WitnessPetri is [Witness] for a finding of a plain net. Places become conditions, and transitions become tasks with
// an and-join and an and-split. What the net lacks for a workflow is added where the run does not use it: a first task
// that marks several places and has flows to unmarked sources, and a last task for several sinks and for places without
// a path to the end.
//
// Further errors are about what a workflow cannot express: weights, a place with several initial tokens, a transition
// without an input.
func WitnessPetri(p *net.Petri, f verify.Finding) ([]byte, error) {
	if f.Witness == nil {
		return nil, ErrNoWitness
	}
	c := &petriCloser{p: p, taken: map[string]bool{}, def: &net.Definition{Name: p.Name}}
	if err := c.expressible(); err != nil {
		return nil, fmt.Errorf("no scenario can be written of the net %s: %w", p.Name, err)
	}
	c.close()
	w := &witness{finding: f, def: c.def, remarks: c.remarks, hides: c.finish}
	return w.write(f.Witness.Steps, c.first)
}

// petriCloser makes a workflow of a plain net.
type petriCloser struct {
	p       *net.Petri
	def     *net.Definition
	taken   map[string]bool // names
	touched net.Bits        // places with an arc; the others are omitted
	fed     net.Bits        // places with an incoming arc
	used    net.Bits        // places with an outgoing arc
	marked  []int           // places with an initial token
	first   []verify.Step   // the steps before the run
	finish  bool            // there is a last task
	remarks []string
}

func (c *petriCloser) expressible() error {
	c.touched, c.fed, c.used = net.NewBits(len(c.p.Places)), net.NewBits(len(c.p.Places)), net.NewBits(len(c.p.Places))
	for i := range c.p.Transitions {
		t := &c.p.Transitions[i]
		c.taken[t.Name] = true
		if len(t.In) == 0 {
			return fmt.Errorf("transition %q has no input", t.Name)
		}
		if slices.ContainsFunc(slices.Concat(t.In, t.Out), func(a net.PetriArc) bool { return a.Weight != 1 }) {
			return fmt.Errorf("an arc of transition %q moves several tokens", t.Name)
		}
		for _, a := range t.In {
			c.touched.Add(a.Place)
			c.used.Add(a.Place)
		}
		for _, a := range t.Out {
			c.touched.Add(a.Place)
			c.fed.Add(a.Place)
		}
	}
	for i := range c.p.Places {
		c.taken[c.p.Places[i].Name] = true
		if c.p.Places[i].Initial > 1 {
			return fmt.Errorf("place %q begins with several tokens", c.p.Places[i].Name)
		}
		if c.p.Places[i].Initial == 1 && c.touched.Has(i) {
			c.marked = append(c.marked, i)
		}
	}
	if len(c.marked) == 0 {
		return errors.New("no place with an arc is marked")
	}
	return nil
}

// close returns the workflow.
func (c *petriCloser) close() {
	var sinks []int
	for i := range c.p.Places {
		if c.touched.Has(i) && !c.used.Has(i) {
			sinks = append(sinks, i)
		}
	}
	lost := c.without(c.marked, true)
	trapped := c.without(sinks, false)
	roles := make([]net.Role, len(c.p.Places))
	starts := len(c.marked) == 1 && !c.fed.Has(c.marked[0]) && len(lost) == 0
	if starts {
		roles[c.marked[0]] = net.Start
	}
	end := ""
	if len(sinks) == 1 {
		roles[sinks[0]], end = net.End, c.p.Places[sinks[0]].Name
	}
	c.touched.Each(func(i int) {
		c.def.Conditions = append(c.def.Conditions, net.Condition{Name: c.p.Places[i].Name, Role: roles[i]})
	})
	open := c.tasks()
	for _, i := range trapped {
		open = append(open, c.p.Places[i].Name)
	}
	if len(sinks) > 1 {
		for _, i := range sinks {
			open = append(open, c.p.Places[i].Name)
		}
	}
	if !starts {
		c.addBegin(lost)
	}
	if len(open) > 0 {
		c.addFinish(open, end)
	}
}

// without returns the places that cannot be reached from the given ones, or, backwards, those from which none of them
// can be reached.
func (c *petriCloser) without(from []int, forward bool) []int {
	ends := func(t int) (near, far []net.PetriArc) {
		if forward {
			return c.p.Transitions[t].In, c.p.Transitions[t].Out
		}
		return c.p.Transitions[t].Out, c.p.Transitions[t].In
	}
	at := make([][]int, len(c.p.Places)) // by place: the transitions that take from it
	for t := range c.p.Transitions {
		near, _ := ends(t)
		for _, a := range near {
			at[a.Place] = append(at[a.Place], t)
		}
	}
	seen, walked := net.NewBits(len(c.p.Places)), net.NewBits(len(c.p.Transitions))
	for open := slices.Clone(from); len(open) > 0; {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if seen.Has(i) {
			continue
		}
		seen.Add(i)
		for _, t := range at[i] {
			if walked.Has(t) {
				continue
			}
			walked.Add(t)
			_, far := ends(t)
			for _, a := range far {
				open = append(open, a.Place)
			}
		}
	}
	var rest []int
	c.touched.Each(func(i int) {
		if !seen.Has(i) {
			rest = append(rest, i)
		}
	})
	return rest
}

// tasks adds the transitions, and returns the conditions that it added behind those without an output.
func (c *petriCloser) tasks() (open []string) {
	for i := range c.p.Transitions {
		t := &c.p.Transitions[i]
		task := net.Task{Name: t.Name}
		for _, r := range t.Resets {
			if c.touched.Has(r) {
				task.Cancels = append(task.Cancels, c.p.Places[r].Name)
			}
		}
		c.def.Tasks = append(c.def.Tasks, task)
		for _, a := range t.In {
			c.flow(c.p.Places[a.Place].Name, t.Name)
		}
		for _, a := range t.Out {
			c.flow(t.Name, c.p.Places[a.Place].Name)
		}
		if len(t.Out) == 0 {
			done := c.condition(t.Name+"_done", net.Inner)
			c.flow(t.Name, done)
			open = append(open, done)
		}
	}
	return open
}

// addBegin adds a task that marks the places with initial tokens. If there are unmarked sources, it adds another task
// before it with flows to it and to the sources.
func (c *petriCloser) addBegin(lost []int) {
	start := c.condition("start", net.Start)
	if len(lost) > 0 {
		choose, on := c.name("choose"), c.condition("on", net.Inner)
		c.def.Tasks = append(c.def.Tasks, net.Task{Name: choose, Split: net.Xor})
		c.flow(start, choose)
		c.flow(choose, on)
		for _, i := range lost {
			c.flow(choose, c.p.Places[i].Name)
		}
		start = on
		c.first = append(c.first, verify.Step{Task: choose, Outputs: []string{on}})
		c.remarks = append(c.remarks,
			choose+" is no part of the net: it leads to what nothing marks there, and the run goes on.")
	}
	begin := c.name("begin")
	c.def.Tasks = append(c.def.Tasks, net.Task{Name: begin})
	c.flow(start, begin)
	for _, i := range c.marked {
		c.flow(begin, c.p.Places[i].Name)
	}
	c.first = append(c.first, verify.Step{Task: begin})
	c.remarks = append(c.remarks, begin+" marks what begins with a token.")
}

// addFinish adds a task that joins open ends to the end.
func (c *petriCloser) addFinish(open []string, end string) {
	finish := c.name("finish")
	if end == "" {
		end = c.condition("end", net.End)
	}
	c.finish = true
	c.def.Tasks = append(c.def.Tasks, net.Task{Name: finish, Join: net.Xor})
	for _, name := range open {
		c.flow(name, finish)
	}
	c.flow(finish, end)
	c.remarks = append(c.remarks, finish+" is no part of the net: it joins the open ends, and the run leaves it alone.")
}

func (c *petriCloser) flow(from, to string) {
	c.def.Flows = append(c.def.Flows, net.Flow{From: from, To: to})
}

func (c *petriCloser) condition(wanted string, role net.Role) string {
	name := c.name(wanted)
	c.def.Conditions = append(c.def.Conditions, net.Condition{Name: name, Role: role})
	return name
}

// name returns an unused name.
func (c *petriCloser) name(wanted string) string {
	name := wanted
	for i := 2; c.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", wanted, i)
	}
	c.taken[name] = true
	return name
}
