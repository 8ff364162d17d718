package svg

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// place sets the position of every vertex of a row, step by step.
func (f *figure) place() {
	f.tear()
	f.closeUp()
	f.addChains()
	f.index()
	f.sortLayers()
	f.dropTurns()
	f.setPorts()
	f.setHeights()
	f.setColumns()
	f.growRegions()
}

// findLoops marks the edges that close a loop: those to a vertex on the current path of a depth-first search from the
// start. In a block-structured net these are the flows that people consider as going back, in any order of the search.
// It returns the vertices in an order in which all other edges go forward.
func (f *figure) findLoops() []int {
	out := make([][]int, len(f.vs))
	for i, e := range f.edges {
		out[e.from] = append(out[e.from], i)
	}
	const fresh, open, done = 0, 1, 2
	state := make([]uint8, len(f.vs))
	next := make([]int, len(f.vs)) // by vertex: number of visited edges
	var order []int
	walk := func(root int) {
		path := []int{root}
		state[root] = open
		for len(path) > 0 {
			v := path[len(path)-1]
			if next[v] == len(out[v]) {
				state[v] = done
				order = append(order, v)
				path = path[:len(path)-1]
				continue
			}
			e := &f.edges[out[v][next[v]]]
			next[v]++
			switch state[e.to] {
			case open:
				e.back = true
			case fresh:
				state[e.to] = open
				path = append(path, e.to)
			}
		}
	}
	for i := range f.vs {
		if f.isStart(i) {
			walk(i)
		}
	}
	for i := range f.vs {
		if state[i] == fresh {
			walk(i)
		}
	}
	slices.Reverse(order)
	return order
}

func (f *figure) isStart(i int) bool {
	return f.vs[i].kind == circle && net.ConditionID(f.vs[i].id) == f.n.Start()
}

func (f *figure) isEnd(i int) bool {
	return f.vs[i].kind == circle && net.ConditionID(f.vs[i].id) == f.n.End()
}

// span returns the minimum number of layers that an edge crosses. Text at an edge has its own layer.
func (e *edge) span() int {
	if len(e.text.lines) > 0 {
		return 2
	}
	return 1
}

// assignLayers puts every vertex as far left as its edges allow. Then vertices with more outgoing than incoming edges
// move to the right, and the others to the left, while that shortens the edges.
func (f *figure) assignLayers(order []int) {
	in, out := make([][]*edge, len(f.vs)), make([][]*edge, len(f.vs))
	for i := range f.edges {
		if e := &f.edges[i]; !e.back {
			in[e.to] = append(in[e.to], e)
			out[e.from] = append(out[e.from], e)
		}
	}
	last := 0
	for _, v := range order {
		f.vs[v].layer = f.leftmost(in[v])
		last = max(last, f.vs[v].layer)
	}
	for i := range f.vs {
		if f.isEnd(i) {
			f.vs[i].layer = last
		}
	}
	const rounds = 8
	for range rounds {
		moved := false
		for _, v := range slices.Backward(order) {
			if len(out[v]) > len(in[v]) && len(in[v]) > 0 {
				moved = f.move(v, f.rightmost(out[v])) || moved
			}
		}
		for _, v := range order {
			if len(in[v]) > len(out[v]) && len(out[v]) > 0 {
				moved = f.move(v, f.leftmost(in[v])) || moved
			}
		}
		if !moved {
			return
		}
	}
}

func (f *figure) move(v, layer int) bool {
	moved := f.vs[v].layer != layer
	f.vs[v].layer = layer
	return moved
}

func (f *figure) leftmost(in []*edge) int {
	layer := 0
	for _, e := range in {
		layer = max(layer, f.vs[e.from].layer+e.span())
	}
	return layer
}

func (f *figure) rightmost(out []*edge) int {
	layer := f.vs[out[0].to].layer - out[0].span()
	for _, e := range out[1:] {
		layer = min(layer, f.vs[e.to].layer-e.span())
	}
	return layer
}

// maxChains limits the layers that all edges pass in total. The edges of a net with 5000 elements can pass millions of
// layers, which takes long to lay out and is hard to read.
func maxChains(edges int) int { return max(20_000, 8*edges) }

// tear divides the longest edges if they pass too many layers in total, as if they led to another row.
func (f *figure) tear() {
	var byLength []int
	sum, most := 0, maxChains(len(f.edges))
	length := func(i int) int {
		e := &f.edges[i]
		d := f.vs[e.to].layer - f.vs[e.from].layer
		return max(d, -d)
	}
	for i := range f.edges {
		byLength = append(byLength, i)
		sum += length(i)
	}
	slices.SortStableFunc(byLength, func(a, b int) int { return length(b) - length(a) })
	for _, i := range byLength {
		if sum <= most {
			return
		}
		sum -= length(i)
		e := f.edges[i]
		f.edges[i] = f.leave(e, f.name(e.to))
		f.edges = append(f.edges, f.enter(e, f.name(e.from)))
	}
}

// addChains adds a dummy wherever an edge passes a layer, and divides the edge into segments there. A backward edge
// leaves its source to the right like any other, turns around, passes the layers of its source, of its target and all
// in between, and turns around again. A turn is a vertex in the next layer, which keeps both of its sides together.
//
//	layer   1      2      3      4
//	            .------.------.
//	       turn        |       turn
//	            '-> target ... source -'
func (f *figure) addChains() {
	for i := range f.edges {
		e := &f.edges[i]
		from, to := f.vs[e.from].layer, f.vs[e.to].layer
		if !e.back {
			before := e.from
			for l := from + 1; l < to; l++ {
				d := f.addDummy(e, l, l == from+1)
				f.segs = append(f.segs, segment{edge: i, from: before, to: d})
				before = d
			}
			f.segs = append(f.segs, segment{edge: i, from: before, to: e.to})
			continue
		}
		for l := from; l >= to; l-- {
			d := f.addDummy(e, l, l == from)
			if l < from {
				f.segs = append(f.segs, segment{edge: i, from: d, to: e.chain[len(e.chain)-2]})
			}
		}
		right, left := f.addTurn(from+1), f.addTurn(to-1)
		f.segs = append(f.segs,
			segment{edge: i, from: e.from, to: right, turning: true},
			segment{edge: i, from: e.chain[0], to: right, turning: true},
			segment{edge: i, from: left, to: e.to, turning: true},
			segment{edge: i, from: left, to: e.chain[len(e.chain)-1], turning: true})
	}
}

// addDummy adds a vertex to the chain of an edge, with the text of the edge if wanted.
func (f *figure) addDummy(e *edge, layer int, wanted bool) int {
	v := vertex{kind: dummy, layer: layer}
	if wanted && len(e.text.lines) > 0 {
		v.text, v.width, v.up, v.down = e.text, e.text.width+8, e.text.height()+4, 2
	}
	f.vs = append(f.vs, v)
	e.chain = append(e.chain, len(f.vs)-1)
	return len(f.vs) - 1
}

func (f *figure) addTurn(layer int) int {
	f.vs = append(f.vs, vertex{kind: turn, layer: layer})
	return len(f.vs) - 1
}

// index computes the layers and, by vertex, the segments.
func (f *figure) index() {
	last := 0
	for i := range f.vs {
		last = max(last, f.vs[i].layer)
	}
	f.layers = make([][]int, last+1)
	f.indexSegments()
}

func (f *figure) indexSegments() {
	f.left, f.right = make([][]int, len(f.vs)), make([][]int, len(f.vs))
	for i, s := range f.segs {
		f.right[s.from] = append(f.right[s.from], i)
		f.left[s.to] = append(f.left[s.to], i)
	}
}
