package yawl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// addSpecification adds definitions for the nets of a specification, the root net first.
func (d *decoder) addSpecification(s *specification) error {
	names := map[string]string{} // id of a net -> name of its workflow
	first := map[string]*rawNet{}
	for _, n := range s.nets {
		if other := first[n.id]; other != nil {
			return &Error{File: d.file, Line: n.line, Code: DuplicateID, Element: "net " + xmlread.Quote(n.id),
				Text: "its id is already that of the net in line " + strconv.Itoa(other.line) + ": give one of them another"}
		}
		first[n.id] = n
		names[n.id] = d.workflows.Name(n.wanted, n.id, n.label, "net")
	}
	slices.SortStableFunc(s.nets, func(a, b *rawNet) int {
		if a.root == b.root {
			return 0
		}
		if a.root {
			return -1
		}
		return 1
	})
	for _, n := range s.nets {
		b := &builder{decoder: d, spec: s, raw: n, workflows: names, byID: make(map[string]*rawNode, len(n.nodes)),
			name: make(map[*rawNode]string, len(n.nodes))}
		if err := b.build(); err != nil {
			return err
		}
		d.result.Nets = append(d.result.Nets, b.out)
	}
	return nil
}

// builder builds the definition of one net.
type builder struct {
	*decoder
	spec      *specification
	raw       *rawNet
	workflows map[string]string
	names     xmlread.Namer
	bare      xmlread.Unnamed
	byID      map[string]*rawNode
	name      map[*rawNode]string
	implicit  map[string]bool // conditions between two tasks, "a->b"
	def       *net.Definition
	out       Net
}

func (b *builder) build() error {
	b.def = &net.Definition{Name: b.workflows[b.raw.id], Pos: b.pos(b.raw.line)}
	b.out = Net{Definition: b.def, Root: b.raw.root, Label: xmlread.Label(b.raw.label),
		Labels: map[string]string{}, IDs: map[string]string{}, Flows: map[[2]string]string{}}
	if err := b.nameAll(); err != nil {
		return err
	}
	for _, n := range b.raw.nodes {
		if n.decomposes != "" && b.spec.decompositions != nil && !b.spec.decompositions[n.decomposes] {
			return b.refuseNode(n, n.line, UnknownRef,
				"it decomposes to "+xmlread.Quote(n.decomposes)+", which the specification does not have: add the decomposition, or correct its id")
		}
		b.addNode(n)
	}
	b.implicit = map[string]bool{}
	for _, n := range b.raw.nodes {
		if err := b.addFlows(n); err != nil {
			return err
		}
	}
	b.out.Unnamed = b.bare.Names()
	for i, t := 0, b.def.Tasks; i < len(b.raw.nodes); i++ {
		if n := b.raw.nodes[i]; n.kind == aTask {
			if err := b.addRegion(&t[0], n); err != nil {
				return err
			}
			t = t[1:]
		}
	}
	return nil
}

func (b *builder) refuseNode(n *rawNode, line int, code Code, text string) *Error {
	return &Error{File: b.file, Line: line, Code: code, Element: n.element, Text: text}
}

