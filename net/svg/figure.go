package svg

import (
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// kind is what a vertex represents.
type kind uint8

const (
	circle    kind = iota // a condition
	bead                  // an implicit condition that is drawn
	box                   // a task
	connector             // the end of a flow that continues elsewhere, or its continuation
	dummy                 // where a flow passes a layer
	turn                  // where a backward flow turns around; only for the order
)

// vertex is an element of a layer. All sizes are in pixels. Arrows are connected at the height y, or at a port above or
// below it; up and down are the extent of the vertex from there.
type vertex struct {
	kind            kind
	id              int    // of the task or the condition, or of the edge that a connector belongs to
	tip             string // of a connector: where the flow continues
	text, more      block
	width, up, down int
	layer, pos      int
	y               int
	in, out         int // number of incoming and outgoing flows
}

func (v *vertex) real() bool { return v.kind < dummy }

// edge is an arrow from one real vertex to another, through the vertices of its chain.
type edge struct {
	id       int // of the edge in the whole net
	from, to int
	text     block
	back     bool // it closes a loop, so it goes from right to left
	torn     bool // it is the second part of an edge that was divided
	flow     flow
	chain    []int
}

// flow is the flow of the net for an edge.
type flow struct {
	from, to  string
	implicit  bool            // it has a condition that is not a vertex
	condition net.ConditionID // that condition
}

// segment is the part of an edge between neighboring layers; from is on the left. Ports are heights relative to those
// of the vertices.
type segment struct {
	edge             int
	from, to         int
	fromPort, toPort int
	turning          bool // one of its ends is a turn
}

// region is the cancellation region of a task.
type region struct {
	owner   net.TaskID
	members map[int]bool // vertices, with those of the edges between them
}

// figure is a row of a picture during layout, or the whole net before it.
type figure struct {
	n         *net.Net
	o         *Options
	vs        []vertex // visible conditions, then tasks, then vertices that the layout adds
	edges     []edge
	starts    []int // by edge: the height of the port at its source
	ends      []int // and at its target
	segs      []segment
	left      [][]int // by vertex: its segments to the layer before, from top to bottom
	right     [][]int
	layers    [][]int // vertices from top to bottom
	columns   []column
	regions   []region
	tail      int // space for turns to the right of the last column
	crossings int
	height    int // without the legend
	all       int // edges of the whole net
}

// column is the horizontal space of a layer. Boxes are inside it, bends outside.
type column struct{ left, right int }

const (
	textSize  = 13 // of the names of tasks
	smallSize = 11 // of all other text
	radius    = 15 // of a circle
	// smallRadius is that of a condition without a name
	smallRadius = 10
	beadSize    = 8  // its radius
	strip       = 16 // width of a join or split
	boxPad      = 10 // between a border and the text
	pitch       = 12 // between the ports of a box
)

func newFigure(n *net.Net, o *Options) *figure {
	f := &figure{n: n, o: o}
	seen := f.seen()
	ofCondition := make([]int, n.NumConditions())
	for c := range n.NumConditions() {
		ofCondition[c] = -1
		if seen.Has(c) {
			ofCondition[c] = len(f.vs)
			f.vs = append(f.vs, f.condition(net.ConditionID(c)))
		}
	}
	first := len(f.vs)
	for t := range n.NumTasks() {
		f.vs = append(f.vs, f.task(net.TaskID(t)))
	}
	f.connect(ofCondition, first)
	for i := range f.vs {
		if v := &f.vs[i]; v.kind == box { // tall enough for its ports
			need := (pitch*(max(v.in, v.out)-1) + pitch) / 2
			v.up, v.down = max(v.up, need), max(v.down, need)
		}
	}
	for t := range n.NumTasks() {
		f.addRegion(net.TaskID(t), ofCondition, first)
	}
	return f
}

// seen returns the conditions that are drawn, not only as an arrow.
func (f *figure) seen() net.Bits {
	seen := net.NewBits(f.n.NumConditions())
	for c := range f.n.NumConditions() {
		if !f.n.Implicit(net.ConditionID(c)) || f.tokens(c) > 0 && !f.o.Steady {
			seen.Add(c)
		}
	}
	for t := range f.n.NumTasks() {
		_, conditions := f.n.Region(net.TaskID(t))
		for _, c := range conditions {
			seen.Add(int(c))
		}
	}
	return seen
}

func (f *figure) tokens(c int) int32 {
	if c >= len(f.o.Marking) {
		return 0
	}
	return f.o.Marking[c]
}

func (f *figure) busy(t int) bool { return f.o.Busy.Has(t) }

func (f *figure) label(name string) string {
	if l := f.o.Labels[name]; strings.TrimSpace(l) != "" {
		return l
	}
	return name
}

// written returns the text for a name: none for a generated name without a label.
func (f *figure) written(name string) string {
	if text := f.label(name); text != name || !f.o.Unnamed[name] {
		return text
	}
	return ""
}

func (f *figure) condition(c net.ConditionID) vertex {
	if f.n.Implicit(c) {
		return vertex{kind: bead, id: int(c), width: 2 * beadSize, up: beadSize, down: beadSize}
	}
	v := vertex{kind: circle, id: int(c), up: radius, down: radius}
	v.text = wrap(f.written(f.n.ConditionName(c)), smallSize, 90, 120, 160, 220)
	if len(v.text.lines) == 0 && c != f.n.Start() && c != f.n.End() {
		v.up, v.down = smallRadius, smallRadius
	}
	v.width = max(2*v.up, v.text.width)
	if len(v.text.lines) > 0 {
		v.down += 3 + v.text.height()
	}
	return v
}

func (f *figure) task(t net.TaskID) vertex {
	v := vertex{kind: box, id: int(t)}
	v.text = wrap(f.written(f.n.TaskName(t)), textSize, 100, 130, 170, 240)
	task := f.n.Task(t)
	if runs := strings.Join(task.Of, ", "); task.Kind == net.Composite && runs != "" && !alike(runs, f.label(task.Name)) {
		v.more = wrap("runs "+runs, smallSize, 100, 130, 170, 240)
	}
	v.width = max(v.text.width, v.more.width, 20) + 2*boxPad
	high := max(v.text.height()+v.more.height()+2*boxPad-2, 36)
	if len(v.text.lines)+len(v.more.lines) == 0 {
		v.width, high = 20, 24
	}
	if task.Kind == net.Composite {
		v.width += 6
		high += 6
	}
	if f.joins(t) {
		v.width += strip
	}
	if f.splits(t) {
		v.width += strip
	}
	v.up, v.down = high/2, high-high/2
	return v
}

// alike reports whether two texts are equal in meaning, such as the name and the label of an element.
func alike(a, b string) bool {
	return strings.ReplaceAll(a, "_", " ") == strings.ReplaceAll(b, "_", " ")
}

// joins reports whether the join of a task is drawn: only for several flows.
func (f *figure) joins(t net.TaskID) bool { return len(f.n.Inputs(t)) > 1 }

func (f *figure) splits(t net.TaskID) bool { return len(f.n.Outputs(t)) > 1 }

// connect creates the edges, in the order of the net's flows.
func (f *figure) connect(ofCondition []int, first int) {
	for t := range f.n.NumTasks() {
		for _, c := range f.n.Outputs(net.TaskID(t)) {
			to, name, implicit := ofCondition[c], f.n.ConditionName(c), false
			if f.n.Implicit(c) {
				next := f.n.Consumers(c)[0]
				name = f.n.TaskName(next)
				if to < 0 {
					to, implicit = first+int(next), true
				}
			}
			f.addEdge(first+t, to, flow{f.n.TaskName(net.TaskID(t)), name, implicit, c})
		}
	}
	for c, from := range ofCondition {
		if from < 0 {
			continue
		}
		for _, t := range f.n.Consumers(net.ConditionID(c)) {
			name := f.n.ConditionName(net.ConditionID(c))
			f.addEdge(from, first+int(t), flow{from: name, to: f.n.TaskName(t)})
		}
	}
}

func (f *figure) addEdge(from, to int, of flow) {
	e := edge{from: from, to: to, flow: of}
	if l := f.o.Flows[[2]string{of.from, of.to}]; l != "" {
		e.text = wrap(l, smallSize, 90, 130, 180, 240)
	}
	f.vs[e.from].out++
	f.vs[e.to].in++
	f.edges = append(f.edges, e)
}

func (f *figure) addRegion(t net.TaskID, ofCondition []int, first int) {
	tasks, conditions := f.n.Region(t)
	if len(tasks)+len(conditions) == 0 {
		return
	}
	r := region{owner: t, members: make(map[int]bool)}
	for _, u := range tasks {
		r.members[first+int(u)] = true
	}
	for _, c := range conditions {
		r.members[ofCondition[c]] = true
	}
	f.regions = append(f.regions, r)
}

// name returns the name of a real vertex in the net.
func (f *figure) name(i int) string {
	switch v := &f.vs[i]; v.kind {
	case box:
		return f.n.TaskName(net.TaskID(v.id))
	case circle, bead:
		return f.n.ConditionName(net.ConditionID(v.id))
	}
	return ""
}
