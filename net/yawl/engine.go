package yawl

import (
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// engineFile reads the XML of the engine. In the oldest files the root net is <rootNet>, later it is one of the
// <decomposition> elements.
func (d *decoder) engineFile(root *xmlread.Element) ([]*specification, error) {
	var specs []*specification
	for el := range root.All() {
		switch el.Name {
		case "specification":
			s, err := d.engineSpecification(el)
			if err != nil {
				return nil, err
			}
			specs = append(specs, s)
		case "layout":
			d.note(NotCarried, el.Line, el.String(), "the layout of the drawing is not carried", nil)
		default:
			d.unknown(el)
		}
	}
	if len(specs) == 0 {
		return nil, d.refuse(Empty, root, "there is no <specification> in it")
	}
	return specs, nil
}

func (d *decoder) unknown(el *xmlread.Element) {
	d.note(UnknownElement, el.Line, el.String(), "no schema of YAWL has such an element here; it is passed over", el)
}

func (d *decoder) engineSpecification(el *xmlread.Element) (*specification, error) {
	s := &specification{decompositions: map[string]bool{}}
	for c := range el.All() {
		switch c.Name {
		case "rootNet", "decomposition":
			s.decompositions[c.ID()] = true
			if !isNet(c) {
				d.note(NotCarried, c.Line, c.String(), "it is a service: its parameters and its codelet are not carried", c)
				continue
			}
			n, err := d.engineNet(c)
			if err != nil {
				return nil, err
			}
			s.nets = append(s.nets, n)
		case "name", "documentation":
		case "metaData":
			d.note(NotCarried, c.Line, c.String(), "the data about the specification are not carried", c)
		case "schema", "importedNet":
			d.note(NotCarried, c.Line, c.String(), "types of data are not carried", c)
		default:
			d.unknown(c)
		}
	}
	if len(s.nets) == 0 {
		return nil, d.refuse(Empty, el, "there is no net in it")
	}
	return s, nil
}

func isNet(el *xmlread.Element) bool {
	kind := el.Attr("xsi:type")
	return el.Name == "rootNet" || strings.HasSuffix(kind, "NetFactsType") || el.Child("processControlElements") != nil
}

func (d *decoder) engineNet(el *xmlread.Element) (*rawNet, error) {
	n := &rawNet{id: el.ID(), line: el.Line, root: el.Name == "rootNet" || el.Attr("isRootNet") == "true"}
	if name := el.Child("name"); name != nil {
		n.label = name.Text
	}
	for c := range el.All() {
		switch c.Name {
		case "processControlElements":
			for x := range c.All() {
				node, err := d.engineNode(x)
				if err != nil {
					return nil, err
				}
				if node != nil {
					n.nodes = append(n.nodes, node)
				}
			}
		case "name", "documentation":
		case "inputParam", "outputParam", "localVariable", "outputExpression", "enablementParam":
			d.note(NotCarried, c.Line, "<"+c.Name+"> of "+el.String(), "data of nets are not carried", c)
		default:
			d.note(NotCarried, c.Line, "<"+c.Name+"> of "+el.String(), "it has no place in a net", c)
		}
	}
	if len(n.nodes) == 0 {
		return nil, d.refuse(Empty, el, "the net has no conditions and no tasks")
	}
	return n, nil
}

var nodeKinds = map[string]nodeKind{
	"task": aTask, "condition": aCondition, "inputCondition": theInput, "outputCondition": theOutput,
}

func (d *decoder) engineNode(el *xmlread.Element) (*rawNode, error) {
	kind, known := nodeKinds[el.Name]
	if !known {
		d.unknown(el)
		return nil, nil
	}
	n := &rawNode{kind: kind, id: el.ID(), element: el.String(), line: el.Line, join: net.Xor, split: net.And}
	if n.id == "" {
		return nil, d.refuse(Malformed, el, "it has no id, so no flow can lead to it: give it one of its own")
	}
	for c := range el.All() {
		if err := d.nodePart(n, el, c); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(el.Attr("xsi:type"), "MultipleInstance") {
		n.works = true
		d.note(MultiInstance, el.Line, n.element, instances(el)+"; it is read as one task", nil)
	}
	return n, nil
}

// nodePart reads one child element of a task or a condition.
func (d *decoder) nodePart(n *rawNode, el, c *xmlread.Element) (err error) {
	switch c.Name {
	case "name":
		n.label = c.Text
	case "flowsInto":
		f, err := d.flow(el, c)
		if err != nil {
			return err
		}
		n.flows = append(n.flows, f)
	case "join":
		n.join, err = d.rule(el, c)
	case "split":
		n.split, err = d.rule(el, c)
	case "removesTokens":
		n.removes = append(n.removes, rawRemoval{id: c.ID(), line: c.Line})
	case "removesTokensFromFlow":
		r := rawRemoval{line: c.Line}
		if x := c.Child("flowSource"); x != nil {
			r.from = x.ID()
		}
		if x := c.Child("flowDestination"); x != nil {
			r.to = x.ID()
		}
		n.removes = append(n.removes, r)
	case "decomposesTo":
		n.decomposes = c.ID()
	case "timer":
		n.works = true
		d.note(Kept, c.Line, "<timer> of "+n.element, "a net knows no time; the timer is not carried", c)
	case "documentation", "minimum", "maximum", "threshold", "creationMode":
	case "startingMappings", "completedMappings", "enablementMappings", "miDataInput", "miDataOutput":
		d.note(NotCarried, c.Line, "<"+c.Name+"> of "+n.element, "data of tasks are not carried", c)
	case "resourcing":
		d.note(NotCarried, c.Line, "<resourcing> of "+n.element, "who does the work is not carried", c)
	case "customForm", "configuration":
		d.note(NotCarried, c.Line, "<"+c.Name+"> of "+n.element, "it has no place in a net", c)
	default:
		d.unknown(c)
	}
	return err
}

func (d *decoder) rule(el, c *xmlread.Element) (net.Rule, error) {
	switch code := strings.ToLower(strings.TrimSpace(c.Attr("code"))); code {
	case "and":
		return net.And, nil
	case "xor":
		return net.Xor, nil
	case "or":
		return net.Or, nil
	default:
		return 0, &Error{File: d.file, Line: c.Line, Code: Malformed, Element: el.String(),
			Text: "its <" + c.Name + "> has the code " + xmlread.Quote(code) + "; known are and, xor, or"}
	}
}

func (d *decoder) flow(el, c *xmlread.Element) (rawFlow, error) {
	f := rawFlow{line: c.Line, fallback: c.Child("isDefaultFlow") != nil}
	if next := c.Child("nextElementRef"); next != nil {
		f.to = next.ID()
	}
	if f.to == "" {
		return f, &Error{File: d.file, Line: c.Line, Code: UnknownRef, Element: el.String(),
			Text: "its <flowsInto> names no element in <nextElementRef>"}
	}
	if p := c.Child("predicate"); p != nil {
		f.predicate = p.Text
		f.order, _ = strconv.Atoi(strings.TrimSpace(p.Attr("ordering"))) // by default, the order of the file
	}
	return f, nil
}

// instances describes a task with several instances: "it runs 1 to 10 instances and completes with 5 of them".
func instances(el *xmlread.Element) string {
	value := func(name, missing string) string {
		if c := el.Child(name); c != nil {
			return count(c.Text, missing)
		}
		return missing
	}
	s := "it runs " + value("minimum", "1") + " to " + value("maximum", "any number of") +
		" instances and completes with " +
		value("threshold", "all") + " of them"
	if c := el.Child("creationMode"); c != nil && c.Attr("code") == "dynamic" {
		s += ", and more can be added while it runs"
	}
	return s
}

// count returns a number of instances as written. The largest integer of Java means no limit.
func count(written, missing string) string {
	switch s := xmlread.Label(written); s {
	case "", "infinite", "2147483647", "9223372036854775807":
		return missing
	default:
		return s
	}
}
