package svg

import (
	"math"
	"strconv"
)

// A net that is too wide for one row is divided between its layers. Each row is laid out as its own figure. A flow
// between rows is divided: it ends in a connector after its source and continues from a connector before its target,
// both with the same number.
//
//	row 1    a -> b -> [1]
//	row 2    [1] -> c -> d

// page is a picture with its rows, from top to bottom.
type page struct {
	whole *figure // with the layers of the elements, but no further layout
	rows  []*figure
}

const (
	defaultWidth  = 1800
	rowGap        = 40 // between the rows
	connectorRoom = 70 // minimum space for connectors at an end of a row
)

// The costs of rows: of each divided flow, of each row, and of the free space in every row but the last, in proportion
// to its width.
const (
	cutCost  = 100
	rowCost  = 300
	roomCost = 300
)

// layOut sets the position of every vertex.
func layOut(f *figure) *page {
	f.assignLayers(f.findLoops())
	p := &page{whole: f}
	p.fold()
	p.number()
	return p
}

// fold creates the rows. The breaks are chosen by estimated widths of the bands, which are at most the actual widths.
// If a row turns out to be wider, its bands are estimated again, until all rows fit.
func (p *page) fold() {
	f, limit := p.whole, p.whole.o.Width
	switch {
	case limit == 0:
		limit = defaultWidth
	case limit < 0:
		limit = math.MaxInt
	}
	bands := f.bands()
	made := make(map[[2]int]*figure)
	for fits := false; !fits; {
		fits = true
		p.rows = p.rows[:0]
		for _, r := range breaks(bands, limit-2*margin) {
			if made[r] == nil {
				made[r] = f.row(bands[r[0]].first, bands[r[1]-1].last)
				made[r].place()
			}
			p.rows = append(p.rows, made[r])
			if width := made[r].width() + 2*margin; width > limit && r[1]-r[0] > 1 {
				grow(bands[r[0]:r[1]], width)
				fits = false
			}
		}
	}
}

// grow increases the widths of bands in equal proportion to a given total.
func grow(bands []band, wanted int) {
	sum := 0
	for _, b := range bands {
		sum += b.width
	}
	for i := range bands {
		bands[i].width = (bands[i].width*wanted + sum - 1) / sum
	}
}

// band is a layer with elements, with the following ones that have only texts of flows. Rows are divided between bands.
type band struct {
	first, last int // layers
	width       int // estimated, with the space to the previous band
	cuts        int // number of edges across its right border
}

// bands returns the bands of the whole net, with their minimum widths.
func (f *figure) bands() []band {
	last := 0
	for i := range f.vs {
		last = max(last, f.vs[i].layer)
	}
	widest := make([]int, last+1) // by layer; 0 for one without elements
	for i := range f.vs {
		l := f.vs[i].layer
		widest[l] = max(widest[l], f.vs[i].width)
	}
	cuts := f.cuts(last + 1)
	var bands []band
	for l, width := range widest {
		if width > 0 {
			bands = append(bands, band{first: l})
		}
		b := &bands[len(bands)-1]
		b.last, b.cuts = l, cuts[l]
		b.width += channel(0) + headRoom + width
	}
	bands[0].width -= channel(0)
	return bands
}

// breaks returns the rows with the least total cost, each as its first band and the one after its last. Of equal
// choices it takes the one with longer upper rows.
func breaks(bands []band, limit int) [][2]int {
	n := len(bands)
	cost, next := make([]int, n+1), make([]int, n) // of the rows from a band on, and where the second of them begins
	for from := n - 1; from >= 0; from-- {
		width := 0
		if from > 0 {
			width = connectorRoom
		}
		for to := from; to < n; to++ {
			b := &bands[to]
			width += b.width
			if width > limit && to > from {
				break
			}
			if to < n-1 && width > limit-connectorRoom && to > from {
				continue
			}
			c := rowCost + cutCost*b.cuts + cost[to+1]
			if to < n-1 {
				c += max(limit-width, 0) / (max(limit, 0)/roomCost + 1)
			}
			if next[from] == 0 || c <= cost[from] {
				cost[from], next[from] = c, to+1
			}
		}
	}
	var rows [][2]int
	for from := 0; from < n; from = next[from] {
		rows = append(rows, [2]int{from, next[from]})
	}
	return rows
}

