package bpmn

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// declare adds the tasks of a node, and of the events attached to it. Flows are added later, when every name is known.
func (e *emitter) declare(n *node) {
	switch n.kind {
	case activity, callActivity:
		e.declareActivity(n)
	case subProcess:
		switch {
		case n.sub.inline:
			e.declareInline(n)
			return
		default:
			e.declareActivity(n)
		}
	case exclusive:
		e.task(n.name, net.Routing, net.Xor, net.Xor, n.el)
	case parallel:
		e.task(n.name, net.Routing, net.And, net.And, n.el)
		for _, missing := range n.unreachable {
			e.waitForUnreachable(n, missing)
		}
	case complexGateway:
		e.note(Approximated, n.el, "it is a complex gateway; it is read as an inclusive one")
		fallthrough
	case inclusive:
		e.task(n.name, net.Routing, net.Or, net.Or, n.el)
	case eventBased:
		e.declareEventBased(n)
	default:
		e.task(n.name, n.eventKind(), net.Xor, net.And, n.el)
		if n.gathers {
			n.enter = e.routing(n.name+"_all", net.Or, net.And, n.el)
			e.flow(n.enter, n.name, n.el)
		}
	}
	if len(n.boundary) > 0 {
		e.declareBoundary(n)
	}
	if n.inbox != "" && (n.kind == activity || n.kind == catchEvent) && !n.isWoken() {
		e.declareReceiver(n)
	}
}

// waitForUnreachable makes a gateway wait for an element that never runs. A net requires every element to be on a path,
// so in the net the gateway itself would start that element.
func (e *emitter) waitForUnreachable(n, missing *node) {
	name := e.names.Name(missing.label, missing.id, missing.el.Name)
	e.identify(missing, name)
	e.task(name, net.Atomic, net.Xor, net.And, missing.el)
	e.flow(n.name, name, missing.el)
	e.flow(name, n.name, missing.el)
}

// eventKind is routing for events that only move a token, and atomic for those that are awaited or performed. Throwing
// an error and terminating are performed: as routing tasks they would happen immediately, before any parallel work
// could begin.
func (n *node) eventKind() net.Kind {
	if n.moves() {
		return net.Routing
	}
	return net.Atomic
}

func (n *node) moves() bool {
	moves := false
	switch n.kind {
	case startEvent:
		moves = true
	case boundaryEvent:
		moves = len(n.thrown) > 0
	case catchEvent:
		moves = n.trigger == "link"
	default:
		switch n.trigger {
		case "", "link", "compensate":
			moves = true
		}
	}
	return moves
}

// declareEventBased adds a condition after the gateway, which the events share. The first event takes its token.
func (e *emitter) declareEventBased(n *node) {
	e.task(n.name, net.Routing, net.Xor, net.And, n.el)
	if len(n.out) == 0 {
		return
	}
	if n.several {
		e.note(Approximated, n.el, "its eventGatewayType is Parallel: it is read as waiting for all of its events, in any order; "+
			"for the first of them alone, leave the type out")
		return
	}
	n.leave = e.condition(n.name+"_choice", net.Inner, n.el)
	e.flow(n.name, n.leave, n.el)
	for _, f := range n.out {
		waits := f.to.kind == catchEvent && f.to.trigger != "link" || f.to.el.Name == "receiveTask"
		if !waits || len(f.to.boundary) > 0 {
			e.note(Approximated, f.el, "an event-based gateway leads to the "+f.to.el.String()+
				", which does not just wait for an event; it competes with the events all the same")
		}
	}
}

