// Package graph has algorithms on directed graphs that the packages of nets share. A graph is a number of nodes,
// numbered from 0, and a function that returns the successors of each.
//
//	0 -> 1 <-> 2 -> 3      Components: {1, 2} is one, 0 and 3 are one each
//	                       Dominators: every path from 0 to 3 contains 2, so 2 is the immediate dominator of 3
package graph

// Components returns the number of the strongly connected component of each node, from 1. Strongly connected components
// are the largest sets of nodes that can reach each other. A component has a smaller number than those from which it
// can be reached. It is Tarjan's algorithm without recursion.
func Components(size int, successors func(int) []int) []int {
	s := &tarjan{
		successors: successors, component: make([]int, size), low: make([]int, size), order: make([]int, size),
	}
	for x := range size {
		if s.order[x] == 0 {
			s.walk(x)
		}
	}
	return s.component
}

type tarjan struct {
	successors func(int) []int

	component  []int // by node; valid once the node has left the stack
	low, order []int // by node; an order of 0 means not visited
	open       []int // the stack of nodes whose component is not complete
	seen       int
	count      int
}

// visit is a node on a depth-first path, with the successors that were not visited yet.
type visit struct {
	node int
	rest []int
}

func (s *tarjan) walk(start int) {
	path := []visit{s.enter(start)}
	for len(path) > 0 {
		top := &path[len(path)-1]
		if len(top.rest) > 0 {
			next := top.rest[0]
			top.rest = top.rest[1:]
			switch {
			case s.order[next] == 0:
				path = append(path, s.enter(next))
			case s.component[next] == 0:
				s.low[top.node] = min(s.low[top.node], s.order[next])
			}
			continue
		}
		x := top.node
		if path = path[:len(path)-1]; len(path) > 0 {
			up := path[len(path)-1].node
			s.low[up] = min(s.low[up], s.low[x])
		}
		if s.low[x] == s.order[x] {
			s.leave(x)
		}
	}
}

func (s *tarjan) enter(x int) visit {
	s.seen++
	s.order[x], s.low[x] = s.seen, s.seen
	s.open = append(s.open, x)
	return visit{x, s.successors(x)}
}

// leave completes the component whose first node is x.
func (s *tarjan) leave(x int) {
	s.count++
	for {
		y := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		if s.component[y] = s.count; y == x {
			return
		}
	}
}
