package bpmn

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// emitJoint builds the net of a collaboration. Its pools start and end in parallel. Remaining messages are removed at
// the end, since a message need not be received.
func (d *decoder) emitJoint(name string) {
	el := d.joint.el
	e := d.emitter(name, xmlread.Label(el.Attr("name")), el)
	e.out.Root = true
	for _, s := range d.processes {
		e.nameNodes(s)
	}
	in, out := e.condition("in", net.Start, el), e.condition("out", net.End, el)
	all := &scope{el: el, parallel: true}
	inboxes := e.inboxes()
	for _, s := range d.processes {
		all.again = all.again || s.loose
	}
	e.flags(all)
	begin := e.routing("begin_all", net.And, net.And, el)
	e.flow(in, begin, el)
	for _, flag := range all.flags() {
		e.flow(begin, flag, el)
	}
	var ends []string
	for _, s := range d.processes {
		pool := e.names.Name(d.processLabel(s), s.el.ID(), "pool")
		entry := ""
		if slices.Contains(d.joint.starts, s) {
			entry = e.routing(pool+"_begin", net.Xor, net.And, s.el)
			e.out.Labels[entry] = d.processLabel(s)
			e.flow(begin, entry, s.el)
		}
		exit := e.routing(pool+"_end", net.Xor, net.And, s.el)
		e.body(s, entry, exit)
		ends = append(ends, exit)
	}
	over := ""
	if all.idle != "" {
		over = e.count(all, ends)
	} else {
		over = e.gather(all, "finish", ends)
	}
	e.flow(over, out, el)
	for _, f := range e.later {
		f()
	}
	e.cancel(over, inboxes)
	e.out.Unnamed = e.unnamed.Names()
	d.members += e.members
	d.result.Collaborations = append(d.result.Collaborations, *e.out)
}

// inboxes adds the conditions that hold messages.
func (e *emitter) inboxes() []string {
	var names []string
	for _, m := range e.joint.messages {
		n := e.joint.nodes[m.to]
		if n == nil || !n.receives || n.inbox != "" {
			continue
		}
		n.inbox = e.condition(n.name+"_message", net.Inner, n.el)
		e.out.IDs[n.inbox] = n.id
		names = append(names, n.inbox)
	}
	return names
}

// wake makes a message start a process: it marks what is marked initially.
func (e *emitter) wake(n *node, handlers []handler) {
	wake := e.routing(n.name+"_woken", net.Xor, net.And, n.el)
	e.flow(n.inbox, wake, n.el)
	e.flow(wake, n.enter, n.el)
	for _, flag := range n.scope.flags() {
		e.flow(wake, flag, n.el)
	}
	for _, h := range handlers {
		if h.armed != "" {
			e.flow(wake, h.armed, n.el)
		}
	}
}

// declareReceiver makes a task or event wait for a message, in addition to its token.
func (e *emitter) declareReceiver(n *node) {
	if n.enter == n.name && len(n.in)+len(n.linkedFrom) > 1 {
		n.enter = e.routing(n.name+"_in", net.Xor, net.And, n.el)
		e.flow(n.enter, n.name, n.el)
	}
	e.receive(n)
}

// receive makes a task with one input take a message as well.
func (e *emitter) receive(n *node) {
	if n.inbox == "" {
		return
	}
	e.def.Tasks[e.tasks[n.name]].Join = net.And
	e.flow(n.inbox, n.name, n.el)
}

// send makes a node send its messages after it has run, and returns the element at which its flows begin.
func (e *emitter) send(n *node, leave string, out []*flow) string {
	if !slices.ContainsFunc(n.sends, func(to *node) bool { return to.inbox != "" }) {
		return leave
	}
	from := leave
	if len(n.outcomes) > 0 && leave == n.leave {
		from = e.routing(n.name+"_sent", net.Xor, net.And, n.el)
		e.flow(leave, from, n.el)
		leave, n.leave = from, from
	}
	if len(out) > 1 {
		leave = e.routing(n.name+"_on", net.And, net.And, n.el)
		e.flow(from, leave, n.el)
	}
	for _, to := range n.sends {
		if to.inbox != "" {
			e.flow(from, to.inbox, n.el)
		}
	}
	return leave
}
