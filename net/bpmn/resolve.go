package bpmn

import "github.com/tasq-dev/tasq/net/internal/xmlread"

// resolve connects flows, boundary events, links and thrown events to their targets. What cannot be connected is
// omitted, with everything that is unreachable without it.
func (d *decoder) resolve(flows []*flow) {
	for _, s := range d.processes {
		d.prune(s)
	}
	for _, f := range flows {
		d.resolveFlow(f)
	}
	for _, s := range d.processes {
		d.resolveScope(s)
	}
	for _, s := range d.processes {
		d.pruneUnreached(s)
	}
	d.joint.deliver()
	for _, s := range d.processes {
		d.resolveThrows(s)
	}
	for _, s := range d.processes {
		d.settleThrows(s)
	}
	for _, s := range d.processes {
		d.markParallel(s)
		s.markStops()
	}
	for _, s := range d.processes {
		d.noteRepetitions(s)
	}
	d.joint.settle()
	search := newOnceSearch()
	for _, s := range d.processes {
		search.addStarts(s)
	}
	for _, s := range d.processes {
		s.settleAllEnds(search)
	}
}

// prune removes the elements that are not read.
func (d *decoder) prune(s *scope) {
	kept := s.nodes[:0:0]
	for _, n := range s.nodes {
		host := d.byID[n.attachedTo]
		switch {
		case n.gone:
			d.note(LeftOut, n.el, "compensation is not read")
		case n.kind == boundaryEvent && host != nil && host.gone:
			d.note(LeftOut, n.el, "the "+host.el.String()+" that it is attached to is not read")
			n.gone = true
		case n.handler && s.isHandler():
			d.note(LeftOut, n.el, "event sub-processes directly inside event sub-processes are not read")
			n.gone = true
		case n.handler && !n.sub.hasStartEvent():
			d.note(LeftOut, n.el, "it is an event sub-process without a start event")
			n.gone = true
		case n.handler && n.sub.compensates():
			d.note(LeftOut, n.el, "compensation is not read")
			n.gone = true
		default:
			kept = append(kept, n)
			if n.sub != nil {
				d.prune(n.sub)
			}
		}
	}
	s.nodes = kept
}

// compensates reports whether an event sub-process is started by compensation alone. It runs after the scope has ended,
// and interrupts nothing.
func (s *scope) compensates() bool {
	for _, n := range s.nodes {
		if n.kind == startEvent && n.trigger != "compensate" {
			return false
		}
	}
	return true
}

func (s *scope) hasStartEvent() bool {
	for _, n := range s.nodes {
		if n.kind == startEvent {
			return true
		}
	}
	return false
}

// resolveFlow connects a flow to its ends, or omits it.
func (d *decoder) resolveFlow(f *flow) {
	if reason := d.flowEnds(f); reason != "" {
		d.note(LeftOut, f.el, reason)
		if to := d.byID[local(f.el.Attr("targetRef"))]; to != nil {
			to.cut = true
		}
		return
	}
	f.from.out = append(f.from.out, f)
	f.to.in = append(f.to.in, f)
}

// flowEnds finds the ends of a flow. It returns the reason if the flow cannot be read, or "".
func (d *decoder) flowEnds(f *flow) string {
	for _, end := range []struct {
		name string
		node **node
	}{{"sourceRef", &f.from}, {"targetRef", &f.to}} {
		id := local(f.el.Attr(end.name))
		n := d.byID[id]
		switch {
		case id == "":
			return "it has no " + end.name
		case n == nil:
			return "its " + end.name + " " + xmlread.Quote(id) + " is no flow node of the file"
		}
		*end.node = n
	}
	switch {
	case f.from.gone || f.to.gone:
		return "it begins or ends at an element that is not read"
	case f.from.handler || f.to.handler:
		return "it begins or ends at an event sub-process, which events alone can start"
	case f.from.scope != f.to.scope:
		return "it leads from the " + f.from.el.String() + " to the " + f.to.el.String() +
			" across the border of a process or sub-process"
	}
	return ""
}

