package net

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
)

// Check returns every well-formedness problem of the definition, sorted by code and subject; nil if there is none.
//
// The codes are independent: a task without any flow has the problems no-flow-in, no-flow-out, unreachable and
// no-path-to-end. Two rules keep one mistake from causing many problems. A code is reported once for a subject, at its
// first position: a name that is unknown in five flows is one problem. And an unknown name counts as connected: "A ->
// ghost" is a flow out of A, and A is not reported to have no path to the end.
//
// CheckAll finds problems between several workflows.
func (d *Definition) Check() []Problem {
	c := newChecker(d)
	c.ends()
	c.flows()
	c.regions()
	c.degrees()
	c.paths()
	c.routingCycles()
	slices.SortStableFunc(c.problems, byCodeAndSubject)
	return slices.CompactFunc(c.problems, func(a, b Problem) bool { return byCodeAndSubject(a, b) == 0 })
}

// checker holds a definition with its names resolved. An element is a number: conditions first, then tasks, in the
// order of their declaration. Of two elements with one name the first one stands for both.
type checker struct {
	d        *Definition
	elements []element
	byName   map[string]int
	implicit map[string]Flow // the first flow of each implicit condition
	next     [][]int         // by element: where its flows lead, in flow order
	prev     [][]int
	open     []openEnds
	problems []Problem
}

type element struct {
	name string
	task bool
	role Role
	pos  Pos
}

// openEnds says that an element has flows to or from a name that is not known.
type openEnds struct{ in, out bool }

func (e element) String() string {
	switch {
	case e.task:
		return fmt.Sprintf("task %q", e.name)
	case e.role == Start:
		return fmt.Sprintf("start condition %q", e.name)
	case e.role == End:
		return fmt.Sprintf("end condition %q", e.name)
	}
	return fmt.Sprintf("condition %q", e.name)
}

func newChecker(d *Definition) *checker {
	c := &checker{d: d, byName: make(map[string]int), implicit: make(map[string]Flow)}
	for _, p := range d.Conditions {
		c.declare(element{name: p.Name, role: p.Role, pos: p.Pos})
	}
	for _, t := range d.Tasks {
		c.declare(element{name: t.Name, task: true, pos: t.Pos})
	}
	c.next = make([][]int, len(c.elements))
	c.prev = make([][]int, len(c.elements))
	c.open = make([]openEnds, len(c.elements))
	return c
}

func (c *checker) declare(e element) {
	if first, ok := c.byName[e.name]; ok {
		c.add(Problem{
			Code: DuplicateName, Subject: e.name, Pos: e.pos, Other: c.elements[first].pos,
			Text: fmt.Sprintf("%s has the name of %s: rename one of them", e, c.elements[first]),
		})
	} else {
		c.byName[e.name] = len(c.elements)
	}
	c.elements = append(c.elements, e)
}

func (c *checker) add(p Problem) { c.problems = append(c.problems, p) }

// first reports whether an element is the one that its name stands for.
func (c *checker) first(i int) bool { return c.byName[c.elements[i].name] == i }

// withRole lists the elements of a role, duplicates of a name included.
func (c *checker) withRole(r Role) []int {
	var found []int
	for i, e := range c.elements {
		if e.role == r && !e.task {
			found = append(found, i)
		}
	}
	return found
}

// ends checks that there is one start and one end.
func (c *checker) ends() {
	for _, want := range []struct {
		role      Role
		word      string
		none, two Code
	}{
		{Start, "start", NoStart, DuplicateStart},
		{End, "end", NoEnd, DuplicateEnd},
	} {
		found := c.withRole(want.role)
		if len(found) == 0 {
			c.add(Problem{
				Code: want.none, Subject: c.d.Name, Pos: c.d.Pos,
				Text: fmt.Sprintf("workflow %q has no %s condition: declare one", c.d.Name, want.word),
			})
			continue
		}
		for _, i := range found[1:] {
			e, one := c.elements[i], c.elements[found[0]]
			c.add(Problem{
				Code: want.two, Subject: e.name, Pos: e.pos, Other: one.pos,
				Text: fmt.Sprintf("%s is a second one beside %q: make it an ordinary condition", e, one.name),
			})
		}
	}
}

// flows resolves the ends of every flow, and checks what a flow may join.
func (c *checker) flows() {
	for _, f := range c.d.Flows {
		from, fromKnown := c.byName[f.From]
		to, toKnown := c.byName[f.To]
		if fromKnown && toKnown {
			c.flow(f, from, to)
			continue
		}
		if fromKnown {
			c.open[from].out = true
		} else {
			c.unknown(f.From, f.Pos, fmt.Sprintf("flow %q -> %q starts at", f.From, f.To))
		}
		if toKnown {
			c.open[to].in = true
		} else {
			c.unknown(f.To, f.Pos, fmt.Sprintf("flow %q -> %q leads to", f.From, f.To))
		}
	}
}

func (c *checker) unknown(name string, pos Pos, what string) {
	text := fmt.Sprintf("%s %q, which workflow %q does not declare", what, name, c.d.Name)
	if meant := c.closest(name); meant != "" {
		text += fmt.Sprintf("; did you mean %q?", meant)
	}
	c.add(Problem{Code: UnknownName, Subject: name, Pos: pos, Text: text})
}

