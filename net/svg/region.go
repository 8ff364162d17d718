package svg

import (
	"maps"
	"slices"
)

// growRegions adds the dummies of edges between two members of a region, so that the area of the region follows its
// edges.
func (f *figure) growRegions() {
	if len(f.regions) == 0 {
		return
	}
	out := make([][]int, len(f.vs))
	for i, e := range f.edges {
		out[e.from] = append(out[e.from], i)
	}
	for k := range f.regions {
		r := &f.regions[k]
		for _, v := range r.sorted(f) {
			for _, i := range out[v] {
				if e := &f.edges[i]; r.members[e.to] {
					for _, d := range e.chain {
						r.members[d] = true
					}
				}
			}
		}
	}
}

// sorted lists the members by layer and position.
func (r *region) sorted(f *figure) []int {
	return slices.SortedFunc(maps.Keys(r.members), func(a, b int) int {
		x, y := &f.vs[a], &f.vs[b]
		if x.layer != y.layer {
			return x.layer - y.layer
		}
		return x.pos - y.pos
	})
}

// slab is a part of a region's area: members in one layer without other elements between them.
type slab struct {
	layer                    int
	left, top, right, bottom int
	joined                   []int // slabs in the next layer that are connected by an edge
}

// slabs returns the parts of a region's area. Areas of several regions around the same members are nested.
func (f *figure) slabs(r *region, nesting int) []slab {
	pad := max(2, 8-2*nesting)
	var list []slab
	members := r.sorted(f)
	of := make(map[int]int, len(members)) // by member: its slab
	for i, v := range members {
		if i == 0 || !f.together(members[i-1], v) {
			y := f.vs[v].y
			list = append(list, slab{layer: f.vs[v].layer, left: f.x(v), right: f.x(v), top: y, bottom: y})
		}
		list[len(list)-1].add(&f.vs[v], f.x(v), pad)
		of[v] = len(list) - 1
	}
	for _, v := range members {
		for _, s := range f.right[v] {
			if to := f.segs[s].to; r.members[to] {
				list[of[v]].join(of[to])
			}
		}
	}
	return list
}

// together reports whether two members in one layer have only dummies between them.
func (f *figure) together(above, under int) bool {
	a, b := &f.vs[above], &f.vs[under]
	if a.layer != b.layer {
		return false
	}
	return !slices.ContainsFunc(f.layers[a.layer][a.pos+1:b.pos], func(v int) bool { return f.vs[v].real() })
}

func (s *slab) join(other int) {
	if !slices.Contains(s.joined, other) {
		s.joined = append(s.joined, other)
	}
}

func (s *slab) add(v *vertex, x, pad int) {
	s.left, s.right = min(s.left, x-v.width/2-pad), max(s.right, x+(v.width+1)/2+pad)
	s.top, s.bottom = min(s.top, v.y-v.up-pad), max(s.bottom, v.y+v.down+pad)
}

// bridge is the area between two connected slabs.
type bridge struct {
	fromX, left, right, toX int
	top, bottom             int // on the left
	toTop, toBottom         int // on the right
}

func (f *figure) bridge(a, b *slab) bridge {
	return bridge{
		fromX: (a.left + a.right) / 2, toX: (b.left + b.right) / 2,
		left: f.columns[a.layer].right, right: f.columns[b.layer].left,
		top: a.top, bottom: a.bottom, toTop: b.top, toBottom: b.bottom,
	}
}
