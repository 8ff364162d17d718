package svg

import "slices"

// setPorts sets the points of every edge at its source and its target, so that edges that meet there do not cross
// again. From top to bottom these are: edges that turn around above the vertex, the nearest first; edges from or to the
// neighboring layer, in the order of their other ends; edges that turn around below, the nearest last.
func (f *figure) setPorts() {
	incoming, outgoing := make([][]port, len(f.vs)), make([][]port, len(f.vs))
	for i := range f.edges {
		e := &f.edges[i]
		first, last := e.to, e.from
		if len(e.chain) > 0 {
			first, last = e.chain[0], e.chain[len(e.chain)-1]
		}
		outgoing[e.from] = append(outgoing[e.from], f.port(e, i, e.from, first))
		incoming[e.to] = append(incoming[e.to], f.port(e, i, e.to, last))
	}
	f.starts, f.ends = make([]int, len(f.edges)), make([]int, len(f.edges))
	for v := range f.vs {
		f.spread(v, outgoing[v], f.starts)
		f.spread(v, incoming[v], f.ends)
	}
	for i := range f.segs {
		s := &f.segs[i]
		if e := &f.edges[s.edge]; !e.back { // the ends of the others are turns
			if s.from == e.from {
				s.fromPort = f.starts[s.edge]
			}
			if s.to == e.to {
				s.toPort = f.ends[s.edge]
			}
		}
	}
}

// port is an end of an edge at a vertex, with its sort keys.
type port struct{ edge, side, rank int }

func (f *figure) port(e *edge, i, at, other int) port {
	p := port{edge: i, rank: f.vs[other].pos}
	if e.back {
		distance := f.vs[other].pos - f.vs[at].pos
		if distance < 0 {
			return port{edge: i, side: -1, rank: -distance}
		}
		return port{edge: i, side: 1, rank: -distance}
	}
	return p
}

// spread sets the heights of the ports of one side of a vertex.
func (f *figure) spread(v int, ports []port, heights []int) {
	slices.SortStableFunc(ports, func(a, b port) int {
		if a.side != b.side {
			return a.side - b.side
		}
		return a.rank - b.rank
	})
	n := len(ports) - 1
	for i, p := range ports {
		if n > 0 {
			heights[p.edge] = (2*i - n) * f.portRoom(v, n) / (2 * n)
		}
	}
}

// portRoom returns the distance between the first and the last port, which have n gaps between them. Many edges at a
// circle share one port: that is easier to read, and it does not matter by which arc a token arrived.
func (f *figure) portRoom(v, n int) int {
	switch {
	case f.vs[v].kind == box:
		return pitch * n
	case f.vs[v].kind == circle && n < 3:
		return 9 * n
	}
	return 0
}
