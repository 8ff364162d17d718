package script

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// WitnessPetri is [Witness] for a finding of a plain net. Places become conditions, and transitions tasks with an and-join
// and an and-split. Several marked places, or one with an input, are marked by a first task; several sinks flow into a last
// one, which the run leaves alone. What can never be marked or fire is left out.
//
// Besides those of [Witness], there are errors for what a workflow cannot express: weights, a place that begins with several
// tokens, a transition without an input, and parts of the net from which no sink can be reached.
func WitnessPetri(p *net.Petri, f net.Finding) ([]byte, error) {
	if f.Witness == nil {
		return nil, ErrNoWitness
	}
	c := &petriCloser{p: p, taken: map[string]bool{}, def: &net.Definition{Name: p.Name}}
	if err := c.expressible(); err != nil {
		return nil, fmt.Errorf("no scenario can be written of the net %s: %w", p.Name, err)
	}
	c.close()
	w := &witness{finding: f, def: c.def, remarks: c.remarks, hides: c.finish}
	return w.write(f.Witness.Steps, c.begin)
}

// petriCloser makes a workflow of a plain net.
type petriCloser struct {
	p       *net.Petri
	def     *net.Definition
	taken   map[string]bool // names
	marks   net.Bits        // places that can be marked
	fires   net.Bits        // transitions that can fire, as far as places tell
	begin   []net.Step      // the first task, if there is one
	finish  bool            // there is a last task
	remarks []string
}

func (c *petriCloser) expressible() error {
	for i := range c.p.Places {
		c.taken[c.p.Places[i].Name] = true
		if c.p.Places[i].Initial > 1 {
			return fmt.Errorf("place %q begins with several tokens", c.p.Places[i].Name)
		}
	}
	for i := range c.p.Transitions {
		t := &c.p.Transitions[i]
		c.taken[t.Name] = true
		if len(t.In) == 0 {
			return fmt.Errorf("transition %q has no input", t.Name)
		}
		if slices.ContainsFunc(slices.Concat(t.In, t.Out), func(a net.PetriArc) bool { return a.Weight != 1 }) {
			return fmt.Errorf("an arc of transition %q moves several tokens", t.Name)
		}
	}
	c.look()
	if c.marks.Empty() {
		return errors.New("no place is marked")
	}
	return nil
}

// look finds what can be marked and fire, if a token that was there once is there for ever.
func (c *petriCloser) look() {
	c.marks, c.fires = net.NewBits(len(c.p.Places)), net.NewBits(len(c.p.Transitions))
	for i := range c.p.Places {
		if c.p.Places[i].Initial > 0 {
			c.marks.Add(i)
		}
	}
	for again := true; again; {
		again = false
		for i := range c.p.Transitions {
			t := &c.p.Transitions[i]
			dead := slices.ContainsFunc(t.In, func(a net.PetriArc) bool { return !c.marks.Has(a.Place) })
			if dead || c.fires.Has(i) {
				continue
			}
			again = true
			c.fires.Add(i)
			for _, a := range t.Out {
				c.marks.Add(a.Place)
			}
		}
	}
}

// close writes the workflow.
func (c *petriCloser) close() {
	fed, sinks := c.fed(), c.p.Sinks()
	var marked []int
	for i := range c.p.Places {
		if c.p.Places[i].Initial > 0 {
			marked = append(marked, i)
		}
	}
	roles := make([]net.Role, len(c.p.Places))
	if len(marked) == 1 && !fed.Has(marked[0]) {
		roles[marked[0]] = net.Start
	}
	if len(sinks) == 1 {
		roles[sinks[0]] = net.End
	}
	c.marks.Each(func(i int) {
		c.def.Conditions = append(c.def.Conditions, net.Condition{Name: c.p.Places[i].Name, Role: roles[i]})
	})
	var ends []string
	for _, s := range sinks {
		if c.marks.Has(s) && len(sinks) > 1 {
			ends = append(ends, c.p.Places[s].Name)
		}
	}
	ends = append(ends, c.tasks()...)
	if len(marked) > 1 || roles[marked[0]] != net.Start {
		c.addBegin(marked)
	}
	if len(sinks) != 1 {
		c.addFinish(ends)
	}
}

// fed is the set of places that a transition puts tokens into.
func (c *petriCloser) fed() net.Bits {
	fed := net.NewBits(len(c.p.Places))
	for i := range c.p.Transitions {
		for _, a := range c.p.Transitions[i].Out {
			fed.Add(a.Place)
		}
	}
	return fed
}

// tasks adds the transitions that can fire, and returns what it had to put behind those without an output.
func (c *petriCloser) tasks() (ends []string) {
	c.fires.Each(func(i int) {
		t := &c.p.Transitions[i]
		task := net.Task{Name: t.Name}
		for _, r := range t.Resets {
			if c.marks.Has(r) {
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
			done := c.name(t.Name + "_done")
			c.def.Conditions = append(c.def.Conditions, net.Condition{Name: done})
			c.flow(t.Name, done)
			ends = append(ends, done)
		}
	})
	return ends
}

func (c *petriCloser) addBegin(marked []int) {
	start, begin := c.name("start"), c.name("begin")
	c.def.Conditions = append(c.def.Conditions, net.Condition{Name: start, Role: net.Start})
	c.def.Tasks = append(c.def.Tasks, net.Task{Name: begin})
	c.flow(start, begin)
	for _, i := range marked {
		c.flow(begin, c.p.Places[i].Name)
	}
	c.begin = []net.Step{{Task: begin}}
	c.remarks = append(c.remarks, begin+" marks the places that begin with a token.")
}

func (c *petriCloser) addFinish(ends []string) {
	end, finish := c.name("end"), c.name("finish")
	c.finish = true
	c.def.Conditions = append(c.def.Conditions, net.Condition{Name: end, Role: net.End})
	c.def.Tasks = append(c.def.Tasks, net.Task{Name: finish, Join: net.Xor})
	for _, name := range ends {
		c.flow(name, finish)
	}
	c.flow(finish, end)
	c.remarks = append(c.remarks, finish+" is no part of the net: it joins the sinks, and the run leaves it alone.")
}

func (c *petriCloser) flow(from, to string) {
	c.def.Flows = append(c.def.Flows, net.Flow{From: from, To: to})
}

// name makes a name that nothing else has.
func (c *petriCloser) name(wanted string) string {
	name := wanted
	for i := 2; c.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", wanted, i)
	}
	c.taken[name] = true
	return name
}
