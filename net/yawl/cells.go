package yawl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// net reads a net and its cells.
func (b *beans) net(el *xmlread.Element) *rawNet {
	n := &rawNet{line: el.Line}
	if flag := b.put(el, "serializationProofAttributeMap", "startingNetFlag"); flag != nil {
		n.root = flag.Text == "true"
	}
	decomposition := b.property(el, "decomposition")
	if decomposition == nil {
		decomposition = el
	}
	n.id, n.label = b.decompositionID(decomposition), b.text(decomposition, "label")
	n.wanted = n.label
	cells := b.listed(el)
	for _, c := range cells {
		if kind, ok := cellKinds[class(c)]; ok {
			b.cells[c] = b.cell(c, kind)
			n.nodes = append(n.nodes, b.cells[c])
		}
	}
	for _, c := range cells {
		switch class(c) {
		case "YAWLFlowRelation":
			b.flow(c)
		case "JoinDecorator", "SplitDecorator":
			b.decorate(c)
		}
	}
	for _, c := range cells {
		if node := b.cells[c]; node != nil {
			b.cancellation(node, c)
			setDefault(node)
		}
	}
	return n
}

// listed returns the cells of a net, in the order of the file. Only those in its list are drawn; a file may have others
// that were deleted in the editor but are still referred to.
func (b *beans) listed(el *xmlread.Element) []*xmlread.Element {
	list := b.property(el, "cells")
	if list == nil || b.taken[list] {
		return nil
	}
	b.taken[list] = true
	var cells []*xmlread.Element
	for v := range list.Named("void") {
		if c := b.value(v); c != nil && !b.taken[c] {
			b.taken[c] = true
			cells = append(cells, c)
		}
	}
	slices.SortStableFunc(cells, func(x, y *xmlread.Element) int { return cmp.Compare(x.Line, y.Line) })
	return cells
}

// decompositionID names a decomposition by its line, which is unique; labels may be equal.
func (b *beans) decompositionID(el *xmlread.Element) string { return "line " + strconv.Itoa(el.Line) }

func (b *beans) cell(el *xmlread.Element, kind nodeKind) *rawNode {
	n := &rawNode{kind: kind, line: el.Line, id: el.ID(), label: xmlread.Label(b.labels[el]),
		join: net.Xor, split: net.And}
	if number := b.text(el, "engineIdNumber"); number != "" {
		n.id = class(el) + number
	}
	if n.id == "" {
		n.id = class(el) + "." + strconv.Itoa(el.Line)
	}
	n.wanted = n.label
	n.element = class(el) + " " + xmlread.Quote(n.label)
	for _, name := range []string{"decomposition", "WSDecomposition"} {
		if dec := b.property(el, name); dec != nil {
			n.decomposes = b.decompositionID(dec)
		}
	}
	if strings.HasPrefix(class(el), "Multiple") {
		n.works = true
		b.note(MultiInstance, el.Line, n.element, b.instances(el)+"; it is read as one task", nil)
	}
	return n
}

func (b *beans) instances(el *xmlread.Element) string {
	value := func(name, missing string) string {
		return count(b.text(el, name), missing)
	}
	return "it runs " + value("minimumInstances", "1") + " to " + value("maximumInstances", "any number of") +
		" instances and completes with " + value("continuationThreshold", "all") + " of them"
}

// flow adds a flow to its source node. Flows that are not connected at both ends are omitted.
func (b *beans) flow(el *xmlread.Element) {
	from, to := b.cellOf(b.property(el, "source")), b.cellOf(b.property(el, "target"))
	if from == nil || to == nil {
		b.note(LeftOut, el.Line, el.String(), "it is not connected at both ends", nil)
		return
	}
	f := rawFlow{to: to.id, line: el.Line, predicate: b.text(el, "predicate")}
	f.order, _ = strconv.Atoi(b.text(el, "priority")) // 0 is not written
	from.flows = append(from.flows, f)
}

// The rules by type of decorator in the editor's files.
var decoratorRules = map[string]net.Rule{"0": net.And, "1": net.Or, "2": net.Xor}

func (b *beans) decorate(el *xmlread.Element) {
	n := b.cellOf(el)
	kind := b.put(el, "serializationProofAttributeMap", "type")
	if n == nil || kind == nil {
		return
	}
	rule, ok := decoratorRules[kind.Text]
	switch {
	case !ok:
	case class(el) == "JoinDecorator":
		n.join = rule
	default:
		n.split = rule
	}
}

// cancellation reads the members of a cancellation set: cells, and flows for their implicit conditions.
func (b *beans) cancellation(n *rawNode, el *xmlread.Element) {
	for v := range el.Named("void") {
		if v.Attr("property") != "cancellationSet" {
			continue
		}
		walk(v, func(set *xmlread.Element) {
			if set.Attr("property") != "setMembers" {
				return
			}
			for _, m := range b.added(set) {
				b.addMember(n, m)
			}
		})
	}
}

func (b *beans) addMember(n *rawNode, m *xmlread.Element) {
	r := rawRemoval{line: m.Line}
	if class(m) == "YAWLFlowRelation" {
		r.from, r.to = b.cellID(b.property(m, "source")), b.cellID(b.property(m, "target"))
	} else {
		r.id = b.cellID(m)
	}
	n.removes = append(n.removes, r)
}

func (b *beans) cellID(el *xmlread.Element) string {
	if n := b.cellOf(el); n != nil {
		return n.id
	}
	return ""
}

// setDefault makes the flow that is evaluated last the default, as the editor does when it writes the engine's format.
func setDefault(n *rawNode) {
	last := -1
	for i, f := range n.flows {
		if last < 0 || f.order >= n.flows[last].order {
			last = i
		}
	}
	if last >= 0 && n.split != net.And {
		n.flows[last].fallback = true
	}
}
