package net

// knots numbers the sets of nodes that can reach each other, and says for each node which one it is in (Tarjan's
// algorithm, without recursion). Conditions are numbered first, then tasks.
func knots(n *Net) []int {
	size := len(n.conditions) + len(n.tasks)
	k := &knotting{n: n, knot: make([]int, size), low: make([]int, size), order: make([]int, size)}
	for x := range size {
		if k.order[x] == 0 {
			k.walk(x)
		}
	}
	return k.knot
}

type knotting struct {
	n          *Net
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
	return visit{x, successors(k.n, x)}
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

// dominators knows, for every node that can be reached from the start, the last one that all ways from there lead over
// (Cooper, Harvey and Kennedy's iteration).
type dominators struct {
	rank []int // by node, its place in a reverse postorder; -1 if it cannot be reached
	by   []int // by rank, the rank of the immediate dominator
	node []int // by rank
}

func newDominators(n *Net) *dominators {
	size := len(n.conditions) + len(n.tasks)
	d := &dominators{rank: make([]int, size)}
	for i := range d.rank {
		d.rank[i] = -1
	}
	d.number(n)
	preds := make([][]int, len(d.node))
	for r, x := range d.node {
		for _, y := range successors(n, x) {
			preds[d.rank[y]] = append(preds[d.rank[y]], r)
		}
	}
	d.by = make([]int, len(d.node))
	for r := range d.by {
		d.by[r] = -1
	}
	d.by[0] = 0
	for changed := true; changed; {
		changed = false
		for r := 1; r < len(d.node); r++ {
			best := -1
			for _, p := range preds[r] {
				switch {
				case d.by[p] < 0:
				case best < 0:
					best = p
				default:
					best = d.meet(best, p)
				}
			}
			if d.by[r] != best {
				d.by[r], changed = best, true
			}
		}
	}
	return d
}

// number walks the net depth first, without recursion, and ranks the nodes.
func (d *dominators) number(n *Net) {
	type frame struct {
		node int
		rest []int
	}
	var post []int
	seen := NewBits(len(d.rank))
	stack := []frame{{int(n.start), successors(n, int(n.start))}}
	seen.Add(int(n.start))
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.rest) == 0 {
			post = append(post, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		next := top.rest[0]
		top.rest = top.rest[1:]
		if !seen.Has(next) {
			seen.Add(next)
			stack = append(stack, frame{next, successors(n, next)})
		}
	}
	for i := len(post) - 1; i >= 0; i-- {
		d.rank[post[i]] = len(d.node)
		d.node = append(d.node, post[i])
	}
}

// meet is the nearest common dominator of two ranks.
func (d *dominators) meet(a, b int) int {
	for a != b {
		if a > b {
			a = d.by[a]
		} else {
			b = d.by[b]
		}
	}
	return a
}

// of returns the immediate dominator of a node, or -1.
func (d *dominators) of(node int) int {
	if r := d.rank[node]; r > 0 {
		return d.node[d.by[r]]
	}
	return -1
}
