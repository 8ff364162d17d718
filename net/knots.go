package net

// netKnots are the [knots] of a net, whose conditions are numbered first, then its tasks.
func netKnots(n *Net) []int {
	return knots(len(n.conditions)+len(n.tasks), func(x int) []int { return successors(n, x) })
}

// knots finds the strongly connected components of a graph, the sets of nodes that can reach each other, and says for
// each node the number of its own, from 1 (Tarjan's algorithm, without recursion). A component that others lead to has
// a smaller number than they.
func knots(size int, successors func(int) []int) []int {
	k := &knotting{
		successors: successors, knot: make([]int, size), low: make([]int, size), order: make([]int, size),
	}
	for x := range size {
		if k.order[x] == 0 {
			k.walk(x)
		}
	}
	return k.knot
}

type knotting struct {
	successors func(int) []int

	knot       []int // by node; valid once the node has left the stack
	low, order []int // by node; an order of 0 means not seen
	open       []int // the stack of nodes whose knot is not complete
	seen       int
	count      int
}

type visit struct {
	node int
	rest []int
}

func (k *knotting) walk(start int) {
	path := []visit{k.enter(start)}
	for len(path) > 0 {
		top := &path[len(path)-1]
		if len(top.rest) > 0 {
			next := top.rest[0]
			top.rest = top.rest[1:]
			switch {
			case k.order[next] == 0:
				path = append(path, k.enter(next))
			case k.knot[next] == 0:
				k.low[top.node] = min(k.low[top.node], k.order[next])
			}
			continue
		}
		x := top.node
		if path = path[:len(path)-1]; len(path) > 0 {
			up := path[len(path)-1].node
			k.low[up] = min(k.low[up], k.low[x])
		}
		if k.low[x] == k.order[x] {
			k.leave(x)
		}
	}
}

func (k *knotting) enter(x int) visit {
	k.seen++
	k.order[x], k.low[x] = k.seen, k.seen
	k.open = append(k.open, x)
	return visit{x, k.successors(x)}
}

// leave closes the knot that begins with x.
func (k *knotting) leave(x int) {
	k.count++
	for {
		y := k.open[len(k.open)-1]
		k.open = k.open[:len(k.open)-1]
		if k.knot[y] = k.count; y == x {
			return
		}
	}
}