// cuts returns, by layer, the number of edges across the border between it and the next.
func (f *figure) cuts(layers int) []int {
	cuts := make([]int, layers)
	for _, e := range f.edges {
		a, b := f.vs[e.from].layer, f.vs[e.to].layer
		cuts[min(a, b)]++
		cuts[max(a, b)]--
	}
	for l := 1; l < layers; l++ {
		cuts[l] += cuts[l-1]
	}
	return cuts
}

// row returns the figure of some layers. Edges that leave them are divided.
func (f *figure) row(from, to int) *figure {
	r := &figure{n: f.n, o: f.o, all: len(f.edges)}
	at := make([]int, len(f.vs))
	for i, v := range f.vs {
		at[i] = -1
		if v.layer >= from && v.layer <= to {
			at[i] = len(r.vs)
			r.vs = append(r.vs, v)
		}
	}
	for i, e := range f.edges {
		cut := edge{id: i, from: at[e.from], to: at[e.to], text: e.text, back: e.back, flow: e.flow}
		switch {
		case cut.from >= 0 && cut.to >= 0:
			r.edges = append(r.edges, cut)
		case cut.from >= 0:
			r.edges = append(r.edges, r.leave(cut, f.name(e.to)))
		case cut.to >= 0:
			r.edges = append(r.edges, r.enter(cut, f.name(e.from)))
		}
	}
	for _, whole := range f.regions {
		part := region{owner: whole.owner, members: make(map[int]bool)}
		for v := range whole.members {
			if at[v] >= 0 {
				part.members[at[v]] = true
			}
		}
		r.regions = append(r.regions, part)
	}
	return r
}

// leave makes an edge end in a connector, and enter makes it begin in one. The connector shows the name of the other
// end.
func (f *figure) leave(e edge, other string) edge {
	to := f.addConnector(e.id, f.vs[e.from].layer+e.span(), "goes on to "+f.label(other))
	f.vs[to].in = 1
	return edge{id: e.id, from: e.from, to: to, text: e.text, flow: e.flow}
}

func (f *figure) enter(e edge, other string) edge {
	from := f.addConnector(e.id, f.vs[e.to].layer-1, "comes from "+f.label(other))
	f.vs[from].out = 1
	return edge{id: e.id, from: from, to: e.to, torn: true, flow: e.flow}
}

// addConnector adds a connector that is wide enough for any number.
func (f *figure) addConnector(id, layer int, tip string) int {
	const high = smallSize + 6
	width := textWidth(strconv.Itoa(f.all), smallSize) + 12
	f.vs = append(f.vs, vertex{kind: connector, id: id, tip: tip, layer: layer, width: width,
		up: high / 2, down: high - high/2})
	return len(f.vs) - 1
}

// closeUp removes the layers of a row without elements and edges, and numbers the others from 0.
func (f *figure) closeUp() {
	first, last := f.vs[0].layer, f.vs[0].layer
	for i := range f.vs {
		first, last = min(first, f.vs[i].layer), max(last, f.vs[i].layer)
	}
	used := make([]bool, last-first+1)
	for i := range f.vs {
		used[f.vs[i].layer-first] = true
	}
	for _, e := range f.edges {
		a, b := f.vs[e.from].layer-first, f.vs[e.to].layer-first
		for l := min(a, b); l < max(a, b); l++ {
			used[l] = true
		}
	}
	at, next := make([]int, len(used)), 0
	for l := range used {
		at[l] = next
		if used[l] {
			next++
		}
	}
	for i := range f.vs {
		f.vs[i].layer = at[f.vs[i].layer-first]
	}
}

// number assigns numbers to divided flows, in the reading order of their first ends.
func (p *page) number() {
	numbers := make(map[int]int)
	p.eachConnector(func(v *vertex) {
		if v.in > 0 {
			numbers[v.id] = len(numbers) + 1
		}
	})
	p.eachConnector(func(v *vertex) { v.text = wrap(strconv.Itoa(numbers[v.id]), smallSize, v.width) })
}

func (p *page) eachConnector(do func(v *vertex)) {
	for _, f := range p.rows {
		for _, layer := range f.layers {
			for _, i := range layer {
				if v := &f.vs[i]; v.kind == connector {
					do(v)
				}
			}
		}
	}
}

// width returns the width of a row, without margins.
func (f *figure) width() int { return f.columns[len(f.columns)-1].right + f.tail }

// size returns the size of all rows, without margins and legend.
func (p *page) size() (width, height int) {
	for _, f := range p.rows {
		width = max(width, f.width())
		height += f.height + rowGap
	}
	return width, height - rowGap
}
