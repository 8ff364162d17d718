package bpmn

import "slices"

// Elements that cannot be reached from a start are removed before a net is built, so that the rest can be verified. A
// parallel gateway that also waits for such an element waits without end, and must do so in the net. But if the path is
// missing because a flow could not be read, the gateway does not wait.

// pruneUnreached removes the unreachable elements of a scope and of its inner scopes. A scope that cannot begin is not
// changed, since its check reports that.
func (d *decoder) pruneUnreached(s *scope) {
	seen := s.reached()
	var cut []*node
	for _, n := range s.nodes {
		if n.cut && !seen[n] {
			cut = append(cut, n)
		}
	}
	unread := s.from(cut)
	s.nodes = slices.DeleteFunc(s.nodes, func(n *node) bool {
		n.gone = n.gone || n.kind == boundaryEvent && n.host == nil // there is a note on it already
		return n.gone
	})
	if len(seen) > 0 {
		kept := s.nodes[:0:0]
		for _, n := range s.nodes {
			if seen[n] || n.handler {
				kept = append(kept, n)
				continue
			}
			n.gone = true
			d.note(LeftOut, n.el, n.whyUnreached()+", so it is left out")
		}
		s.nodes = kept
	}
	for _, n := range s.nodes {
		n.dropUnreached(unread)
		if n.sub != nil {
			d.pruneUnreached(n.sub)
		}
	}
}

// reached returns the nodes of a scope that can be reached from its starts.
func (s *scope) reached() map[*node]bool {
	alternatives, open := s.starts()
	if len(alternatives) > 0 {
		open = alternatives
	}
	return s.from(open)
}

// from returns the nodes that can be reached from some nodes, with these.
func (s *scope) from(open []*node) map[*node]bool {
	seen := map[*node]bool{}
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		for _, f := range n.out {
			open = append(open, f.to)
		}
		if n.link != nil {
			open = append(open, n.link)
		}
		open = append(open, n.boundary...)
	}
	return seen
}

func (n *node) whyUnreached() string {
	switch {
	case n.isLinkTarget() && len(n.in) == 0:
		return "no flow and no link event leads to it"
	case n.cut:
		return "no flow that is read leads to it"
	case n.startsSilently():
		return "no flow leads to it, and what it lies in begins with an event"
	}
	return "no path leads to it from a start"
}

// dropUnreached removes the flows from removed nodes. unread has the nodes that could be reached if the whole file
// could be read.
func (n *node) dropUnreached(unread map[*node]bool) {
	kept := n.in[:0:0]
	for _, f := range n.in {
		if !f.from.gone {
			kept = append(kept, f)
		} else if n.kind == parallel && !unread[f.from] {
			n.unreachable = append(n.unreachable, f.from)
		}
	}
	n.in = kept
}