// declareInline adds a sub-process as part of the net, between two routing tasks.
func (e *emitter) declareInline(n *node) {
	n.enter, n.leave = e.routing(n.name+"_begin", net.Xor, net.And, n.el), ""
	if n.sub.canEnd() {
		n.leave = e.routing(n.name+"_end", net.Xor, net.And, n.el)
	}
	e.note(Closed, n.el, "it can go on until an event at its border stops it; it becomes a part of the net around it, "+
		"which begins with the routing task "+n.enter)
	if n.id != "" {
		e.out.IDs[n.enter] = n.id
	}
	if n.label != "" {
		e.out.Labels[n.enter] = n.label
	}
	for _, b := range n.boundary {
		e.declareEvent(n, b)
	}
	e.body(n.sub, n.enter, n.leave)
	e.later = append(e.later, func() {
		if n.leave != "" {
			e.cancel(n.leave, n.armed)
		}
		for _, b := range n.boundary {
			if b.interrupting && len(b.thrown) == 0 {
				e.cancel(b.name, append(e.all(n.sub, b.name), n.besides(b)...))
			}
		}
	})
}

// declareBoundary adds the events that wait beside an activity:
//
//	begin -> ready -> activity        the activity cancels the waiting events
//	begin -> armed -> event           an interrupting event cancels the activity, before or after it has started
//
// An event that is started only by a throw of the activity does not need to wait.
func (e *emitter) declareBoundary(n *node) {
	if !slices.ContainsFunc(n.boundary, func(b *node) bool { return len(b.thrown) == 0 }) {
		for _, b := range n.boundary {
			e.declareEvent(n, b)
		}
		return
	}
	n.enter = e.routing(n.name+"_begin", net.Xor, net.And, n.el)
	ready := e.condition(n.name+"_ready", net.Inner, n.el)
	e.flow(n.enter, ready, n.el)
	e.flow(ready, n.name, n.el)
	for _, b := range n.boundary {
		e.declareEvent(n, b)
	}
	e.later = append(e.later, func() {
		e.cancel(n.name, n.armed)
		for _, b := range n.boundary {
			if b.interrupting && len(b.thrown) == 0 && e.members <= maxRegions {
				e.cancel(b.name, append([]string{n.name, ready}, n.besides(b)...))
			}
		}
	})
}

func (e *emitter) declareEvent(host, b *node) {
	e.task(b.name, b.eventKind(), net.Xor, net.And, b.el)
	e.noteOnce(b)
	if len(b.thrown) > 0 {
		return
	}
	armed := e.condition(b.name+"_armed", net.Inner, b.el)
	e.flow(host.enter, armed, b.el)
	e.flow(armed, b.name, b.el)
	e.receive(b)
	host.armed = append(host.armed, armed, b.name)
}

// edges adds the flows out of a node and sets its split.
func (e *emitter) edges(n *node) {
	out := slices.Clone(n.out)
	slices.SortStableFunc(out, func(f, g *flow) int { return b2i(n.isFallback(f)) - b2i(n.isFallback(g)) })
	if n.catcher != nil && n.catcher.interrupting {
		out = nil // its token goes to the catcher and nowhere else
	}
	if n.leave == "" {
		for _, f := range out {
			e.note(Disconnected, f.el, "the "+n.el.String()+" never ends by itself, so the flow is never taken; it is left out")
		}
		return
	}
	leave := e.outcomes(n, out)
	leave = e.send(n, leave, out)
	rest := e.splitOff(n, leave, out)
	if len(n.outcomes) > 0 {
		e.def.Tasks[e.tasks[n.name]].Split = net.Xor
	}
	for i, f := range out {
		from := leave
		if rest != "" && !n.isFallback(f) {
			from = rest
		} else if f.stop {
			from = e.stoppable(n, leave, f)
		}
		e.flow(from, f.to.enter, f.el)
		e.noteCondition(n, f, i+1)
		if label := n.flowLabel(f); label != "" {
			e.out.Flows[[2]string{from, f.to.enter}] = label
		}
	}
	if n.link != nil {
		e.flow(n.leave, n.link.enter, n.el)
	}
	if n.catcher != nil && !n.catcher.interrupting {
		e.flow(n.leave, n.catcher.enter, n.el)
	}
}

