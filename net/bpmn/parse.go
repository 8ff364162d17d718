package bpmn

import (
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// parse reads the definitions of a file, then resolves references.
func (d *decoder) parse(root *xmlread.Element) error {
	if root.Name != "definitions" {
		text := "the root of a BPMN file is <definitions>"
		if kind := map[string]string{"pnml": "PNML", "specificationSet": "YAWL"}[root.Name]; kind != "" {
			text += "; this looks like " + kind
		}
		return d.refuse(WrongFormat, root, text)
	}
	if ns := namespace(root); strings.Contains(ns, "DMN") || strings.Contains(ns, "CMMN") {
		return d.refuse(WrongFormat, root, "its namespace is "+xmlread.Quote(ns)+", which is not that of BPMN: save the process as BPMN 2.0")
	}
	d.readRoots(root)
	var flows []*flow
	found, choreographies := 0, 0
	for el := range root.All() {
		switch el.Name {
		case "process":
			found++
			s := &scope{el: el}
			if err := d.claim(el); err != nil {
				return err
			}
			if err := d.scope(s, &flows); err != nil {
				return err
			}
			if d.joint != nil && !d.joint.processes[el] {
				continue
			}
			if len(s.nodes) == 0 {
				d.note(NotCarried, el, "there is nothing in it that could run")
				continue
			}
			d.processes = append(d.processes, s)
		case "collaboration":
			d.collaboration(el)
		case "choreography", "globalChoreographyTask":
			choreographies++
			d.note(LeftOut, el, "choreographies are not read")
		case "error", "escalation", "extension", "documentation", "globalTask", "globalUserTask", "globalScriptTask",
			"globalManualTask", "globalBusinessRuleTask":
		default:
			if !strings.HasSuffix(el.Name, "EventDefinition") { // an event of a process refers to it
				d.noteRaw(NotCarried, el, el.String(), "definitions beside the processes are not carried")
			}
		}
	}
	switch {
	case found == 0 && choreographies > 0:
		d.refuseToo(Empty, root, "there is no <process> in it, and choreographies are not read")
	case found == 0:
		d.refuseToo(Empty, root, "there is no <process> in it: save the diagram with its process")
	case len(d.processes) == 0:
		d.refuseToo(Empty, root, "there is nothing to run in any <process> of it")
	}
	if len(d.refusals) > 0 {
		return d.refusals
	}
	d.resolve(flows)
	return nil
}

// readRoots reads what the elements of processes refer to.
func (d *decoder) readRoots(root *xmlread.Element) {
	for el := range root.All() {
		if strings.HasSuffix(el.Name, "EventDefinition") && el.ID() != "" {
			d.events[el.ID()] = el
		}
		if el.Name == "error" || el.Name == "escalation" {
			code := el.Attr(el.Name + "Code")
			if code == "" {
				code = el.ID()
			}
			d.codes[el.ID()] = code
		}
	}
}

func (d *decoder) collaboration(el *xmlread.Element) {
	if d.pools == nil {
		d.pools = map[string]string{}
	}
	for c := range el.All() {
		switch c.Name {
		case "participant":
			process := local(c.Attr("processRef"))
			if process == "" {
				d.note(NotCarried, c, "it is a pool without a process")
			}
			if label := xmlread.Label(c.Attr("name")); label != "" {
				d.pools[process] = label
			}
			if m := c.Child("participantMultiplicity"); m != nil {
				d.note(MultiInstance, m, "the process may run several times for one case of the others; it is read as one")
			}
		case "messageFlow":
			d.messages, d.pool = append(d.messages, c), el
		case "documentation", "extensionElements":
		default:
			d.note(NotCarried, c, "it has no place in a net")
		}
	}
}

// local cuts the prefix off a qualified name.
func local(name string) string { return strings.TrimSpace(name[strings.LastIndexByte(name, ':')+1:]) }

// scope reads a process or a sub-process and what is in it. It calls itself for a sub-process, so at most as often as
// elements may lie in one another.
func (d *decoder) scope(s *scope, flows *[]*flow) error {
	for el := range s.el.All() {
		if kind, ok := nodeKinds[el.Name]; ok {
			n, err := d.node(s, el, kind, flows)
			if err != nil {
				return err
			}
			s.nodes = append(s.nodes, n)
			continue
		}
		switch el.Name {
		case "sequenceFlow":
			if err := d.claim(el); err != nil {
				return err
			}
			*flows = append(*flows, &flow{el: el, condition: el.Child("conditionExpression")})
		case "laneSet":
			d.lanes(el)
		case "incoming", "outgoing", "documentation":
		case "multiInstanceLoopCharacteristics", "standardLoopCharacteristics":
			d.repetition(s, s.owner, el)
		default:
			d.other(s.el, el)
		}
	}
	return nil
}

// maxElements bounds the flow nodes and flows of a file, of each of which a net makes much.
const maxElements = 200_000

// claim demands that an element has an id of its own, and notes the refusal of the file if it has that of another. One
// without any can be no end of a flow, but may stand alone. The error is that there are too many elements.
func (d *decoder) claim(el *xmlread.Element) error {
	if d.elements++; d.elements > maxElements {
		return d.refuse(TooLarge, el, "it comes behind "+strconv.Itoa(maxElements)+" flow nodes and flows; no more are read")
	}
	id := el.ID()
	if id == "" {
		return nil
	}
	if line, taken := d.ids[id]; taken {
		d.refuseToo(DuplicateID, el, "its id is already that of an element in line "+strconv.Itoa(line)+": give one of them another")
		return nil
	}
	d.ids[id] = el.Line
	return nil
}

// calledBy is the id of the process that a call activity calls. Camunda 8 has it among its extensions.
func calledBy(el *xmlread.Element) string {
	called := el.Attr("calledElement")
	if ext := el.Child("extensionElements"); called == "" && ext != nil {
		if c := ext.Child("calledElement"); c != nil {
			called = c.Attr("processId")
		}
	}
	return local(called)
}

func (d *decoder) node(s *scope, el *xmlread.Element, kind nodeKind, flows *[]*flow) (*node, error) {
	if err := d.claim(el); err != nil {
		return nil, err
	}
	n := &node{el: el, kind: kind, id: el.ID(), label: xmlread.Label(el.Attr("name")), scope: s,
		fallback: el.Attr("default"), attachedTo: local(el.Attr("attachedToRef")), called: calledBy(el),
		interrupting: el.Attr("cancelActivity") != "false" && el.Attr("isInterrupting") != "false",
		handler:      el.Attr("triggeredByEvent") == "true", instantiate: el.Attr("instantiate") == "true",
		several: el.Attr("eventGatewayType") == "Parallel",
	}
	if n.id != "" {
		d.byID[n.id] = n
	}
	if d.joint != nil {
		d.joint.nodes[el] = n
	}
	if kind == subProcess {
		n.sub = &scope{el: el, owner: n}
		if el.Name == "adHocSubProcess" {
			d.note(Approximated, el, "what is in it may be done in any order and any number of times; "+
				"it is read as done once, as its flows say")
		}
		if err := d.scope(n.sub, flows); err != nil {
			return nil, err
		}
	} else {
		d.parts(n)
	}
	n.gone = el.Attr("isForCompensation") == "true" || kind == boundaryEvent && n.trigger == "compensate"
	if n.trigger == "error" || n.trigger == "cancel" {
		n.interrupting = true // they cannot be anything else
	}
	return n, nil
}

// parts reads what is inside a task, an event or a gateway.
func (d *decoder) parts(n *node) {
	for c := range n.el.All() {
		switch {
		case strings.HasSuffix(c.Name, "EventDefinition"):
			d.eventDefinition(n, strings.TrimSuffix(c.Name, "EventDefinition"), c)
		case c.Name == "eventDefinitionRef":
			d.eventReference(n, c)
		case c.Name == "incoming", c.Name == "outgoing", c.Name == "documentation":
		case strings.HasSuffix(c.Name, "LoopCharacteristics"):
			d.repetition(n.scope, n, c)
		default:
			d.other(n.el, c)
		}
	}
}

// eventReference reads an event definition that stands beside the processes.
func (d *decoder) eventReference(n *node, c *xmlread.Element) {
	id := local(c.Text)
	def := d.events[id]
	if def == nil {
		d.noteRaw(Approximated, c, n.el.String(), "its event definition "+xmlread.Quote(id)+
			" is not in the file; it is read as an event without a definition")
		return
	}
	d.eventDefinition(n, strings.TrimSuffix(def.Name, "EventDefinition"), def)
}

func (d *decoder) eventDefinition(n *node, trigger string, c *xmlread.Element) {
	if n.trigger != "" {
		d.noteRaw(Approximated, c, n.el.String(), "it has several events; it is read as having the first")
		return
	}
	n.trigger = trigger
	switch trigger {
	case "error", "escalation":
		ref := local(c.Attr(trigger + "Ref"))
		n.ref = ref
		if code, ok := d.codes[ref]; ok {
			n.ref = code
		}
	case "link":
		n.ref = strings.TrimSpace(c.Attr("name"))
	case "terminate", "cancel":
	case "compensate":
		if n.kind == endEvent || n.kind == throwEvent {
			d.note(Approximated, n.el, "compensation is not read; it is read as an event that does nothing")
		}
	default:
		verb := "it waits for"
		if n.kind == endEvent || n.kind == throwEvent {
			verb = "it sends"
		}
		d.noteRaw(Kept, c, n.el.String(), verb+" a "+trigger+", which a net does not know")
	}
}

func (d *decoder) lanes(el *xmlread.Element) {
	for lane := range el.Named("lane") {
		d.noteRaw(NotCarried, lane, lane.String(), "who does the work is not carried")
	}
}

// What BPMN knows besides flow nodes and flows, with the reason why it is not carried.
var others = map[string]string{
	"extensionElements": "extensions of other tools are not carried",
	"textAnnotation":    "annotations are not carried", "group": "groups are not carried",
	"association": "associations are not carried", "category": "groups are not carried",
	"dataObject": "data are not carried", "dataObjectReference": "data are not carried",
	"dataStoreReference": "data are not carried", "dataStore": "data are not carried", "property": "data are not carried",
	"ioSpecification": "data are not carried", "ioBinding": "data are not carried",
	"dataInput": "data are not carried", "dataOutput": "data are not carried",
	"inputSet": "data are not carried", "outputSet": "data are not carried",
	"dataInputAssociation": "data are not carried", "dataOutputAssociation": "data are not carried",
	"performer": "who does the work is not carried", "humanPerformer": "who does the work is not carried",
	"potentialOwner": "who does the work is not carried", "resourceRole": "who does the work is not carried",
	"script": "what a task runs is not carried", "rendering": "what a task shows is not carried",
	"auditing": "it has no place in a net", "monitoring": "it has no place in a net",
	"supports": "it has no place in a net", "correlationSubscription": "messages are not carried",
	"supportedInterfaceRef":  "it has no place in a net",
	"activationCondition":    "its condition has no place in a net",
	"completionCondition":    "its condition has no place in a net",
	"artifact":               "annotations are not carried",
	"conversationNode":       "messages are not carried",
	"participantAssociation": "messages are not carried",
}

func (d *decoder) other(owner, el *xmlread.Element) {
	text, known := others[el.Name]
	if !known {
		d.noteRaw(UnknownElement, el, el.String(), "BPMN has no such element here; it is passed over")
		return
	}
	element := el.String()
	if el.ID() == "" {
		element += " of " + owner.String()
	}
	d.noteRaw(NotCarried, el, element, text)
}

// namespace returns the namespace of the name of an element, if the element declares it itself.
func namespace(el *xmlread.Element) string {
	tag := strings.TrimPrefix(el.Raw(), "<")
	if prefix, rest, ok := strings.Cut(tag, ":"); ok && strings.HasPrefix(rest, el.Name) {
		return el.Attr("xmlns:" + prefix)
	}
	return el.Attr("xmlns")
}
