package bpmn

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// body emits the elements of a scope between its entry and its exit, each of which is a condition or a routing task.
//
//	entry -> starts -> ... -> ends -> exit
func (e *emitter) body(s *scope, entry, exit string) {
	s.inside.begin = e.mark()
	for _, n := range s.nodes {
		if !n.handler && n.kind != boundaryEvent {
			e.declare(n)
		}
	}
	e.flags(s)
	handlers := e.handlers(s)
	e.begin(s, entry, handlers)
	var ends []string
	for _, n := range s.nodes {
		if n.handler {
			continue
		}
		e.edges(n)
		if n.isEnd() {
			ends = append(ends, n.leave)
		}
	}
	s.inside.ends = e.mark()
	ends = e.end(s, exit, ends, handlers)
	for _, name := range ends {
		e.flow(name, exit, s.el)
	}
	if len(ends) == 0 && exit != "" {
		e.note(Disconnected, s.el, "nothing in it ends")
	}
	s.inside.end = e.mark()
	e.later = append(e.later, func() { e.terminates(s) })
}

// prefix returns the prefix for the names of elements that are added to a scope.
func (s *scope) prefix() string {
	if s.owner == nil || !s.inline {
		return ""
	}
	return s.owner.name + "_"
}

// isEnd reports whether a token that leaves the node leaves its scope by the exit.
func (n *node) isEnd() bool {
	interrupts := n.catcher != nil && n.catcher.interrupting
	return !n.leadsOn() && !interrupts && (n.sub == nil || !n.sub.inline || n.sub.canEnd())
}

// canEnd reports whether a token can leave a scope by its exit.
func (s *scope) canEnd() bool {
	for _, n := range s.nodes {
		if n.handler && n.sub.canEnd() || !n.handler && n.isEnd() {
			return true
		}
	}
	return false
}

// begin connects the entry to the first elements: one of the alternatives, or all without incoming flow; and to the
// conditions that enable the event sub-processes.
func (e *emitter) begin(s *scope, entry string, handlers []handler) {
	first, together := e.first(s)
	if len(first) == 0 && len(s.nodes) > len(handlers) {
		e.note(Disconnected, s.el, "a flow leads to everything in it, so nothing can begin")
	}
	first = append(first, s.flags()...)
	for _, h := range handlers {
		if h.armed != "" {
			first = append(first, h.armed)
		}
	}
	for _, n := range s.nodes {
		if n.isWoken() {
			e.wake(n, handlers)
		}
	}
	if entry == "" {
		return
	}
	if e.isCondition(entry) && (len(first) > 1 || len(first) == 1 && e.isCondition(first[0])) {
		begin := e.routing("begin", net.And, net.And, s.el)
		e.flow(entry, begin, s.el)
		text := "something waits beside it from its start on"
		if together > 1 {
			text = fmt.Sprintf("%d of its elements begin at once", together)
		}
		e.note(Closed, s.el, text+"; the routing task "+begin+" is added before them")
		entry = begin
	}
	for _, name := range first {
		e.flow(entry, name, s.el)
	}
}

// first lists the first elements of a scope, and counts those that begin together, since they have no incoming flow.
// For several alternatives, it is a routing task with a choice.
func (e *emitter) first(s *scope) (first []string, together int) {
	alternatives, all := s.starts()
	alternatives = slices.DeleteFunc(alternatives, (*node).isWoken)
	switch {
	case len(alternatives) == 1:
		first = append(first, alternatives[0].enter)
	case len(alternatives) > 1:
		choice := e.routing("begin", net.And, net.Xor, s.el)
		for _, n := range alternatives {
			e.flow(choice, n.enter, n.el)
		}
		first = append(first, choice)
		e.note(Closed, s.el, fmt.Sprintf("it has %d starts, of which one is taken; the routing task %s is added before them",
			len(alternatives), choice))
	default:
		for _, n := range all {
			first = append(first, n.enter)
		}
		together = len(all)
	}
	return first, together
}

// declareActivity adds the task of an activity, which may run several times.
func (e *emitter) declareActivity(n *node) {
	if n.kind == callActivity && e.byProcess[n.called] == nil {
		what := "it names no process that it calls"
		if n.called != "" {
			what = "it calls " + xmlread.Quote(n.called) + ", which is no process of this file"
		}
		e.note(Approximated, n.el, what+"; it is read as a task")
	}
	if !n.hasRounds() {
		e.once(n, n.name)
		if n.isComposite() {
			e.subs = append(e.subs, n.sub)
		}
		return
	}
	e.task(n.name, net.Composite, net.Xor, net.And, n.el)
	e.def.Tasks[e.tasks[n.name]].Of = []string{e.rounds[n.el]}
	e.several = append(e.several, n)
}

// once adds a task for one run of an activity.
func (e *emitter) once(n *node, name string) {
	kind, of := net.Atomic, ""
	switch called := e.byProcess[n.called]; {
	case n.isComposite():
		kind, of = net.Composite, e.decoder.names[n.sub.el]
	case n.kind == callActivity && called != nil:
		kind, of = net.Composite, e.decoder.names[called.el]
	}
	e.task(name, kind, net.Xor, net.And, n.el)
	if of != "" {
		e.def.Tasks[e.tasks[name]].Of = []string{of}
	}
}