// resolveScope attaches boundary events and connects links.
func (d *decoder) resolveScope(s *scope) {
	links := map[string]*node{}
	for _, n := range s.nodes {
		if n.kind == boundaryEvent {
			d.attach(n)
		}
		if n.kind == catchEvent && n.trigger == "link" {
			d.addLink(links, n)
		}
		if n.sub != nil {
			d.resolveScope(n.sub)
		}
	}
	for _, n := range s.nodes {
		if n.trigger != "link" || n.kind != throwEvent && n.kind != endEvent {
			continue
		}
		if n.link = links[linkName(n)]; n.link == nil {
			d.note(Approximated, n.el, "no link event of its name catches it; it is read as an end")
			continue
		}
		n.link.linkedFrom = append(n.link.linkedFrom, n)
	}
	for _, n := range links {
		n.cut = n.cut || len(n.linkedFrom) == 0 // the other link event may be in another file
	}
}

func linkName(n *node) string {
	if n.ref != "" {
		return n.ref
	}
	return "label " + n.label
}

func (d *decoder) addLink(links map[string]*node, n *node) {
	if first := links[linkName(n)]; first != nil {
		d.note(Approximated, n.el, "the "+first.el.String()+" has the same name; links lead there")
		n.cut = true
		return
	}
	links[linkName(n)] = n
}

// attach connects a boundary event to its activity. An event that is attached to an activity inside another one is read
// as one at the border of the outer activity.
func (d *decoder) attach(n *node) {
	host := d.byID[n.attachedTo]
	for host != nil && host.scope != n.scope {
		if host = host.scope.owner; host != nil && host.scope == n.scope && !host.handler {
			d.note(Approximated, n.el, "it is attached to "+xmlread.Quote(n.attachedTo)+" inside the "+host.el.String()+
				"; it is read as an event at the border of the latter")
		}
	}
	n.cut = true
	switch {
	case n.attachedTo == "":
		d.note(LeftOut, n.el, "it is attached to no activity")
	case host == nil && d.byID[n.attachedTo] == nil:
		d.note(LeftOut, n.el, "it is attached to "+xmlread.Quote(n.attachedTo)+", which is no activity of the file")
	case host == nil || host.kind > subProcess || host.handler:
		d.note(LeftOut, n.el, "it is attached to the "+d.byID[n.attachedTo].el.String()+
			", which is no activity of the same process")
	default:
		n.host, n.cut = host, false
		host.boundary = append(host.boundary, n)
	}
}

// markParallel determines in which scopes there can be several tokens. In the others, ends need no or-join and
// terminating needs no region.
func (d *decoder) markParallel(s *scope) {
	starts := 0
	for _, n := range s.nodes {
		switch {
		case n.handler || n.kind == boundaryEvent:
			s.parallel = s.parallel || !n.leadsAlone()
		case n.kind == exclusive || n.kind == eventBased && !n.several:
		default:
			s.parallel = s.parallel || len(n.out) > 1
		}
		if n.catcher != nil && !n.catcher.interrupting {
			s.parallel = true
			n.catcher.stopped().parallel = true
		}
		if n.startsSilently() {
			starts++
		}
		if n.sub != nil {
			d.markParallel(n.sub)
		}
	}
	alternatives, _ := s.starts()
	s.parallel = s.parallel || len(alternatives) == 0 && starts > 1
}

// stopped returns the scope that a catcher runs beside or replaces: for a boundary event, the scope of its activity;
// for a start event of an event sub-process, the scope of that.
func (n *node) stopped() *scope {
	if n.kind == boundaryEvent {
		return n.scope
	}
	return n.scope.parent()
}

// leadsAlone reports whether the tokens after a boundary event or in an event sub-process are then the only ones.
func (n *node) leadsAlone() bool {
	if n.kind == boundaryEvent {
		return n.interrupting && len(n.out) < 2
	}
	for _, e := range n.sub.nodes {
		if e.kind == startEvent && !e.interrupting {
			return false
		}
	}
	return true
}

// startsSilently reports whether a node without incoming flow is not a start event, so that it runs from the beginning.
func (n *node) startsSilently() bool {
	return len(n.in) == 0 && n.kind != startEvent && n.kind != boundaryEvent && !n.handler && !n.isLinkTarget()
}

func (n *node) isLinkTarget() bool { return n.kind == catchEvent && n.trigger == "link" }

// starts returns the nodes with which a scope begins: alternatives, of which one is taken, or else all nodes without
// incoming flow.
func (s *scope) starts() (alternatives, all []*node) {
	for _, n := range s.nodes {
		switch {
		case n.kind == startEvent || n.instantiate && n.startsSilently():
			alternatives = append(alternatives, n)
		case n.startsSilently():
			all = append(all, n)
		}
	}
	return alternatives, all
}
