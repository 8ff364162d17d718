package bpmn

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// maxRegions limits the members of all cancellation regions of a file: with many events that each cancel everything,
// their number is quadratic in the size of the file.
const maxRegions = 1 << 20

// emitter builds the definition of a process or sub-process, with the sub-processes that become part of it.
type emitter struct {
	*decoder
	def     *net.Definition
	out     *Net
	names   xmlread.Namer
	unnamed xmlread.Unnamed
	tasks   map[string]int  // name of a task -> its index in the definition
	pairs   map[string]bool // flows, as "a->b"
	later   []func()        // functions that fill cancellation regions once all names are known
	members int
	subs    []*scope // sub-processes that have a definition of their own
	several []*node  // activities that run several times
}

// nameAll names the workflows of all processes and sub-processes, so that calls can refer to them.
func (d *decoder) nameAll() {
	for _, s := range d.processes {
		d.byProcess[s.el.ID()] = s
		d.names[s.el] = d.workflows.Name(d.processLabel(s), s.el.ID(), "process")
	}
	for _, s := range d.processes {
		d.nameSubs(s)
	}
}

func (d *decoder) processLabel(s *scope) string {
	if pool := d.pools[s.el.ID()]; pool != "" {
		return pool
	}
	return xmlread.Label(s.el.Attr("name"))
}

func (d *decoder) nameSubs(s *scope) {
	for _, n := range s.nodes {
		if n.hasRounds() {
			d.rounds[n.el] = d.workflows.Name(n.wordy()+" rounds", n.el.Name+" rounds")
		}
		if n.sub == nil {
			continue
		}
		if n.isComposite() {
			d.names[n.sub.el] = d.workflows.Name(n.label, n.id, d.names[s.el]+"_sub")
		}
		d.nameSubs(n.sub)
	}
}

// isComposite reports whether a sub-process has its own definition. An empty one is drawn collapsed, and is read as a
// task.
func (n *node) isComposite() bool { return n.sub != nil && !n.sub.inline && len(n.sub.nodes) > 0 }

// emit builds the definition of a scope, then those of its sub-processes.
func (d *decoder) emit(s *scope, root bool) error {
	label := d.processLabel(s)
	if s.owner != nil {
		label = s.owner.label
	}
	e := d.emitter(d.names[s.el], label, s.el)
	e.out.Root = root
	e.nameNodes(s)
	in, out := e.condition("in", net.Start, s.el), e.condition("out", net.End, s.el)
	e.body(s, in, out)
	for _, f := range e.later {
		f()
	}
	if d.members += e.members; d.members > maxRegions {
		return d.refuse(TooLarge, s.el, "its canceling events cancel more elements than are read")
	}
	e.out.Unnamed = e.unnamed.Names()
	d.result.Nets = append(d.result.Nets, *e.out)
	for _, n := range e.several {
		d.emitRounds(n)
		if n.isComposite() {
			e.subs = append(e.subs, n.sub)
		}
	}
	for _, sub := range e.subs {
		if err := d.emit(sub, false); err != nil {
			return err
		}
	}
	return nil
}

// emitter begins a definition.
func (d *decoder) emitter(name, label string, el *xmlread.Element) *emitter {
	e := &emitter{decoder: d, tasks: map[string]int{}, pairs: map[string]bool{},
		def: &net.Definition{Name: name, Pos: d.pos(el.Line)}}
	e.out = &Net{Definition: e.def, Label: label, Labels: map[string]string{}, IDs: map[string]string{},
		Flows: map[[2]string]string{}}
	return e
}

// nameNodes names every node before anything is added, so that names in the file have precedence over added ones.
func (e *emitter) nameNodes(s *scope) {
	for _, n := range s.nodes {
		n.name = e.names.Name(n.label, n.id, n.el.Name)
		n.enter, n.leave = n.name, n.name
		if n.sub != nil && n.sub.inline {
			e.nameNodes(n.sub)
			continue
		}
		e.identify(n, n.name)
	}
}

// identify records the id, the label and the name of a task in the file.
func (e *emitter) identify(n *node, name string) {
	if n.id != "" {
		e.out.IDs[name] = n.id
	}
	e.unnamed.Element(name, n.label)
	if n.label != "" && n.label != name {
		e.out.Labels[name] = n.label
	}
}

func (e *emitter) isCondition(name string) bool {
	_, isTask := e.tasks[name]
	return !isTask
}

func (e *emitter) condition(wanted string, role net.Role, el *xmlread.Element) string {
	name := e.names.Name(wanted)
	e.unnamed.Add(name)
	e.def.Conditions = append(e.def.Conditions, net.Condition{Name: name, Role: role, Pos: e.pos(el.Line)})
	return name
}

// task adds a task with a name that is already reserved.
func (e *emitter) task(name string, kind net.Kind, join, split net.Rule, el *xmlread.Element) {
	e.tasks[name] = len(e.def.Tasks)
	e.def.Tasks = append(e.def.Tasks, net.Task{Name: name, Kind: kind, Join: join, Split: split, Pos: e.pos(el.Line)})
}

// routing adds a routing task that the file does not have.
func (e *emitter) routing(wanted string, join, split net.Rule, el *xmlread.Element) string {
	name := e.names.Name(wanted)
	e.unnamed.Add(name)
	e.task(name, net.Routing, join, split, el)
	return name
}

// flow connects two elements. Two tasks are connected by one implicit condition; a second flow between them gets its
// own condition, since each carries tokens.
func (e *emitter) flow(from, to string, el *xmlread.Element) {
	pos := e.pos(el.Line)
	pair := net.ImplicitName(from, to)
	if e.pairs[pair] {
		if e.isCondition(from) || e.isCondition(to) {
			return
		}
		between := e.condition(from+"_to_"+to, net.Inner, el)
		e.def.Flows = append(e.def.Flows,
			net.Flow{From: from, To: between, Pos: pos}, net.Flow{From: between, To: to, Pos: pos})
		return
	}
	e.pairs[pair] = true
	e.def.Flows = append(e.def.Flows, net.Flow{From: from, To: to, Pos: pos})
}