// maxCompared is how many elements a net has whose names are compared with an unknown one: a net can have as many unknown names as names.
const maxCompared = 1000

// closest is the declared name that an unknown one resembles; "" if there is none.
func (c *checker) closest(name string) string {
	if len(c.elements) > maxCompared {
		return ""
	}
	known := make([]string, len(c.elements))
	for i, e := range c.elements {
		known[i] = e.name
	}
	return spelling.Closest(name, known)
}

func (c *checker) flow(f Flow, from, to int) {
	c.next[from] = append(c.next[from], to)
	c.prev[to] = append(c.prev[to], from)
	a, b := c.elements[from], c.elements[to]
	if a.task && b.task {
		c.implicitFlow(f, a, b)
	}
	refuse := func(code Code, other Pos, text string) {
		c.add(Problem{Code: code, Subject: ImplicitName(f.From, f.To), Pos: f.Pos, Other: other, Text: text})
	}
	if !a.task && !b.task {
		refuse(ConditionToCondition, b.pos,
			fmt.Sprintf("%s flows straight into %s: put a task between them", a, b))
	}
	if !b.task && b.role == Start {
		refuse(FlowIntoStart, b.pos, fmt.Sprintf("%s flows into %s, which holds the first token only", a, b))
	}
	if !a.task && a.role == End {
		refuse(FlowOutOfEnd, a.pos, fmt.Sprintf("%s flows on to %s, but a token in it completes the case", a, b))
	}
}

// implicitFlow notes the condition that a flow between tasks makes, and checks that its name is free. A second flow
// with the same ends means the same condition.
func (c *checker) implicitFlow(f Flow, a, b element) {
	name := ImplicitName(f.From, f.To)
	if i, ok := c.byName[name]; ok {
		c.add(Problem{
			Code: DuplicateName, Subject: name, Pos: c.elements[i].pos, Other: f.Pos,
			Text: fmt.Sprintf("%s has the name of the implicit condition between %s and %s: rename it",
				c.elements[i], a, b),
		})
	}
	one, ok := c.implicit[name]
	if !ok {
		c.implicit[name] = f
	} else if one.From != f.From {
		c.add(Problem{
			Code: DuplicateName, Subject: name, Pos: f.Pos, Other: one.Pos,
			Text: fmt.Sprintf("the implicit condition between %s and %s has the name of the one between %q and %q: "+
				"rename a task", a, b, one.From, one.To),
		})
	}
}

// regions checks the members of cancellation regions.
func (c *checker) regions() {
	for _, t := range c.d.Tasks {
		for _, name := range t.Cancels {
			_, declared := c.byName[name]
			_, implicit := c.implicit[name]
			if !declared && !implicit {
				c.unknown(name, t.Pos, fmt.Sprintf("the cancellation region of task %q names", t.Name))
			}
		}
	}
}

// degrees checks that everything but the start has a flow in, and everything but the end a flow out.
func (c *checker) degrees() {
	for i, e := range c.elements {
		if !c.first(i) {
			continue
		}
		if len(c.prev[i]) == 0 && !c.open[i].in && e.role != Start {
			c.add(Problem{Code: NoFlowIn, Subject: e.name, Pos: e.pos, Text: fmt.Sprintf("%s has no flow in", e)})
		}
		if len(c.next[i]) == 0 && !c.open[i].out && e.role != End {
			c.add(Problem{Code: NoFlowOut, Subject: e.name, Pos: e.pos, Text: fmt.Sprintf("%s has no flow out", e)})
		}
	}
}

// paths checks that every element lies between the start and the end. With no start no path from it can be asked for;
// with two, which is a problem of its own, a path from either will do. Likewise the end.
func (c *checker) paths() {
	if starts := c.withRole(Start); len(starts) > 0 {
		from := c.reached(starts, c.next, func(o openEnds) bool { return o.in })
		c.missing(from, Unreachable, starts, "no path leads from %[2]s to %[1]s")
	}
	if ends := c.withRole(End); len(ends) > 0 {
		to := c.reached(ends, c.prev, func(o openEnds) bool { return o.out })
		c.missing(to, NoPathToEnd, ends, "no path leads from %[1]s to %[2]s")
	}
}

// reached finds the elements on paths from some of them, or from a flow whose other end is unknown.
func (c *checker) reached(from []int, step [][]int, open func(openEnds) bool) []bool {
	seen := make([]bool, len(c.elements))
	var queue []int
	for _, i := range from {
		queue = append(queue, c.byName[c.elements[i].name])
	}
	for i := range c.elements {
		if open(c.open[i]) {
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if !seen[i] {
			seen[i] = true
			queue = append(queue, step[i]...)
		}
	}
	return seen
}

func (c *checker) missing(seen []bool, code Code, poles []int, format string) {
	pole := c.elements[poles[0]]
	from := pole.String()
	if len(poles) > 1 {
		from = "any " + [...]string{Start: "start", End: "end"}[pole.role] + " condition"
	}
	for i, e := range c.elements {
		if !seen[i] && c.first(i) {
			c.add(Problem{
				Code: code, Subject: e.name, Pos: e.pos, Other: pole.pos, Text: fmt.Sprintf(format, e, from),
			})
		}
	}
}

func byCodeAndSubject(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), strings.Compare(a.Subject, b.Subject))
}
