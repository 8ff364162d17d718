package bpmn

import "slices"

// resolveThrows finds the catcher of each error, escalation and cancellation, and the sub-processes that become part of
// the enclosing net.
func (d *decoder) resolveThrows(s *scope) {
	for _, n := range s.nodes {
		if n.isThrow() {
			d.resolveThrow(n)
		}
		if n.sub == nil {
			continue
		}
		d.resolveThrows(n.sub)
		// As a workflow of its own, a sub-process that may run until an event at its border stops it would have no path
		// to its end.
		n.sub.inline = n.sub.inline || n.handler || d.joint.inlines(n) || n.sub.borderStop() != nil && len(n.sub.stuck()) > 0
	}
}

func (d *decoder) resolveThrow(n *node) {
	for s := n.scope; s != nil; s = s.parent() {
		if n.catcher = s.catcher(n); n.catcher != nil {
			break
		}
	}
	if n.catcher == nil {
		if n.trigger != "escalation" {
			d.note(Approximated, n.el, "no event catches what it throws; it is read as one that terminates what it lies in")
		}
		return
	}
	n.catcher.thrown = append(n.catcher.thrown, n)
}

// settleThrows handles what is thrown out of sub-processes with their own definition. There it is an end, and the
// composite task ends with a choice: its normal end, or a catcher. If the catcher is further out, the composite task
// throws it on.
//
// A throw that does not interrupt is no end: the sub-process continues. So its catcher waits for it as for a message.
func (d *decoder) settleThrows(s *scope) {
	for _, n := range s.nodes {
		switch {
		case n.catcher == nil:
		case n.catcher.interrupting:
			throwOut(n.scope, n.catcher)
		case caughtInside(n.scope, n.catcher) == nil:
			n.catcher.thrown = slices.DeleteFunc(n.catcher.thrown, func(m *node) bool { return m == n })
			n.catcher = nil
		}
		if n.sub != nil {
			d.settleThrows(n.sub)
		}
	}
}

// throwOut adds an outcome to every composite task between a scope and the catcher.
func throwOut(s *scope, catcher *node) {
	for {
		if at := caughtInside(s, catcher); at != nil {
			for ; s != at; s = s.parent() {
				s.thrown = true
			}
			at.thrown = true
			return
		}
		for s.inline {
			s = s.parent()
		}
		task := s.owner
		if slices.Contains(task.outcomes, catcher) {
			return
		}
		task.outcomes = append(task.outcomes, catcher)
		if catcher.host == task {
			return
		}
		s = task.scope
	}
}

// caughtInside returns the scope in which something thrown in s is caught, if that is in the same definition, or nil.
func caughtInside(s *scope, catcher *node) *scope {
	for ; ; s = s.parent() {
		switch {
		case s.catches(catcher):
			return s
		case !s.inline:
			return nil
		}
	}
}

// catches reports whether an event catches what is thrown out of the scope, at its border or in one of its event
// sub-processes, within the same definition.
func (s *scope) catches(catcher *node) bool {
	if catcher.kind == boundaryEvent {
		return s.inline && catcher.host == s.owner
	}
	return catcher.scope.parent() == s
}

// caught is what the events of one scope catch. Of several events for the same code, only the first in each event
// sub-process or at the border counts.
type caught struct{ trigger, code string }

// catcher returns the event in a scope or at its border that catches what n throws: first one for its code, then one
// for any code; a throw without a code is caught by any.
func (s *scope) catcher(n *node) *node {
	if s.catchers == nil {
		s.indexCatchers()
	}
	keys := []caught{{n.trigger, n.ref}, {n.trigger, ""}}
	if n.ref == "" {
		keys = []caught{{n.trigger, ""}, {n.trigger, anyCode}}
	}
	for _, key := range keys {
		for _, c := range s.catchers[key] {
			if c.kind == boundaryEvent || !contains(c.scope, n) {
				return c
			}
		}
	}
	return nil
}

const anyCode = "\x00any"

func (s *scope) indexCatchers() {
	s.catchers = map[caught][]*node{}
	add := func(events []*node, kind nodeKind) {
		seen := map[caught]bool{}
		for _, e := range events {
			if e.kind != kind {
				continue
			}
			for _, key := range []caught{{e.trigger, e.ref}, {e.trigger, anyCode}} {
				if !seen[key] {
					seen[key] = true
					s.catchers[key] = append(s.catchers[key], e)
				}
			}
		}
	}
	for _, h := range s.nodes {
		if h.handler {
			add(h.sub.nodes, startEvent)
		}
	}
	if s.owner != nil {
		add(s.owner.boundary, boundaryEvent)
	}
}

func contains(s *scope, n *node) bool {
	for at := n.scope; at != nil; at = at.parent() {
		if at == s {
			return true
		}
	}
	return false
}
