package net

import (
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// watches finds the or-joins that a change may affect: those whose slice has the condition or the busy task, which are
// those that can be reached from there. (Any path to an input of a join reaches one without passing the join first.)
// For changes that matter only because of sensitive cells, see [growth], it may return too many joins.
//
// A row of bits for every node, computed in one pass over the net, is small: a net of 3,000 or-joins and 27,000 nodes
// needs 10 MB, where lists of or-joins would need 160. If the rows would be too large, each question is a walk through
// the net.
type watches struct {
	made  sync.Once
	joins []TaskID       // those with several inputs; the index is the bit in the rows
	own   map[TaskID]int // their numbers
	words int            // in a row
	rows  Bits           // by node, conditions first; nil if they would be too large

	coupled Bits // see [Net.couplings]
}

// maxWatches bounds the words of all rows.
const maxWatches = 4 << 20

// watched returns the watches, which are computed on the first call.
func (n *Net) watched() *watches {
	n.watches.made.Do(func() { n.watches.fill(n) })
	return &n.watches
}

func (w *watches) fill(n *Net) {
	w.own = make(map[TaskID]int)
	for t := range n.tasks {
		if n.isOrJoin(TaskID(t)) {
			w.own[TaskID(t)] = len(w.joins)
			w.joins = append(w.joins, TaskID(t))
		}
	}
	w.coupled = n.couplings()
	w.words = (len(w.joins) + 63) / 64
	if nodes := len(n.conditions) + len(n.tasks); w.words*nodes <= maxWatches {
		w.rows = NewBits(64 * w.words * nodes)
		w.spread(n)
	}
}

// spread fills the rows: those of successors first, and all nodes of a cycle alike.
func (w *watches) spread(n *Net) {
	for _, circle := range w.components(n) {
		row := w.row(circle[0])
		for _, x := range circle {
			if i, ok := w.own[TaskID(x-len(n.conditions))]; ok {
				row.Add(i)
			}
			for _, y := range n.influenced(w.coupled, x) {
				row.union(w.row(y))
			}
		}
		for _, x := range circle[1:] {
			copy(w.row(x), row)
		}
	}
}

// components returns the sets of nodes that influence each other; those that others influence come first.
func (w *watches) components(n *Net) [][]int {
	component := graph.Components(len(n.conditions)+len(n.tasks), func(x int) []int { return n.influenced(w.coupled, x) })
	sets := make([][]int, slices.Max(component))
	for x, k := range component {
		sets[k-1] = append(sets[k-1], x)
	}
	return sets
}

func (w *watches) row(node int) Bits { return w.rows[node*w.words : (node+1)*w.words] }

// AddWatchers adds the or-joins with several inputs whose decision may change when the tokens of the given conditions
// change, or when the given tasks become busy or idle. The set that it adds to must have room for all tasks.
func (n *Net) AddWatchers(to, conditions, busy Bits) {
	w := n.watched()
	if w.rows == nil {
		n.walkToWatchers(to, conditions, busy)
		return
	}
	add := func(node int) { w.row(node).Each(func(i int) { to.Add(int(w.joins[i])) }) }
	conditions.Each(add)
	busy.Each(func(t int) { add(len(n.conditions) + t) })
}

// walkToWatchers is [Net.AddWatchers] without rows.
func (n *Net) walkToWatchers(to, conditions, busy Bits) {
	seen := NewBits(len(n.conditions) + len(n.tasks))
	coupled := n.watched().coupled
	var queue []int
	meet := func(node int) {
		if !seen.Has(node) {
			seen.Add(node)
			queue = append(queue, node)
		}
	}
	conditions.Each(meet)
	busy.Each(func(t int) { meet(len(n.conditions) + t) })
	for len(queue) > 0 {
		x := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if t := x - len(n.conditions); t >= 0 && n.isOrJoin(TaskID(t)) {
			to.Add(t)
		}
		for _, y := range n.influenced(coupled, x) {
			meet(y)
		}
	}
}
