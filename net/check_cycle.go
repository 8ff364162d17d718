package net

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// routingCycles checks that no cycle of flows has routing tasks alone. Such tasks run to their end as soon as they are
// enabled, so a token could move along it without end within one command.
func (c *checker) routingCycles() {
	routing := func(i int) bool {
		e := c.elements[i]
		return e.task && c.d.Tasks[i-len(c.d.Conditions)].Kind == Routing
	}
	next := make([][]int, len(c.elements))
	for i := range c.elements {
		if !routing(i) || !c.first(i) {
			continue
		}
		for _, j := range c.next[i] {
			if c.elements[j].task {
				next[i] = appendIf(next[i], j, routing)
				continue
			}
			for _, k := range c.next[j] {
				next[i] = appendIf(next[i], k, routing)
			}
		}
	}
	for _, cycle := range cycles(next) {
		e := c.elements[cycle[0]]
		c.add(Problem{
			Code: RoutingCycle, Subject: e.name, Pos: e.pos, Other: c.elements[cycle[len(cycle)-1]].pos,
			Text: fmt.Sprintf("the cycle %s holds routing tasks only and could run without end: put a task with work items in it",
				c.cycleNames(cycle)),
		})
	}
}

func appendIf(list []int, i int, ok func(int) bool) []int {
	if ok(i) {
		list = append(list, i)
	}
	return list
}

func (c *checker) cycleNames(cycle []int) string {
	names := make([]string, 0, len(cycle)+1)
	for _, i := range append(slices.Clone(cycle), cycle[0]) {
		names = append(names, fmt.Sprintf("%q", c.elements[i].name))
	}
	return strings.Join(names, " -> ")
}

// cycles lists disjoint cycles of a graph, one for each of its strongly connected components. A cycle is a shortest one
// through the first node of its component, and begins there.
func cycles(next [][]int) [][]int {
	component := graph.Components(len(next), func(i int) []int { return next[i] })
	done := make([]bool, len(next)+1) // by component
	var found [][]int
	for i := range next {
		if done[component[i]] {
			continue
		}
		done[component[i]] = true
		if cycle := shortestCycle(next, component, i); cycle != nil {
			found = append(found, cycle)
		}
	}
	return found
}

// shortestCycle returns the nodes of a shortest cycle through a node, which comes first; nil if there is none. It does
// not leave the node's component, from outside of which no way leads back.
func shortestCycle(next [][]int, component []int, start int) []int {
	parent := make(map[int]int)
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, j := range next[i] {
			if j == start {
				cycle := []int{i}
				for i != start {
					i = parent[i]
					cycle = append(cycle, i)
				}
				slices.Reverse(cycle)
				return cycle
			}
			if _, seen := parent[j]; !seen && component[j] == component[start] {
				parent[j] = i
				queue = append(queue, j)
			}
		}
	}
	return nil
}

// CheckAll returns the problems that lie between workflows, sorted by code and subject; nil if there is none. It does
// not repeat what [Definition.Check] says of each.
//
// Two workflows of one name are a duplicate-name of that name. A composite task that runs a workflow which is not in
// the set is an unknown-name of that workflow. A composite task that runs, directly or through other workflows, the
// workflow it stands in is a recursive-composite: its cases would nest without end.
func CheckAll(defs []*Definition) []Problem {
	var problems []Problem
	byName := make(map[string]int, len(defs))
	for i, d := range defs {
		first, ok := byName[d.Name]
		if !ok {
			byName[d.Name] = i
			continue
		}
		problems = append(problems, Problem{
			Code: DuplicateName, Subject: d.Name, Pos: d.Pos, Other: defs[first].Pos,
			Text: fmt.Sprintf("two workflows have the name %q: rename one of them", d.Name),
		})
	}
	next := make([][]int, len(defs))
	eachComposite(defs, func(i int, t *Task, name string) {
		child, ok := byName[name]
		if !ok {
			problems = append(problems, Problem{
				Code: UnknownName, Subject: name, Pos: t.Pos,
				Text: fmt.Sprintf("composite task %q of workflow %q runs %q, which is not among the workflows",
					t.Name, defs[i].Name, name),
			})
			return
		}
		next[i] = append(next[i], child)
	})
	component := graph.Components(len(next), func(i int) []int { return next[i] })
	eachComposite(defs, func(i int, t *Task, name string) {
		child, ok := byName[name]
		if !ok || component[child] != component[i] {
			return
		}
		text := fmt.Sprintf("composite task %q of workflow %q runs %q, which runs %[2]q again, and so without end",
			t.Name, defs[i].Name, name)
		if child == i {
			text = fmt.Sprintf("composite task %q runs its own workflow %q again, and so without end", t.Name, name)
		}
		problems = append(problems, Problem{
			Code: RecursiveComposite, Subject: t.Name, Pos: t.Pos, Other: defs[child].Pos, Text: text,
		})
	})
	slices.SortStableFunc(problems, byCodeAndSubject)
	return slices.Compact(problems)
}

// eachComposite visits every workflow that a composite task names, with the index of the definition the task stands in.
func eachComposite(defs []*Definition, visit func(i int, t *Task, name string)) {
	for i, d := range defs {
		for k := range d.Tasks {
			t := &d.Tasks[k]
			if t.Kind != Composite {
				continue
			}
			for _, name := range t.Of {
				visit(i, t, name)
			}
		}
	}
}
