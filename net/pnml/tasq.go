package pnml

import (
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// tool is the name of Tasq's annotations in a file. They have what PNML cannot express: the name of an element, its
// role or gates, its region. An implicit condition is a place with a mark.
// element, its role, or join and split, its region. An implicit condition is a place marked as such.
const tool = "tasq"

// maxName limits the names in an annotation, since unfolding makes several of one.
const maxName = 1000

var (
	roleNames = []string{net.Inner: "inner", net.Start: "start", net.End: "end"}
	kindNames = []string{net.Atomic: "atomic", net.Routing: "routing", net.Composite: "composite"}
	gateNames = []string{net.And: "and", net.Xor: "xor", net.Or: "or"}
)

// annotated rebuilds the definition of a net that [Encode] wrote. Flows have their original order, since arcs do.
func (b *builder) annotated() (Net, error) {
	def := &net.Definition{Name: b.g.own.Attr("name"), Pos: b.pos(b.g.el.Line)}
	implicit := map[*node]bool{}
	taken := map[string]*node{}
	for _, n := range b.g.nodes {
		if n.own == nil {
			return Net{}, b.refuse(Malformed, n.el, "the net is annotated by tasq and this element is not; "+
				"remove the annotation of the net to read it as a plain one")
		}
		name := n.own.Attr("name")
		if name == "" {
			return Net{}, b.refuse(Malformed, n.el, "its annotation gives no name")
		}
		if other := taken[name]; other != nil {
			return Net{}, b.refuse(DuplicateID, n.el, "its name "+xmlread.Quote(name)+" is already that of the "+
				other.el.String())
		}
		if len(name) > maxName {
			return Net{}, b.refuse(TooLarge, n.el, "its name is longer than "+strconv.Itoa(maxName)+" bytes")
		}
		taken[name] = n
		b.name[n] = name
		if name != n.id {
			b.out.IDs[name] = n.id
		}
		var err error
		switch {
		case n.transition:
			err = b.annotatedTask(def, n)
		case n.own.Child("implicit") != nil:
			implicit[n] = true
		default:
			err = b.annotatedCondition(def, n)
		}
		if err != nil {
			return Net{}, err
		}
	}
	if err := b.annotatedFlows(def, implicit); err != nil {
		return Net{}, err
	}
	b.out.Definition, b.out.Own = def, true
	b.out.Petri = b.unfolded(def)
	return b.out, nil
}

func (b *builder) unfolded(def *net.Definition) *net.Petri {
	p, err := Unfold(def)
	if err != nil {
		b.note(PlainOnly, b.g.el.Line, b.g.el.String(), "there is no plain net of it: "+err.Error())
		return nil
	}
	return p
}

func (b *builder) annotatedCondition(def *net.Definition, n *node) error {
	c := net.Condition{Name: b.name[n], Pos: b.pos(n.el.Line)}
	if el := n.own.Child("condition"); el != nil {
		role, err := lookup(b, n, el, "role", roleNames)
		if err != nil {
			return err
		}
		c.Role = net.Role(role)
	}
	def.Conditions = append(def.Conditions, c)
	return nil
}

func (b *builder) annotatedTask(def *net.Definition, n *node) error {
	t := net.Task{Name: b.name[n], Pos: b.pos(n.el.Line)}
	if el := n.own.Child("task"); el != nil {
		kind, err := lookup(b, n, el, "kind", kindNames)
		if err != nil {
			return err
		}
		join, err := lookup(b, n, el, "join", gateNames)
		if err != nil {
			return err
		}
		split, err := lookup(b, n, el, "split", gateNames)
		if err != nil {
			return err
		}
		t.Kind, t.Join, t.Split = net.Kind(kind), net.Rule(join), net.Rule(split)
		for c := range el.Named("cancels") {
			t.Cancels = append(t.Cancels, c.Attr("name"))
		}
		for c := range el.Named("runs") {
			t.Of = append(t.Of, c.Attr("name"))
		}
	}
	def.Tasks = append(def.Tasks, t)
	return nil
}

// lookup reads an attribute with a fixed set of values; the default is the first of them.
func lookup(b *builder, n *node, el *xmlread.Element, attr string, values []string) (int, error) {
	s := el.Attr(attr)
	if s == "" {
		return 0, nil
	}
	for i, v := range values {
		if v == s {
			return i, nil
		}
	}
	return 0, b.refuse(Malformed, n.el, "its "+attr+" is "+xmlread.Quote(s)+"; known are "+strings.Join(values, ", "))
}

// annotatedFlows replaces the two arcs through an implicit condition by one flow, at the position of the first.
func (b *builder) annotatedFlows(def *net.Definition, implicit map[*node]bool) error {
	into, outOf, next := map[*node]int{}, map[*node]int{}, map[*node]*node{}
	for _, a := range b.g.arcs {
		if implicit[a.from] {
			next[a.from] = a.to
			outOf[a.from]++
		}
		if implicit[a.to] {
			into[a.to]++
		}
	}
	for _, n := range b.g.nodes {
		if implicit[n] && (into[n] != 1 || outOf[n] != 1) {
			return b.refuse(Malformed, n.el, "it is annotated as implicit, so one arc must lead to it and one from it")
		}
	}
	for _, a := range b.g.arcs {
		switch {
		case implicit[a.from]:
		case implicit[a.to]:
			b.addFlow(def, a, b.name[next[a.to]])
		default:
			b.addFlow(def, a, b.name[a.to])
		}
	}
	return nil
}

func (b *builder) addFlow(def *net.Definition, a arc, to string) {
	def.Flows = append(def.Flows, net.Flow{From: b.name[a.from], To: to, Pos: b.pos(a.el.Line)})
}
