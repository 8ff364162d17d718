package svg

// setColumns sets the horizontal positions of the layers. The space between two layers increases with the vertical
// distance of the arrows there, so that none is too steep to follow.
func (f *figure) setColumns() {
	drops := f.drops()
	f.columns = make([]column, len(f.layers))
	x := 0
	for l, layer := range f.layers {
		width := 0
		for _, v := range layer {
			width = max(width, f.vs[v].width)
		}
		x += channel(drops[l])
		f.columns[l] = column{left: x, right: x + headRoom + width}
		x += headRoom + width
	}
	f.tail = channel(drops[len(f.layers)])
}

// channel returns the space for arrows with the given vertical distance; there is some space even without arrows.
func channel(drop int) int {
	const least, most = 26, 140
	if drop < 0 {
		return 0
	}
	return min(least+drop/5, most)
}

// drops returns the vertical distance of arrows before each layer and after the last; -1 without arrows.
func (f *figure) drops() []int {
	drops := make([]int, len(f.layers)+1)
	drops[0], drops[len(f.layers)] = -1, -1
	for i := range f.segs {
		s := &f.segs[i]
		a, b := f.vs[s.from].y+s.fromPort, f.vs[s.to].y+s.toPort
		l := f.vs[s.to].layer
		drops[l] = max(drops[l], a-b, b-a)
	}
	for i := range f.edges {
		if e := &f.edges[i]; e.back {
			a, b := f.vs[e.from].y+f.starts[i], f.vs[e.next()].y
			l := f.vs[e.from].layer + 1
			drops[l] = max(drops[l], a-b, b-a)
			a, b = f.vs[e.to].y+f.ends[i], f.vs[e.previous()].y
			l = f.vs[e.to].layer
			drops[l] = max(drops[l], a-b, b-a)
		}
	}
	return drops
}

// headRoom is the space for arrowheads: a straight piece at the left of every column.
const headRoom = 10

// x returns the middle of a vertex.
func (f *figure) x(v int) int {
	c := f.columns[f.vs[v].layer]
	return (c.left + headRoom + c.right) / 2
}

// reach returns the distance of a shape's edge from the middle of its vertex, at a port.
func (f *figure) reach(v, port int) int {
	switch f.vs[v].kind {
	case circle, bead:
		return root(f.vs[v].up*f.vs[v].up - port*port)
	}
	return f.vs[v].width / 2
}

// root returns the integer square root.
func root(n int) int {
	r := 0
	for (r+1)*(r+1) <= n {
		r++
	}
	return r
}

// step is a part of an arrow's path: a straight line to a point, or a curve with two control points.
type step struct {
	curve  bool
	x1, y1 int
	x2, y2 int
	x, y   int
}

// way is the path of an arrow: its beginning and its steps. It ends with a straight step to the right.
type way struct {
	x, y  int
	steps []step
}

func (w *way) at() (x, y int) {
	if n := len(w.steps); n > 0 {
		return w.steps[n-1].x, w.steps[n-1].y
	}
	return w.x, w.y
}

// middle returns a point at the middle: that of the longest straight step with space for a circle, or else of the
// longest curve.
func (w *way) middle() (x, y int) {
	const room = 3 * beadSize
	fromX, fromY, best := w.x, w.y, 0
	for _, s := range w.steps {
		length := max(s.x-fromX, fromX-s.x, 1)
		if !s.curve && length >= room {
			length += 1 << 20
		}
		if length > best {
			best = length
			x, y = (fromX+s.x)/2, (fromY+s.y)/2
			if s.curve {
				x, y = (fromX+3*s.x1+3*s.x2+s.x)/8, (fromY+3*s.y1+3*s.y2+s.y)/8
			}
		}
		fromX, fromY = s.x, s.y
	}
	return x, y
}

// line continues straight to x; it extends the last straight step if there is one.
func (w *way) line(x int) {
	at, y := w.at()
	if at == x {
		return
	}
	if n := len(w.steps); n > 0 && !w.steps[n-1].curve {
		w.steps[n-1].x = x
		return
	}
	w.steps = append(w.steps, step{x: x, y: y})
}

// bend goes to a point in a curve that is level at both ends, or straight if that is at the same height.
func (w *way) bend(x, y int) {
	fromX, fromY := w.at()
	if fromY == y {
		w.line(x)
		return
	}
	half := (x - fromX) / 2
	w.steps = append(w.steps, step{curve: true, x1: fromX + half, y1: fromY, x2: x - half, y2: y, x: x, y: y})
}

// turn returns to the same x at another height, by a curve around a point at far to the right.
func (w *way) turn(y, far int) {
	x, fromY := w.at()
	w.steps = append(w.steps, step{curve: true, x1: x + far, y1: fromY, x2: x + far, y2: y, x: x, y: y})
}

// route returns the path of an edge.
func (f *figure) route(i int) *way {
	e := &f.edges[i]
	v := &f.vs[e.from]
	w := &way{x: f.x(e.from) + f.reach(e.from, f.starts[i]), y: v.y + f.starts[i]}
	w.line(f.columns[v.layer].right)
	if e.back {
		f.routeBack(w, e, i)
	} else {
		for _, d := range e.chain {
			c := f.columns[f.vs[d].layer]
			w.bend(c.left, f.vs[d].y)
			w.line(c.right)
		}
		w.bend(f.columns[f.vs[e.to].layer].left, f.vs[e.to].y+f.ends[i])
	}
	w.line(f.x(e.to) - f.reach(e.to, f.ends[i]))
	return w
}

// routeBack goes around to the first vertex of the chain, through the chain from right to left, and around to the
// target.
func (f *figure) routeBack(w *way, e *edge, i int) {
	for k, d := range e.chain {
		c := f.columns[f.vs[d].layer]
		if k == 0 {
			w.turn(f.vs[d].y, f.bow(f.vs[d].layer+1, f.vs[d].y-f.vs[e.from].y-f.starts[i]))
		} else {
			w.bend(c.right, f.vs[d].y)
		}
		w.line(c.left)
	}
	y := f.vs[e.to].y + f.ends[i]
	w.turn(y, -f.bow(f.vs[e.to].layer, y-f.vs[e.previous()].y))
}

// bow returns the distance of the control points of a turn. The curve itself extends to three quarters of that, so it
// stays in the space before the layer; higher turns extend farther, so that they surround lower ones.
func (f *figure) bow(l, drop int) int {
	room := f.tail
	if l < len(f.columns) {
		room = f.columns[l].left
		if l > 0 {
			room -= f.columns[l-1].right
		}
	}
	return min(16+max(drop, -drop)/6, room*5/4)
}

// next returns the vertex after the source, and previous the one before the target.
func (e *edge) next() int {
	if len(e.chain) > 0 {
		return e.chain[0]
	}
	return e.to
}

func (e *edge) previous() int {
	if len(e.chain) > 0 {
		return e.chain[len(e.chain)-1]
	}
	return e.from
}
