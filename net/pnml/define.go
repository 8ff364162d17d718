package pnml

import (
	"strconv"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// Closing a net. A workflow has one start, which has the initial token and no incoming flow, and one end. A net in a
// file may have several or none, so a start or an end is added if it is missing:
//
//	marked places p, q          start -> begin -> p, q       begin is a routing task with an and-split
//	sinks s, t                  s, t -> finish -> end        finish is a routing task with an or-join
//	a transition t without      t -> t_done                  t_done is one more sink
//	an output
//
// The first is exact: its only first step leads to the initial marking of the file. The or-join fires when a sink is
// marked and no other can become marked. So a run of the file that ends with all places empty except the sinks also
// ends the workflow, unless it has put two tokens into one sink. Verification of the file itself uses the [net.Petri],
// which does not have this difference.

// closer makes a definition of a plain net without weights.
type closer struct {
	*builder
	p       *net.Petri
	def     *net.Definition
	skipped net.Bits // places without arcs
	sinks   net.Bits // the other places without consumers
	starts  []*node
	ends    []string
}

// define returns nil, after a note with the reason, if the net cannot be a workflow.
func (b *builder) define() *net.Definition {
	c := &closer{builder: b, p: b.out.Petri}
	if !c.findStart() || !c.closable() || !c.findEnd() {
		return nil
	}
	c.def = &net.Definition{Name: c.p.Name, Pos: c.p.Pos}
	c.addNodes()
	c.addFlows()
	c.closeStart()
	c.closeEnd()
	c.noteDisconnected()
	return c.def
}

func (c *closer) plainOnly(el *xmlread.Element, why string) bool {
	c.note(PlainOnly, el.Line, el.String(), why+"; only the plain net is read")
	return false
}

// closable reports whether a workflow can express the net, and adds a note if not.
func (c *closer) closable() bool {
	if len(c.p.Transitions) == 0 {
		return c.plainOnly(c.g.el, "the net has places only")
	}
	for _, a := range c.g.arcs {
		if a.kind != "reset" && a.weight > 1 {
			return c.plainOnly(a.el, "it moves "+strconv.Itoa(a.weight)+" tokens at once")
		}
	}
	for _, n := range c.g.nodes {
		switch {
		case n.initial > 1:
			return c.plainOnly(n.el, "it holds "+strconv.Itoa(n.initial)+" tokens in the beginning")
		case n.transition && len(c.p.Transitions[n.index].In) == 0:
			return c.plainOnly(n.el, "it has no input, so it can fire without end")
		}
	}
	return true
}

// findStart returns the places with an initial token. If there is none, it is the only source, as in files of editors
// that set the marking in the simulator.
func (c *closer) findStart() bool {
	sources := net.NewBits(len(c.p.Places))
	for _, i := range c.p.Sources() {
		sources.Add(i)
	}
	c.skipped = net.NewBits(len(c.p.Places))
	for _, i := range c.p.Isolated() {
		c.skipped.Add(i)
	}
	var open []*node
	for _, n := range c.g.nodes {
		switch {
		case n.transition:
		case c.skipped.Has(n.index):
			c.note(Isolated, n.el.Line, n.el.String(), c.whyIsolated(n))
		case n.initial > 0:
			c.starts = append(c.starts, n)
		case sources.Has(n.index):
			open = append(open, n)
		}
	}
	if len(c.starts) > 0 {
		return true
	}
	if len(open) != 1 {
		return c.plainOnly(c.g.el, "no place is marked in the beginning and "+strconv.Itoa(len(open))+" places have no input")
	}
	c.starts = open
	c.p.Places[open[0].index].Initial = 1
	c.note(Closed, open[0].el.Line, open[0].el.String(),
		"no place is marked in the beginning; as the only one without an input it is given a token")
	return true
}

// whyIsolated says why a place does not matter to the workflow.
func (c *closer) whyIsolated(n *node) string {
	for _, a := range c.g.arcs {
		if a.from == n {
			return "only the reset arc of the " + a.to.el.String() + " touches it, and no arc puts a token into it, so there is nothing to remove"
		}
	}
	return "no arc begins or ends at it, so nothing that happens there matters"
}

func (c *closer) findEnd() bool {
	c.sinks = net.NewBits(len(c.p.Places))
	for _, i := range c.p.Sinks() {
		c.sinks.Add(i)
		c.ends = append(c.ends, c.p.Places[i].Name)
	}
	none := true
	for i := range c.p.Transitions {
		none = none && len(c.p.Transitions[i].Out) > 0
	}
	if len(c.ends) == 0 && none {
		return c.plainOnly(c.g.el, "every place has an output, so it never ends")
	}
	return true
}

// addNodes adds places and transitions in the order of the file.
func (c *closer) addNodes() {
	for _, n := range c.g.nodes {
		name, pos := c.name[n], c.pos(n.el.Line)
		switch {
		case !n.transition:
			if !c.skipped.Has(n.index) {
				c.def.Conditions = append(c.def.Conditions, net.Condition{Name: name, Pos: pos})
			}
		case n.silent:
			c.def.Tasks = append(c.def.Tasks, net.Task{Name: name, Kind: net.Routing, Pos: pos})
		default:
			c.def.Tasks = append(c.def.Tasks, net.Task{Name: name, Pos: pos})
		}
		if !n.transition {
			continue
		}
		t, task := &c.p.Transitions[n.index], &c.def.Tasks[len(c.def.Tasks)-1]
		for _, i := range t.Resets {
			if !c.skipped.Has(i) {
				task.Cancels = append(task.Cancels, c.p.Places[i].Name)
			}
		}
		if len(t.Out) == 0 {
			c.addSink(n)
		}
	}
}

// added returns the name of an element that the file does not have.
func (c *closer) added(wanted string) string {
	name := c.names.Name(wanted)
	c.bare.Add(name)
	return name
}

func (c *closer) addSink(n *node) {
	sink := c.added(c.name[n] + "_done")
	c.def.Conditions = append(c.def.Conditions, net.Condition{Name: sink, Pos: c.pos(n.el.Line)})
	c.def.Flows = append(c.def.Flows, net.Flow{From: c.name[n], To: sink, Pos: c.pos(n.el.Line)})
	c.ends = append(c.ends, sink)
	c.note(Closed, n.el.Line, n.el.String(), "it has no output; the condition "+sink+" is added behind it")
}

func (c *closer) addFlows() {
	for _, a := range c.g.arcs {
		if a.kind != "reset" {
			c.def.Flows = append(c.def.Flows, net.Flow{From: c.name[a.from], To: c.name[a.to], Pos: c.pos(a.el.Line)})
		}
	}
}

func (c *closer) closeStart() {
	if len(c.starts) == 1 && !c.isFed(c.starts[0]) {
		c.setRole(c.name[c.starts[0]], net.Start)
		return
	}
	start, begin := c.added("start"), c.added("begin")
	pos := c.def.Pos
	c.def.Conditions = append(c.def.Conditions, net.Condition{Name: start, Role: net.Start, Pos: pos})
	c.def.Tasks = append(c.def.Tasks, net.Task{Name: begin, Kind: net.Routing, Pos: pos})
	c.def.Flows = append(c.def.Flows, net.Flow{From: start, To: begin, Pos: pos})
	for _, n := range c.starts {
		c.def.Flows = append(c.def.Flows, net.Flow{From: begin, To: c.name[n], Pos: c.pos(n.el.Line)})
	}
	why := "it is marked in the beginning, and transitions put more into it"
	if len(c.starts) > 1 {
		why = strconv.Itoa(len(c.starts)) + " places are marked in the beginning, this one first"
	}
	c.note(Closed, c.starts[0].el.Line, c.starts[0].el.String(),
		why+"; "+start+" -> "+begin+" is added before")
}

func (c *closer) isFed(n *node) bool {
	for _, a := range c.g.arcs {
		if a.to == n {
			return true
		}
	}
	return false
}

func (c *closer) setRole(name string, role net.Role) {
	for i := range c.def.Conditions {
		if c.def.Conditions[i].Name == name {
			c.def.Conditions[i].Role = role
		}
	}
}

func (c *closer) closeEnd() {
	if len(c.ends) == 1 {
		c.setRole(c.ends[0], net.End)
		return
	}
	finish, end := c.added("finish"), c.added("end")
	pos := c.def.Pos
	c.def.Tasks = append(c.def.Tasks, net.Task{Name: finish, Kind: net.Routing, Join: net.Or, Pos: pos})
	c.def.Conditions = append(c.def.Conditions, net.Condition{Name: end, Role: net.End, Pos: pos})
	for _, s := range c.ends {
		c.def.Flows = append(c.def.Flows, net.Flow{From: s, To: finish, Pos: pos})
	}
	c.def.Flows = append(c.def.Flows, net.Flow{From: finish, To: end, Pos: pos})
	c.note(Closed, pos.Line, c.g.el.String(), "it has "+strconv.Itoa(len(c.ends))+" ends; "+finish+" -> "+end+
		" is added behind, with an or-join")
}

// noteDisconnected adds notes on the elements that are on no path from the start to the end. They stay in the
// definition, whose check refuses them: omitting them would hide a mistake.
func (c *closer) noteDisconnected() {
	var ends []*node
	for _, n := range c.g.nodes {
		if n.transition && len(c.p.Transitions[n.index].Out) == 0 || !n.transition && c.sinks.Has(n.index) {
			ends = append(ends, n)
		}
	}
	fromStart := c.reach(c.starts, func(a arc) (*node, *node) { return a.from, a.to })
	toEnd := c.reach(ends, func(a arc) (*node, *node) { return a.to, a.from })
	for _, n := range c.g.nodes {
		switch {
		case !n.transition && c.skipped.Has(n.index):
		case !fromStart.Has(n.seq):
			c.note(Disconnected, n.el.Line, n.el.String(), "no path leads to it from what is marked in the beginning")
		case !toEnd.Has(n.seq):
			c.note(Disconnected, n.el.Line, n.el.String(), "no path leads from it to an end")
		}
	}
}

// reach returns the nodes that can be reached from some others, in the direction that step gives to an arc.
func (c *closer) reach(from []*node, step func(arc) (*node, *node)) net.Bits {
	next := make([][]*node, len(c.g.nodes))
	for _, a := range c.g.arcs {
		if a.kind != "reset" {
			x, y := step(a)
			next[x.seq] = append(next[x.seq], y)
		}
	}
	seen := net.NewBits(len(c.g.nodes))
	for open := append([]*node(nil), from...); len(open) > 0; {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		if !seen.Has(n.seq) {
			seen.Add(n.seq)
			open = append(open, next[n.seq]...)
		}
	}
	return seen
}
