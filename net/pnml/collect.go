package pnml

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// node is a place or a transition of the file. References are resolved to their nodes.
type node struct {
	el         *xmlread.Element
	id, label  string
	transition bool
	seq        int // among all nodes
	index      int // into the places or the transitions
	initial    int
	silent     bool
	own        *xmlread.Element // Tasq's own annotation, nil if there is none
}

// arc of the file, after references are resolved.
type arc struct {
	el       *xmlread.Element
	from, to *node
	kind     string // "", "reset", "inhibitor" or "read"
	weight   int
}

// graph is a net of the file with all its pages.
type graph struct {
	el     *xmlread.Element
	label  string
	own    *xmlread.Element
	nodes  []*node
	arcs   []arc
	byID   map[string]*node
	places int
}

// collect reads the nodes and arcs of a net from all its pages. Arcs are resolved at the end, since they may precede
// their nodes.
func (d *decoder) collect(el *xmlread.Element) (*graph, error) {
	g := &graph{el: el, byID: map[string]*node{}, label: text(el.Child("name"))}
	if err := d.checkType(el); err != nil {
		return nil, err
	}
	var arcs, refs []*xmlread.Element
	ids := map[string]*xmlread.Element{}
	tools := map[string]bool{}
	for c := range onPages(el) {
		var err error
		switch c.Name {
		case "place", "transition":
			if err = d.claim(ids, c); err == nil {
				err = d.addNode(g, c)
			}
		case "referencePlace", "referenceTransition":
			err = d.claim(ids, c)
			refs = append(refs, c)
		case "arc":
			err = d.claim(ids, c)
			arcs = append(arcs, c)
		case "toolspecific":
			if c.Attr("tool") == tool {
				g.own = c
			} else {
				d.noteTool(tools, c)
			}
		case "net": // WoPeD puts the net of a sub-process into the page of its transition
			d.note(LeftOut, c.Line, c.String(), "it is a net within a net, as of a sub-process, and is not read: save it as a file of its own to verify it")
		case "finalmarkings":
			d.noteFinalMarkings(c)
		case "inhibitorArc":
			err = d.refuse(Unsupported, c, noInhibitors)
		case "priority":
			err = d.refuse(Unsupported, c, noPriorities)
		case "page", "name", "labels", "tokenclass", "variables", "declaration", "feature", "queries", "query":
		default:
			d.noteUnknown(tools, c)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(g.nodes) == 0 {
		return nil, d.refuse(Empty, el, "the net has no place and no transition")
	}
	if err := d.resolve(g, refs); err != nil {
		return nil, err
	}
	if err := d.timing(g); err != nil {
		return nil, err
	}
	return g, d.addArcs(g, arcs)
}

// onPages yields the elements of a net, of its pages and of their pages, in the order of the file.
func onPages(el *xmlread.Element) iter.Seq[*xmlread.Element] {
	return func(yield func(*xmlread.Element) bool) {
		next := []*xmlread.Element{el.FirstChild()} // of the net, and of each page in progress
		for len(next) > 0 {
			c := next[len(next)-1]
			if c == nil {
				next = next[:len(next)-1]
				continue
			}
			next[len(next)-1] = c.Next()
			if c.Name == "page" {
				next = append(next, c.FirstChild())
			}
			if !yield(c) {
				return
			}
		}
	}
}

// checkType refuses high-level nets, whose tokens have values. The names of the plain type vary, those of the others do
// not.
func (d *decoder) checkType(el *xmlread.Element) error {
	kind := strings.ToLower(el.Attr("type"))
	for _, high := range []string{"symmetricnet", "highlevelnet", "hlpng", "hlnet", "coloured", "colored"} {
		if strings.Contains(kind, high) {
			return d.refuse(Unsupported, el,
				"it is a high-level net of type "+xmlread.Quote(el.Attr("type"))+"; only place/transition nets are read: save it as one, unfolded")
		}
	}
	return nil
}

func (d *decoder) claim(ids map[string]*xmlread.Element, el *xmlread.Element) error {
	id := el.ID()
	if id == "" {
		if el.Name == "arc" {
			return nil // nothing refers to an arc, and some tools give it no id
		}
		return d.refuse(Malformed, el, "it has no id, so no arc can refer to it: give it one of its own")
	}
	if first := ids[id]; first != nil {
		article := "a "
		if first.Name == "arc" {
			article = "an "
		}
		return d.refuse(DuplicateID, el, "its id is already that of "+article+first.Name+" in line "+strconv.Itoa(first.Line)+": give one of them another")
	}
	ids[id] = el
	return nil
}

func (d *decoder) addNode(g *graph, el *xmlread.Element) error {
	n := &node{el: el, id: el.ID(), label: text(el.Child("name")),
		transition: el.Name == "transition", seq: len(g.nodes)}
	for t := range el.Named("toolspecific") {
		switch {
		case t.Attr("tool") == tool:
			n.own = t
		case t.Attr("activity") == "$invisible$":
			n.silent = true
		}
	}
	if n.transition {
		n.index = len(g.nodes) - g.places
	} else {
		n.index = g.places
		g.places++
		tokens, err := d.number(el, "initialMarking", 0)
		if err != nil {
			return err
		}
		n.initial = tokens
		if most := capacity(el); most > 0 {
			return d.refuse(Unsupported, el, "its capacity is "+strconv.Itoa(most)+"; without it more could fire, so the net is not read: "+
				"put a place for the free room beside it, and take the capacity out")
		}
	}
	g.nodes = append(g.nodes, n)
	g.byID[n.id] = n
	return nil
}

// resolve replaces every reference node by its target, through chains of references.
func (d *decoder) resolve(g *graph, refs []*xmlread.Element) error {
	byID := make(map[string]*xmlread.Element, len(refs))
	for _, el := range refs {
		byID[el.ID()] = el
	}
	for _, ref := range refs {
		var chain []string
		for at := ref.ID(); ; {
			if n := g.byID[at]; n != nil {
				for _, c := range chain {
					g.byID[c] = n
				}
				break
			}
			el := byID[at]
			if el == nil {
				last := byID[chain[len(chain)-1]]
				return d.refuse(UnknownRef, last, "it stands for "+xmlread.Quote(at)+", which is no place or transition: correct its ref")
			}
			if len(chain) > len(refs) {
				return d.refuse(UnknownRef, el, "it stands for itself, at once or through others: let its ref name a place or a transition")
			}
			chain = append(chain, at)
			at = strings.TrimSpace(el.Attr("ref"))
		}
		if n := g.byID[ref.ID()]; n.transition != (ref.Name == "referenceTransition") {
			return d.refuse(UnknownRef, ref, "it stands for the "+n.el.String()+", which is of the other kind: make it a reference to one, or correct its ref")
		}
	}
	return nil
}

const noInhibitors = "it is an inhibitor arc; without it more could fire, so the net is not read: " +
	"let the transition take from a place that is marked while the other is empty, and put back into it"

func (d *decoder) addArcs(g *graph, arcs []*xmlread.Element) error {
	g.arcs = make([]arc, 0, len(arcs))
	for _, el := range arcs {
		a := arc{el: el, kind: arcKind(el)}
		var err error
		if a.from, err = d.end(g, el, "source"); err != nil {
			return err
		}
		if a.to, err = d.end(g, el, "target"); err != nil {
			return err
		}
		if a.from.transition == a.to.transition {
			return d.refuse(Malformed, el, "it joins the "+a.from.el.String()+" to the "+a.to.el.String()+
				"; an arc joins a place and a transition: put the other kind between them")
		}
		if a.weight, err = d.number(el, "inscription", 1); err != nil {
			return err
		}
		switch {
		case a.kind == "inhibitor":
			return d.refuse(Unsupported, el, noInhibitors)
		case a.kind != "" && a.kind != "read" && a.kind != "reset":
			return d.refuse(Unsupported, el, "it is an arc of the type "+xmlread.Quote(a.kind)+", whose meaning is not known; ordinary, read and reset arcs are read")
		case a.kind != "" && a.from.transition:
			return d.refuse(Malformed, el, "a "+a.kind+" arc leads from a place to a transition: exchange its source and target")
		case a.weight == 0:
			d.note(LeftOut, el.Line, el.String(), "its weight is 0, so it moves no token")
			continue
		}
		g.arcs = append(g.arcs, a)
	}
	return nil
}

func (d *decoder) end(g *graph, el *xmlread.Element, which string) (*node, error) {
	id := strings.TrimSpace(el.Attr(which))
	if n := g.byID[id]; n != nil {
		return n, nil
	}
	if id == "" {
		return nil, d.refuse(UnknownRef, el, "it has no "+which+": name the id of a place or transition")
	}
	text := "its " + which + " " + xmlread.Quote(id) + " is no place or transition of the net"
	if meant := g.closest(id); meant != "" {
		return nil, d.refuse(UnknownRef, el, text+"; did you mean "+xmlread.Quote(meant)+"?")
	}
	return nil, d.refuse(UnknownRef, el, text+": correct it, or take the arc out")
}

// maxCompared bounds the ids that an unknown one is compared with.
const maxCompared = 1000

// closest is the id of a node that an unknown one resembles; "" if there is none.
func (g *graph) closest(id string) string {
	if len(g.nodes) > maxCompared {
		return ""
	}
	known := make([]string, len(g.nodes))
	for i, n := range g.nodes {
		known[i] = n.id
	}
	return spelling.Closest(id, known)
}

// arcKind reads the non-standard kinds of arcs: an attribute, PIPE's <type value=""/>, ProM's
// <arctype><text/></arctype>, and <type><text/></type>.
func arcKind(el *xmlread.Element) string {
	kind := el.Attr("type")
	if c := el.Child("type"); c != nil {
		if kind = c.Attr("value"); kind == "" {
			kind = text(c)
		}
	}
	if c := el.Child("arctype"); c != nil {
		kind = text(c)
	}
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case strings.Contains(kind, "inhibit"): // TAPAAL has tapnInhibitor, Romeo logicalInhibitor
		return "inhibitor"
	case kind == "test":
		return "read"
	case kind == "flush":
		return "reset"
	case slices.Contains(plainKinds, kind):
		return ""
	}
	return kind
}

// plainKinds are the names of ordinary arcs. TAPAAL calls them timed or transport, for what they do with the age of tokens.
var plainKinds = []string{"", "normal", "ordinary", "regular", "timed", "transport", "pt", "tp", "place_transition", "transition_place"}
