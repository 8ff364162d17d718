package svg

import (
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// kind says what a vertex stands for.
type kind uint8

const (
	circle    kind = iota // a condition
	bead                  // an implicit condition that has to be seen
	box                   // a task
	connector             // where a flow ends that goes on elsewhere, or begins that comes from there
	dummy                 // where a flow passes a layer
	turn                  // where a flow that goes back turns round; it matters for the order alone
)

// vertex is what has a place in a layer. Everything is in pixels. An arrow comes and goes at the height y, or at a port
// above or below it; up and down are how far the vertex reaches from there.
type vertex struct {
	kind            kind
	id              int    // of the task or the condition, or of the edge that a connector belongs to
	tip             string // of a connector: where the flow goes on
	text, more      block
	width, up, down int
	layer, pos      int
	y               int
	in, out         int // how many flows come and go
}

func (v *vertex) real() bool { return v.kind < dummy }

// edge is an arrow from one real vertex to another, through the vertices of its chain.
type edge struct {
	id       int // of the edge in the whole net
	from, to int
	text     block
	back     bool // it closes a loop, so it is led back from right to left
	torn     bool // it is the second part of one that was cut in two
	flow     flow
	chain    []int
}

// flow is what an edge stands for in the net.
type flow struct {
	from, to  string
	implicit  bool            // a condition lies on it that is no vertex
	condition net.ConditionID // which one
}

// segment is the piece of an edge between neighboring layers, left of which is from. The ports are heights relative to
// those of the vertices.
type segment struct {
	edge             int
	from, to         int
	fromPort, toPort int
	turning          bool // one of its ends is a turn
}

// region is what a task cancels.
type region struct {
	owner   net.TaskID
	members map[int]bool // vertices, with those of the edges between them
}

// figure is a row of a picture while it is made, or the whole net before it is laid out.
type figure struct {
	n         *net.Net
	o         *Options
	vs        []vertex // conditions that are seen, then tasks, then what the layout adds
	edges     []edge
	starts    []int // by edge: the height of the port at its source
	ends      []int // and at its target
	segs      []segment
	left      [][]int // by vertex: its segments to the layer before, from top to bottom
	right     [][]int
	layers    [][]int // vertices from top to bottom
	columns   []column
	regions   []region
	tail      int // room that turns need to the right of the last column
	crossings int
	height    int // without the legend
	all       int // edges of the whole net
}

// column is the room of a layer, from left to right. Boxes lie inside of it, bends outside.
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

// seen are the conditions that are not just an arrow.
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

// written is what is written for a name: nothing for one that stands for no name and has no label.
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

// alike reports whether two texts say the same, as the name and the label of a thing do.
func alike(a, b string) bool {
	return strings.ReplaceAll(a, "_", " ") == strings.ReplaceAll(b, "_", " ")
}

// joins reports whether the join of a task shows: a join of one flow is none.
func (f *figure) joins(t net.TaskID) bool { return len(f.n.Inputs(t)) > 1 }

func (f *figure) splits(t net.TaskID) bool { return len(f.n.Outputs(t)) > 1 }

// connect makes the edges, in the order in which the net tries its flows.
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

// name is what a real vertex is called in the net.
func (f *figure) name(i int) string {
	switch v := &f.vs[i]; v.kind {
	case box:
		return f.n.TaskName(net.TaskID(v.id))
	case circle, bead:
		return f.n.ConditionName(net.ConditionID(v.id))
	}
	return ""
}
