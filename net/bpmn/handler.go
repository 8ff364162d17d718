package bpmn

import "github.com/tasq-dev/tasq/net"

// handler is a declared event sub-process.
type handler struct {
	armed  string   // the condition that enables it; "" if only a throw starts it
	ends   []string // where tokens leave it while the rest of the scope may be active
	alone  []string // where tokens leave it when an interrupting start event has canceled the rest
	throws []throw  // what is thrown out of it
	stops  bool     // all its start events interrupt
}

// handlers emits the event sub-processes of a scope. While the scope is active, a condition is marked that their start
// events share:
//
//	entry -> armed -> start event -> ... -> ends
//
// An interrupting start event cancels everything else in the scope. A start event for a throw needs no such condition.
func (e *emitter) handlers(s *scope) []handler {
	var hs []handler
	for _, n := range s.nodes {
		if !n.handler {
			continue
		}
		hs = append(hs, e.handler(s, n))
	}
	return hs
}

func (e *emitter) handler(s *scope, n *node) handler {
	var h handler
	e.flags(n.sub)
	n.sub.inside.begin = e.mark()
	for _, m := range n.sub.nodes {
		if m.kind != boundaryEvent {
			e.declare(m)
		}
	}
	for _, m := range n.sub.nodes {
		if m.kind != startEvent {
			continue
		}
		e.noteOnce(m)
		for _, flag := range n.sub.flags() {
			e.flow(m.leave, flag, m.el)
		}
		if len(m.thrown) > 0 {
			continue
		}
		if h.armed == "" {
			h.armed = e.condition(n.name+"_armed", net.Inner, n.el)
			s.armed = append(s.armed, h.armed)
		}
		e.def.Tasks[e.tasks[m.name]].Kind = net.Atomic
		e.flow(h.armed, m.enter, m.el)
		e.receive(m)
		s.armed = append(s.armed, m.name)
		if m.interrupting {
			e.later = append(e.later, func() { e.cancel(m.name, e.beside(s, n.sub, m.name)) })
		}
	}
	var ends []*node
	for _, m := range n.sub.nodes {
		e.edges(m)
		if m.isEnd() {
			ends = append(ends, m)
		}
	}
	n.sub.inside.ends = e.mark()
	h.ends, h.alone = e.handlerEnds(n, ends)
	h.throws, h.stops = n.sub.leaving, len(n.sub.reachable(false)) == 0
	n.sub.inside.end = e.mark()
	e.later = append(e.later, func() { e.terminates(n.sub) })
	return h
}

// beside lists what an interrupting start event cancels: everything in the scope except its own event sub-process,
// which is not active yet. If that has other start events, it may be active; and a start event that takes tokens of a
// loop leaves its own condition marked.
func (e *emitter) beside(s, own *scope, owner string) []string {
	if len(own.reachable(false)) > 0 || s.stop != nil && s.stop.scope == own {
		return e.all(s, owner)
	}
	return append(e.within(s.inside.begin, own.inside.begin, owner), e.within(own.inside.end, s.inside.end, owner)...)
}

// handlerEnds joins the ends of an event sub-process. If some of its start events interrupt and others do not, it has
// two kinds of ends, according to the start events that lead to them.
func (e *emitter) handlerEnds(n *node, ends []*node) (beside, alone []string) {
	interrupted, other := n.sub.reachable(true), n.sub.reachable(false)
	if len(other) == 0 {
		return nil, e.end(n.sub, "", leaves(ends), nil)
	}
	var rest []*node
	for _, m := range ends {
		if interrupted[m] && !other[m] && !n.sub.parallel {
			alone = append(alone, m.leave)
			continue
		}
		if interrupted[m] {
			e.note(Approximated, m.el, "it is reached from a start event that interrupts and from one that does not; "+
				"it is read as if none did")
		}
		rest = append(rest, m)
	}
	return e.end(n.sub, "", leaves(rest), nil), alone
}

func leaves(nodes []*node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.leave)
	}
	return names
}

// reachable returns the nodes that can be reached from the start events of an event sub-process: from those that
// interrupt, or from the others.
func (s *scope) reachable(interrupting bool) map[*node]bool {
	var open []*node
	for _, n := range s.nodes {
		if n.kind == startEvent && n.interrupting == interrupting {
			open = append(open, n)
		}
	}
	return s.from(open)
}

// noteOnce adds a note that an event which may happen any number of times is read as happening at most once: otherwise
// the net would be unbounded.
func (e *emitter) noteOnce(n *node) {
	if !n.interrupting && len(n.thrown) == 0 {
		e.note(Approximated, n.el, "it does not interrupt, so it may happen any number of times; it is read as at most once")
	}
}