// splitOff sets the split after a node. A default flow is taken only if no other is, which an or-split cannot express.
// So it becomes an xor-split between the default and an additional routing task for some of the others. It returns that
// task, or "" if none is needed.
func (e *emitter) splitOff(n *node, leave string, out []*flow) string {
	i, isTask := e.tasks[leave]
	if !isTask {
		return ""
	}
	t := &e.def.Tasks[i]
	if !n.kind.isGateway() {
		t.Split = e.split(n)
	}
	if t.Split != net.Or || len(out) < 2 || !n.isFallback(out[len(out)-1]) {
		return ""
	}
	t.Split = net.Xor
	if len(out) == 2 {
		return ""
	}
	name := e.routing(n.name+"_some", net.And, net.Or, n.el) // this reallocates the tasks: t must not be used any more
	e.flow(leave, name, n.el)
	e.note(Closed, n.el, "its default flow is taken only if no other is; the routing task "+name+
		" is added before the others")
	return name
}

// outcomes adds the other outcomes of a composite task besides its normal end, and returns the element at which the
// flows after the normal end begin: the task itself or, if there are several flows, a routing task for their own split.
func (e *emitter) outcomes(n *node, out []*flow) string {
	if len(n.outcomes) == 0 {
		return n.leave
	}
	leave := n.leave
	if len(out) > 1 {
		leave = e.routing(n.name+"_done", net.And, net.And, n.el)
		e.flow(n.leave, leave, n.el)
	}
	for _, c := range n.outcomes {
		if c.host == n {
			e.flow(n.leave, c.enter, c.el)
			continue
		}
		on := e.routing(n.name+"_throws", net.And, net.And, n.el)
		e.flow(n.leave, on, n.el)
		n.scope.extra = append(n.scope.extra, throw{on, c})
	}
	e.note(Closed, n.el, "something is thrown out of it that is caught outside; its task has an xor-split, by which it "+
		"ends normally or leads to who catches it")
	if !n.sub.canEnd() {
		e.note(Approximated, n.el, "it never ends normally, and is read as if it could")
	}
	return leave
}

// stoppable makes the event that stops a scope also take the token of a flow, and returns the condition of that token.
func (e *emitter) stoppable(n *node, leave string, f *flow) string {
	c := leave
	if !e.isCondition(c) {
		c = e.condition(n.name+"_to_"+f.to.name, net.Inner, f.el)
		e.flow(leave, c, f.el)
	}
	e.flow(c, n.scope.stop.name, f.el)
	return c
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (n *node) isFallback(f *flow) bool { return n.fallback != "" && f.el.ID() == n.fallback }

// split returns the split after an activity or event. Flows without a condition are all taken; with conditions, those
// whose condition is true.
func (e *emitter) split(n *node) net.Rule {
	conditional, always := 0, 0
	for _, f := range n.out {
		switch {
		case f.condition != nil || n.isFallback(f):
			conditional++
		default:
			always++
		}
	}
	if conditional == 0 || len(n.out) < 2 {
		return net.And
	}
	if always > 0 {
		e.note(Approximated, n.el, fmt.Sprintf("%d of its flows have a condition and %d are always taken; "+
			"they are read as an or-split, which takes any of them", conditional, always))
	}
	return net.Or
}

// flowLabel returns the label of a flow.
func (n *node) flowLabel(f *flow) string {
	label := xmlread.Label(f.el.Attr("name"))
	if label == "" && f.condition != nil {
		label = xmlread.Label(f.condition.Text)
	}
	if label == "" && n.isFallback(f) && len(n.out) > 1 {
		label = "otherwise"
	}
	return label
}

func (e *emitter) noteCondition(n *node, f *flow, place int) {
	fallback := n.isFallback(f)
	if f.condition == nil && !(fallback && len(n.out) > 1) {
		return
	}
	text, el := "it is the default", f.el
	if f.condition != nil {
		el = f.condition
		text = fmt.Sprintf("it is number %d to be tried and is taken if %s", place, xmlread.Label(el.Text))
		if fallback {
			text += "; it is the default"
		}
	}
	e.noteRaw(Kept, el, "flow "+xmlread.Quote(n.name+"->"+f.to.name), text)
}
