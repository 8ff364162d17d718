package bpmn

import "github.com/tasq-dev/tasq/net/internal/xmlread"

// resolve joins flows, boundary events, links and thrown events to what they refer to.
func (d *decoder) resolve(flows []*flow) error {
	for _, s := range d.processes {
		d.prune(s)
	}
	for _, f := range flows {
		if err := d.resolveFlow(f); err != nil {
			return err
		}
	}
	for _, s := range d.processes {
		if err := d.resolveScope(s); err != nil {
			return err
		}
	}
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
	return nil
}

// prune takes away what is not read.
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
		default:
			kept = append(kept, n)
			if n.sub != nil {
				d.prune(n.sub)
			}
		}
	}
	s.nodes = kept
}

func (s *scope) hasStartEvent() bool {
	for _, n := range s.nodes {
		if n.kind == startEvent {
			return true
		}
	}
	return false
}

func (d *decoder) resolveFlow(f *flow) error {
	for _, end := range []struct {
		name string
		node **node
	}{{"sourceRef", &f.from}, {"targetRef", &f.to}} {
		id := local(f.el.Attr(end.name))
		n := d.byID[id]
		switch {
		case id == "":
			return d.refuse(UnknownRef, f.el, "it has no "+end.name)
		case n == nil:
			return d.refuse(UnknownRef, f.el, "its "+end.name+" "+xmlread.Quote(id)+" is no flow node of the file")
		}
		*end.node = n
	}
	if f.from.gone || f.to.gone {
		d.note(LeftOut, f.el, "it begins or ends at an element that is not read")
		return nil
	}
	if f.from.handler || f.to.handler {
		return d.refuse(Unsupported, f.el, "it begins or ends at an event sub-process, which events alone can start")
	}
	if f.from.scope != f.to.scope {
		return d.refuse(Unsupported, f.el, "it leads from the "+f.from.el.String()+" to the "+f.to.el.String()+
			" across the border of a process or sub-process")
	}
	f.from.out = append(f.from.out, f)
	f.to.in = append(f.to.in, f)
	return nil
}

// resolveScope attaches boundary events and joins links.
func (d *decoder) resolveScope(s *scope) error {
	links := map[string]*node{}
	for _, n := range s.nodes {
		if n.kind == boundaryEvent {
			if err := d.attach(n); err != nil {
				return err
			}
		}
		if n.kind == catchEvent && n.trigger == "link" {
			d.addLink(links, n)
		}
		if n.sub != nil {
			if err := d.resolveScope(n.sub); err != nil {
				return err
			}
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
		n.link.linked = true
	}
	return nil
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
		return
	}
	links[linkName(n)] = n
}

// attach joins a boundary event to its activity.
func (d *decoder) attach(n *node) error {
	n.host = d.byID[n.attachedTo]
	switch {
	case n.host == nil:
		return d.refuse(UnknownRef, n.el, "it is attached to "+xmlread.Quote(n.attachedTo)+
			", which is no activity of the file")
	case n.host.scope != n.scope || n.host.kind > subProcess || n.host.handler:
		return d.refuse(Unsupported, n.el, "it is attached to the "+n.host.el.String()+
			", which is no activity of the same process")
	}
	n.host.boundary = append(n.host.boundary, n)
	return nil
}

// markParallel finds out in which scopes there can be several tokens. Where there can't, ends need no or-join and
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

// stopped returns the scope that a catcher runs beside or instead of: for a boundary event, where its activity lies;
// for the start of an event sub-process, where that lies.
func (n *node) stopped() *scope {
	if n.kind == boundaryEvent {
		return n.scope
	}
	return n.scope.parent()
}

// leadsAlone reports whether the tokens behind a boundary event or in an event sub-process are the only ones then.
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

// startsSilently reports whether no flow leads to a node that is no start event, so that it runs from the beginning.
func (n *node) startsSilently() bool {
	return len(n.in) == 0 && n.kind != startEvent && n.kind != boundaryEvent && !n.handler && !n.isLinkTarget()
}

func (n *node) isLinkTarget() bool { return n.kind == catchEvent && n.trigger == "link" }

// starts lists the nodes that a scope begins with: alternatives, of which one is taken, or else all that no flow
// leads to.
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
