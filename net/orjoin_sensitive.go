package net

import "slices"

// More tokens can make less possible. A region removes the private inputs of an and-join of several inputs only if all
// its inputs are marked, since only then the member is enabled. With one token less, the others survive the region.
//
// For example, M, an and-join of p and q, and R cancel each other. With tokens in p and q, whichever completes first
// disables the other. If another task takes the token in q before R completes, the one in p stays.
//
// The cells in which fewer tokens can make more possible are sensitive: the inputs of such a member, and the busy tasks
// that decide whether these tokens are taken. Tasks that can lower their counts belong to the slice, even if no path
// leads from them to the join: see [growth]. In the searches one state covers another only if both are equal in all
// sensitive cells.

// conditional reports whether the region of a task empties private inputs of a member only if all inputs of the member
// are marked.
func (n *Net) conditional(owner, member TaskID) bool {
	at := &n.tasks[member]
	if owner == member || n.def.Tasks[member].Join != And || len(at.inputs) < 2 {
		return false
	}
	region := n.tasks[owner].region
	return slices.ContainsFunc(at.private, func(c ConditionID) bool { return !slices.Contains(region, c) })
}

// growth adds to a slice what its sensitive cells depend on.
type growth struct {
	*slice
	n     *Net
	join  TaskID
	found []int        // sensitive nodes, conditions numbered first, in the order in which they were found
	known map[int]bool // the same nodes as a set
}

// grow adds everything that the slice depends on; the inputs of the join are in it already.
func (s *slice) grow(n *Net, join TaskID) {
	g := &growth{slice: s, n: n, join: join}
	for place, node := 0, 0; place < len(s.places) || node < len(g.found); {
		if place == len(s.places) {
			g.follow(g.found[node])
			node++
			continue
		}
		for _, t := range n.conditions[s.places[place]].producers {
			g.admit(t)
		}
		place++
	}
	s.sensitive = g.known
}

// admit adds a task and its inputs.
func (g *growth) admit(t TaskID) {
	if t == g.join || g.cell[t] >= 0 {
		return
	}
	g.cell[t] = int32(len(g.tasks))
	g.tasks = append(g.tasks, t)
	at := &g.n.tasks[t]
	for _, c := range at.inputs {
		g.addPlace(c)
	}
	for _, u := range at.regionTasks {
		if g.cell[u] >= 0 && g.n.conditional(t, u) {
			g.senseMember(u)
		}
	}
	for _, owner := range at.namedBy {
		if g.cell[owner] >= 0 && g.n.conditional(owner, t) {
			g.senseMember(t)
		}
	}
}

// senseMember records that the effect of a task's region depends on whether all inputs of a member are marked.
func (g *growth) senseMember(u TaskID) {
	g.sense(len(g.n.conditions) + int(u))
	for _, c := range g.n.tasks[u].inputs {
		g.sense(int(c))
	}
}

func (g *growth) sense(node int) {
	if !g.known[node] {
		if g.known == nil {
			g.known = make(map[int]bool)
		}
		g.known[node] = true
		g.found = append(g.found, node)
	}
}

// follow adds the tasks that can lower the count of a sensitive cell. Those that start from a sensitive condition are
// sensitive too, since a busy one does not start again.
func (g *growth) follow(node int) {
	if t := node - len(g.n.conditions); t >= 0 {
		for _, owner := range g.n.tasks[t].namedBy {
			g.admit(owner)
		}
		return
	}
	c := &g.n.conditions[node]
	for _, t := range c.consumers {
		if t != g.join {
			g.admit(t)
			g.sense(len(g.n.conditions) + int(t))
		}
	}
	for _, owner := range c.namedBy {
		g.admit(owner)
	}
}

// mask returns a state with all bits of every sensitive cell set; nil if there are none.
func (s *slice) mask(conditions int) state {
	if len(s.sensitive) == 0 {
		return nil
	}
	mask := make(state, (s.cells()+7)&^7)
	for node := range s.sensitive {
		if node < conditions {
			mask[s.spot[node]] = 0xff
		} else {
			mask[s.cell[node-conditions]] = 0xff
		}
	}
	return mask
}

// maxSensitive bounds the sensitive outputs of an or-split for which all choices are tried.
const maxSensitive = 6

// choices returns the sets of cells into which the completion of a task can put tokens. If more tokens never make less
// possible, the full choice of an or-split represents all others, and one outside of the slice represents none. A
// sensitive output may be better left empty. The second result is false if some choices were left out.
func (s *slice) choices(n *Net, i int32) ([][]int32, bool) {
	t := s.tasks[i]
	outs, split := s.outs[i], n.def.Tasks[t].Split
	beyond := len(outs) < len(n.tasks[t].outputs)
	var safe, sensitive []int32
	for _, c := range outs {
		if s.sensitive[int(s.places[c])] {
			sensitive = append(sensitive, c)
		} else {
			safe = append(safe, c)
		}
	}
	switch {
	case split == Xor && beyond && len(safe) == 0:
		return append(alternatives(outs, true), nil), true
	case split != Or || len(sensitive) == 0:
		return alternatives(outs, split == Xor), true
	case len(sensitive) > maxSensitive:
		return [][]int32{outs}, false
	}
	sets := [][]int32{safe}
	for _, c := range sensitive {
		for _, without := range sets {
			sets = append(sets, append(slices.Clip(without), c))
		}
	}
	if len(safe) == 0 && !beyond {
		sets = sets[1:] // an or-split puts out something
	}
	return sets, true
}

// couplings returns the nodes that may be sensitive in some slice: the inputs of every and-join of several inputs that
// a region names, and the tasks that start from them.
func (n *Net) couplings() Bits {
	found := NewBits(len(n.conditions) + len(n.tasks))
	for u := range n.tasks {
		if !slices.ContainsFunc(n.tasks[u].namedBy, func(t TaskID) bool { return n.conditional(t, TaskID(u)) }) {
			continue
		}
		for _, c := range n.tasks[u].inputs {
			found.Add(int(c))
			for _, t := range n.conditions[c].consumers {
				found.Add(len(n.conditions) + int(t))
			}
		}
	}
	return found
}

// influenced returns the nodes whose slices include a node: its successors and, for nodes that may be sensitive, what
// it takes tokens from or cancels. See [growth.follow].
func (n *Net) influenced(coupled Bits, node int) []int {
	list := successors(n, node)
	t := node - len(n.conditions)
	if t < 0 {
		return list
	}
	add := func(other int) {
		if coupled.Has(other) {
			list = append(list, other)
		}
	}
	at := &n.tasks[t]
	for _, c := range at.inputs {
		add(int(c))
	}
	for _, c := range at.region {
		add(int(c))
	}
	for _, u := range at.regionTasks {
		add(len(n.conditions) + int(u))
	}
	return list
}

// successors lists the nodes behind one: conditions are numbered first, then tasks.
func successors(n *Net, node int) []int {
	var list []int
	if t := node - len(n.conditions); t >= 0 {
		for _, c := range n.tasks[t].outputs {
			list = append(list, int(c))
		}
		return list
	}
	for _, t := range n.conditions[node].consumers {
		list = append(list, len(n.conditions)+int(t))
	}
	return list
}
