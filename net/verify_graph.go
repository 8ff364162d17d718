package net

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
