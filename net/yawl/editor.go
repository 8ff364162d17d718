package yawl

import (
	"strings"

	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// Editors up to version 2.0 save the objects of a drawing as Java beans: an <object> has a class and <void> elements,
// which set a property or call a method. "idref" refers to an earlier object.
//
//	<object id="AtomicTask0" class="...AtomicTask">
//	  <void method="add"> <object id="YAWLPort5" class="...YAWLPort"/> </void>
//	  <void property="engineIdNumber"> <string>8</string> </void>
//	</object>
//
// A flow connects two ports. A port belongs to a task or condition, or to the decorator of the join or the split of a
// task. Five more kinds of objects matter: labels, decompositions, decorators, nets and the specification.

// beans is such a file, with indexes.
type beans struct {
	*decoder
	byID   map[string]*xmlread.Element
	owner  map[*xmlread.Element]*xmlread.Element // port -> its task, condition or decorator
	group  map[*xmlread.Element]*xmlread.Element // decorator -> its task or condition
	labels map[*xmlread.Element]string           // task or condition -> its label
	cells  map[*xmlread.Element]*rawNode
	taken  map[*xmlread.Element]bool       // cells, and lists of cells, that belong to a net
	known  map[propertyOf]*xmlread.Element // cache of property, since the same object may be used very often
}

type propertyOf struct {
	el   *xmlread.Element
	name string
}

func (d *decoder) editorFile(root *xmlread.Element) ([]*specification, error) {
	b := &beans{decoder: d, byID: map[string]*xmlread.Element{}, owner: map[*xmlread.Element]*xmlread.Element{},
		group: map[*xmlread.Element]*xmlread.Element{}, labels: map[*xmlread.Element]string{},
		cells: map[*xmlread.Element]*rawNode{},
		taken: map[*xmlread.Element]bool{}, known: map[propertyOf]*xmlread.Element{}}
	spec := root.Child("object")
	if spec == nil || class(spec) != "ArchivableSpecificationState" {
		return nil, d.refuse(WrongFormat, root, "it holds Java objects, but no specification of the YAWL editor")
	}
	walk(root, func(el *xmlread.Element) {
		if id := el.ID(); id != "" {
			b.byID[id] = el
		}
	})
	walk(root, b.index)
	walk(root, b.indexDecorator)
	s := &specification{}
	walk(spec, func(el *xmlread.Element) {
		if class(el) == "ArchivableNetState" {
			s.nets = append(s.nets, b.net(el))
		}
	})
	if len(s.nets) == 0 {
		return nil, d.refuse(Empty, spec, "there is no net in it")
	}
	for _, n := range s.nets {
		if len(n.nodes) == 0 {
			return nil, &Error{File: d.file, Line: n.line, Code: Empty, Element: "net " + xmlread.Quote(n.id),
				Text: "the net has no conditions and no tasks"}
		}
	}
	d.note(NotCarried, spec.Line, "the specification",
		"data, services, resources and the layout of an editor's file are not carried", nil)
	return []*specification{s}, nil
}

// walk calls f with an element and its descendants, in the order of the file.
func walk(el *xmlread.Element, f func(*xmlread.Element)) {
	f(el)
	for open := []*xmlread.Element{el.FirstChild()}; len(open) > 0; {
		c := open[len(open)-1]
		if c == nil {
			open = open[:len(open)-1]
			continue
		}
		open[len(open)-1] = c.Next()
		f(c)
		open = append(open, c.FirstChild())
	}
}

// class returns the last part of the class of an object: "AtomicTask".
func class(el *xmlread.Element) string {
	if el == nil || el.Name != "object" {
		return ""
	}
	c := el.Attr("class")
	return c[strings.LastIndexByte(c, '.')+1:]
}

// value returns the content of a <void>; for a reference, its target.
func (b *beans) value(el *xmlread.Element) *xmlread.Element {
	if el == nil {
		return nil
	}
	c := el.FirstChild()
	if c != nil && c.Attr("idref") != "" {
		return b.byID[c.Attr("idref")]
	}
	return c
}

// property returns the value that is set for a property of an object, or nil.
func (b *beans) property(el *xmlread.Element, name string) *xmlread.Element {
	key := propertyOf{el, name}
	value, known := b.known[key]
	if known {
		return value
	}
	for v := range el.Named("void") {
		if v.Attr("property") != name {
			continue
		}
		if value = b.value(v); value != nil {
			break
		}
	}
	b.known[key] = value
	return value
}

func (b *beans) text(el *xmlread.Element, name string) string {
	if c := b.property(el, name); c != nil {
		return c.Text
	}
	return ""
}

// added lists the objects that were added to a collection or to a cell.
func (b *beans) added(el *xmlread.Element) []*xmlread.Element {
	var all []*xmlread.Element
	for v := range el.Named("void") {
		if v.Attr("method") == "add" {
			if c := b.value(v); c != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

// put returns a value of a map by its key.
func (b *beans) put(el *xmlread.Element, property, key string) *xmlread.Element {
	for v := range el.Named("void") {
		if v.Attr("property") != property {
			continue
		}
		for entry := range v.Named("void") {
			k := entry.FirstChild()
			if k == nil || k.Text != key || k.Next() == nil {
				continue
			}
			if ref := k.Next().Attr("idref"); ref != "" {
				return b.byID[ref]
			}
			return k.Next()
		}
	}
	return nil
}

var cellKinds = map[string]nodeKind{
	"AtomicTask": aTask, "CompositeTask": aTask, "MultipleAtomicTask": aTask, "MultipleCompositeTask": aTask,
	"Condition": aCondition, "InputCondition": theInput, "OutputCondition": theOutput,
}

// index records which objects belong together. A container has a task, its label and its decorators. Labels and
// decorators also refer to a task, but that may be one that was replaced in the drawing.
func (b *beans) index(el *xmlread.Element) {
	c := class(el)
	if _, ok := cellKinds[c]; ok || c == "JoinDecorator" || c == "SplitDecorator" {
		for _, port := range b.added(el) {
			b.owner[port] = el
		}
	}
	switch c {
	case "VertexLabel":
		if v := b.property(el, "vertex"); v != nil && b.labels[v] == "" {
			b.labels[v] = b.text(el, "label")
		}
	case "VertexContainer":
		var vertex *xmlread.Element
		for _, m := range b.added(el) {
			if _, ok := cellKinds[class(m)]; ok {
				vertex = m
			}
		}
		for _, m := range b.added(el) {
			b.group[m] = vertex
			if label := b.text(m, "label"); class(m) == "VertexLabel" && label != "" {
				b.labels[vertex] = label
			}
		}
	}
}

// indexDecorator finds the task of a decorator that is in no container.
func (b *beans) indexDecorator(el *xmlread.Element) {
	if strings.HasSuffix(class(el), "Decorator") && b.group[el] == nil {
		b.group[el] = b.put(el, "serializationProofAttributeMap", "task")
	}
}

// cellOf returns the task or condition that a port, a decorator or the cell itself belongs to, or nil.
func (b *beans) cellOf(el *xmlread.Element) *rawNode {
	if owner := b.owner[el]; owner != nil {
		el = owner
	}
	if n := b.cells[el]; n != nil {
		return n
	}
	return b.cells[b.group[el]]
}
