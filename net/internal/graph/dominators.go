package graph

// Dominators has the immediate dominator of every node that can be reached from a start node: the last node that is on
// all paths from the start. It is the iteration of Cooper, Harvey and Kennedy.
type Dominators struct {
	rank []int // by node, its position in a reverse postorder; -1 if it cannot be reached
	by   []int // by rank, the rank of the immediate dominator
	node []int // by rank
}

// NewDominators computes the dominators of a graph.
func NewDominators(size, start int, successors func(int) []int) *Dominators {
	d := &Dominators{rank: make([]int, size)}
	for i := range d.rank {
		d.rank[i] = -1
	}
	d.number(start, successors)
	preds := make([][]int, len(d.node))
	for r, x := range d.node {
		for _, y := range successors(x) {
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

// number visits the nodes depth first, without recursion, and ranks them.
func (d *Dominators) number(start int, successors func(int) []int) {
	var post []int
	seen := make([]bool, len(d.rank))
	stack := []visit{{start, successors(start)}}
	seen[start] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.rest) == 0 {
			post = append(post, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		next := top.rest[0]
		top.rest = top.rest[1:]
		if !seen[next] {
			seen[next] = true
			stack = append(stack, visit{next, successors(next)})
		}
	}
	for i := len(post) - 1; i >= 0; i-- {
		d.rank[post[i]] = len(d.node)
		d.node = append(d.node, post[i])
	}
}

// meet returns the nearest common dominator of two ranks.
func (d *Dominators) meet(a, b int) int {
	for a != b {
		if a > b {
			a = d.by[a]
		} else {
			b = d.by[b]
		}
	}
	return a
}

// Of returns the immediate dominator of a node; -1 for the start and for nodes that cannot be reached.
func (d *Dominators) Of(node int) int {
	if r := d.rank[node]; r > 0 {
		return d.node[d.by[r]]
	}
	return -1
}
