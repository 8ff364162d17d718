package pnml

import (
	"strconv"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// builder builds the nets of one <net> element.
type builder struct {
	*decoder
	g     *graph
	names xmlread.Namer
	bare  xmlread.Unnamed
	name  map[*node]string
	out   Net
}

func (d *decoder) net(el *xmlread.Element) (Net, error) {
	d.color = ""
	g, err := d.collect(el)
	if err != nil {
		return Net{}, err
	}
	b := &builder{decoder: d, g: g, name: make(map[*node]string, len(g.nodes))}
	b.out.Label = xmlread.Label(g.label)
	b.out.Labels, b.out.IDs = map[string]string{}, map[string]string{}
	if g.own != nil {
		return b.annotated()
	}
	b.nameAll()
	b.mergeArcs()
	b.out.Petri = b.petri()
	b.out.Definition = b.define()
	b.out.Unnamed = b.bare.Names()
	return b.out, nil
}

// nameAll derives the name of every node from its id, since ids are unique and do not change when a label is edited.
func (b *builder) nameAll() {
	for _, n := range b.g.nodes {
		name := b.names.Name(n.id)
		b.name[n] = name
		if name != n.id {
			b.out.IDs[name] = n.id
		}
		label := xmlread.Label(n.label)
		b.bare.Element(name, label)
		if label != "" && label != name {
			b.out.Labels[name] = label
		}
	}
}

func (b *builder) workflowName() string {
	return b.workflows.Name(b.g.label, b.g.el.ID(), "net")
}

// petri returns the plain net. The weights of arcs between the same two nodes are added, according to the firing rule.
func (b *builder) petri() *net.Petri {
	p := &net.Petri{
		Name:        b.workflowName(),
		Places:      make([]net.PetriPlace, 0, b.g.places),
		Transitions: make([]net.PetriTransition, 0, len(b.g.nodes)-b.g.places),
		Pos:         b.pos(b.g.el.Line),
	}
	for _, n := range b.g.nodes {
		if n.transition {
			p.Transitions = append(p.Transitions, net.PetriTransition{Name: b.name[n], Pos: b.pos(n.el.Line)})
		} else {
			p.Places = append(p.Places, net.PetriPlace{Name: b.name[n], Initial: n.initial, Pos: b.pos(n.el.Line)})
		}
	}
	for _, a := range b.g.arcs {
		switch {
		case a.kind == "reset":
			t := &p.Transitions[a.to.index]
			t.Resets = append(t.Resets, a.from.index)
		case a.from.transition:
			t := &p.Transitions[a.from.index]
			t.Out = append(t.Out, net.PetriArc{Place: a.to.index, Weight: a.weight})
		default:
			t := &p.Transitions[a.to.index]
			t.In = append(t.In, net.PetriArc{Place: a.from.index, Weight: a.weight})
		}
	}
	return p
}

// mergeArcs replaces a read arc by an arc in each direction, and merges arcs between the same two nodes: their weights
// are added, according to the firing rule.
func (b *builder) mergeArcs() {
	seen := make(map[[2]int]int, len(b.g.arcs)) // the two nodes -> the remaining arc
	kept := make([]arc, 0, len(b.g.arcs))
	add := func(a arc) {
		key := [2]int{a.from.seq, a.to.seq}
		if a.kind == "reset" {
			key[0] = -1 - key[0] // a reset takes no given number of tokens, so it is merged only with resets
		}
		i, again := seen[key]
		switch {
		case !again:
			seen[key] = len(kept)
			kept = append(kept, a)
		case a.kind != "reset":
			kept[i].weight = min(kept[i].weight+a.weight, maxNumber)
			b.note(Approximated, a.el.Line, a.el.String(), "it runs beside the "+kept[i].el.String()+
				"; the two are read as one arc of weight "+strconv.Itoa(kept[i].weight))
		}
	}
	for _, a := range b.g.arcs {
		add(a)
		if a.kind == "read" {
			back := a
			back.from, back.to, back.kind = a.to, a.from, ""
			add(back)
		}
	}
	b.g.arcs = kept
}