func (b *builder) nameAll() error {
	for _, n := range b.raw.nodes {
		if other := b.byID[n.id]; other != nil {
			return b.refuseNode(n, n.line, DuplicateID,
				"its id is already that of the "+other.element+" in line "+strconv.Itoa(other.line)+": give one of them another")
		}
		b.byID[n.id] = n
		name := b.names.Name(n.wanted, n.id, n.label)
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
	return nil
}

func (b *builder) addNode(n *rawNode) {
	if n.kind != aTask {
		role := map[nodeKind]net.Role{aCondition: net.Inner, theInput: net.Start, theOutput: net.End}[n.kind]
		b.def.Conditions = append(b.def.Conditions, net.Condition{Name: b.name[n], Role: role, Pos: b.pos(n.line)})
		return
	}
	t := net.Task{Name: b.name[n], Join: n.join, Split: n.split, Pos: b.pos(n.line)}
	switch name, isNet := b.workflows[n.decomposes]; {
	case isNet && n.decomposes != "":
		t.Kind, t.Of = net.Composite, []string{name}
	case n.decomposes == "" && !n.works:
		t.Kind = net.Routing
	}
	b.def.Tasks = append(b.def.Tasks, t)
}

// addFlows adds the flows of a node in the order of evaluation, and reports the predicates. In YAWL, predicates of an
// and-split have no effect, so they are not reported.
func (b *builder) addFlows(n *rawNode) error {
	choice := n.kind == aTask && n.split != net.And && len(n.flows) > 1
	if choice {
		slices.SortStableFunc(n.flows, func(f, g rawFlow) int {
			if f.fallback != g.fallback {
				if g.fallback {
					return -1
				}
				return 1
			}
			return cmp.Compare(f.order, g.order)
		})
	}
	for i, f := range n.flows {
		to := b.byID[f.to]
		if to == nil {
			return b.refuseNode(n, f.line, UnknownRef, "it flows into "+xmlread.Quote(f.to)+
				", which the net does not have: correct the id in its nextElementRef, or take the flow out")
		}
		b.addFlow(n, to, f)
		if choice {
			b.notePredicate(n, to, f, i+1)
		}
	}
	return nil
}

func (b *builder) notePredicate(n, to *rawNode, f rawFlow, place int) {
	text, label := "", "otherwise"
	if p := xmlread.Label(f.predicate); p != "" {
		text = "it is number " + strconv.Itoa(place) + " to be tried and is taken if " + p
		label = strconv.Itoa(place) + ": " + p
	}
	if f.fallback {
		text = strings.TrimPrefix(text+"; it is the default", "; ")
	}
	if text == "" {
		return
	}
	b.out.Flows[[2]string{b.name[n], b.name[to]}] = label
	b.result.Report.Add(Note{Code: Kept, Line: f.line, Element: "flow " + xmlread.Quote(b.name[n]+"->"+b.name[to]),
		Text: text, Raw: strings.Clone(f.predicate[:min(len(f.predicate), 2<<10)])})
}

// addFlow adds one flow. YAWL's schema allows a flow between two conditions, although no token could move along it: a
// routing task between the two has the probable meaning.
func (b *builder) addFlow(n, to *rawNode, f rawFlow) {
	from, pos := b.name[n], b.pos(f.line)
	if n.kind != aTask && to.kind != aTask {
		between := b.names.Name(from + "_to_" + b.name[to])
		b.bare.Add(between)
		b.def.Tasks = append(b.def.Tasks, net.Task{Name: between, Kind: net.Routing, Pos: pos})
		b.def.Flows = append(b.def.Flows, net.Flow{From: from, To: between, Pos: pos})
		b.note(Closed, f.line, n.element,
			"it flows into another condition; the routing task "+between+" is added between", nil)
		from = between
	}
	if n.kind == aTask && to.kind == aTask {
		b.implicit[net.ImplicitName(from, b.name[to])] = true
	}
	b.def.Flows = append(b.def.Flows, net.Flow{From: from, To: b.name[to], Pos: pos})
}

// addRegion reads the cancellation set of a task. A condition between two tasks has no id there: it is named by its two
// ends, or by the engine's name for it, "c{a_b}".
func (b *builder) addRegion(t *net.Task, n *rawNode) error {
	seen := map[string]bool{}
	for _, r := range n.removes {
		name, err := b.member(n, r)
		if err != nil {
			return err
		}
		if name != "" && !seen[name] {
			seen[name] = true
			t.Cancels = append(t.Cancels, name)
		}
	}
	return nil
}

func (b *builder) member(n *rawNode, r rawRemoval) (string, error) {
	if r.id != "" {
		if m := b.byID[r.id]; m != nil {
			return b.name[m], nil
		}
		if name := b.engineName(r.id); name != "" {
			return name, nil
		}
		return "", b.refuseNode(n, r.line, UnknownRef, "it cancels "+xmlread.Quote(r.id)+
			", which the net does not have: correct the id in its removesTokens, or take that out")
	}
	from, to := b.byID[r.from], b.byID[r.to]
	if from == nil || to == nil {
		return "", b.refuseNode(n, r.line, UnknownRef, "it cancels the flow from "+xmlread.Quote(r.from)+" to "+
			xmlread.Quote(r.to)+", which the net does not have: correct its removesTokensFromFlow, or take that out")
	}
	name := net.ImplicitName(b.name[from], b.name[to])
	if b.implicit[name] {
		return name, nil
	}
	b.note(LeftOut, r.line, n.element, "it cancels the flow from "+xmlread.Quote(r.from)+" to "+xmlread.Quote(r.to)+
		", which never holds a token of its own", nil)
	return "", nil
}

// engineName returns the flow of the engine's name "c{a_b}". Since ids may have "_" too, every split is tried.
func (b *builder) engineName(id string) string {
	inner, ok := strings.CutPrefix(id, "c{")
	if !ok || !strings.HasSuffix(inner, "}") || len(inner) > 200 {
		return ""
	}
	inner = inner[:len(inner)-1]
	for i := range len(inner) {
		if inner[i] != '_' {
			continue
		}
		from, to := b.byID[inner[:i]], b.byID[inner[i+1:]]
		if from != nil && to != nil && b.implicit[net.ImplicitName(b.name[from], b.name[to])] {
			return net.ImplicitName(b.name[from], b.name[to])
		}
	}
	return ""
}
