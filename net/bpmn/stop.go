package bpmn

// A process may repeat a loop until an event stops it: an interrupting event at the border of its sub-process, or at
// the start of an event sub-process. Then no path leads from the loop to an end, although every run may end, and a net
// requires such a path. So the event, which has an xor-join, also takes a token of the loop:
//
//	begin -> armed -> event          before
//	begin -> armed, loop -> event    with a path from the loop
//
// The behaviour is the same. The event is enabled by the condition "armed" whenever the loop runs, and whichever token
// it takes, it cancels the other.

// stuck returns the nodes of a scope without a path out of it.
func (s *scope) stuck() []*node {
	before := map[*node][]*node{}
	for _, n := range s.nodes {
		for _, f := range n.out {
			before[f.to] = append(before[f.to], n)
		}
		if n.link != nil {
			before[n.link] = append(before[n.link], n)
		}
	}
	free := map[*node]bool{}
	for _, n := range s.nodes {
		if n.handler || n.isEnd() || n.catcher != nil || n.sub != nil && n.sub.inline && !n.sub.canEnd() {
			spread(n, before, free)
		}
	}
	var stuck []*node
	for _, n := range s.nodes {
		if !free[n] {
			stuck = append(stuck, n)
			if len(n.out) > 0 {
				n.out[0].stop = s.stop != nil
				spread(n, before, free)
			}
		}
	}
	return stuck
}

// spread adds a node to a set, with all nodes from which it can be reached.
func spread(n *node, before map[*node][]*node, set map[*node]bool) {
	for open := []*node{n}; len(open) > 0; {
		m := open[len(open)-1]
		open = open[:len(open)-1]
		if !set[m] {
			set[m] = true
			open = append(open, before[m]...)
		}
	}
}

// markStops marks flows of all loops that only an event stops: enough of them that there is a path out from every node.
func (s *scope) markStops() {
	s.stop = s.stopper()
	if len(s.stuck()) == 0 {
		s.stop = nil
	}
	for _, n := range s.nodes {
		if n.sub != nil {
			n.sub.markStops()
		}
	}
}

// stopper returns the event that stops a scope from outside of its flows, or nil.
func (s *scope) stopper() *node {
	for _, h := range s.nodes {
		if !h.handler {
			continue
		}
		for _, e := range h.sub.nodes {
			if e.kind == startEvent && e.interrupting && len(e.thrown) == 0 {
				return e
			}
		}
	}
	if s.inline && !s.isHandler() {
		return s.borderStop()
	}
	return nil
}

// borderStop returns the first event at the border of a scope that interrupts it, or nil.
func (s *scope) borderStop() *node {
	if s.owner == nil || s.isHandler() {
		return nil
	}
	for _, b := range s.owner.boundary {
		if b.interrupting && len(b.thrown) == 0 {
			return b
		}
	}
	return nil
}
