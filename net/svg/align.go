package svg

import "slices"

// Heights are assigned by the method of Brandes and Köpf: each vertex is aligned with its median neighbor in the next
// layer, as long as those lines do not cross. Aligned vertices are a block, which gets one height, and blocks are
// placed as close together as sizes allow. That is done four times, for neighbors to the left and to the right, from
// the top and from the bottom, and the result is the mean of the middle two of the four heights. Each of the four keeps
// the order and the distances, and so does their mean.
//
// There are three additions. A block is straight along its edges from port to port, so each of its vertices has a shift
// within the block. Blocks are compacted by longest paths in their graph, since the compaction of the paper can make
// vertices overlap. Before and after the mean is computed, blocks move towards the blocks to which they have edges,
// since the method alone places them anywhere in the free space.

// view is one of the four directions of alignment.
type view struct {
	f      *figure
	toLeft bool // vertices are aligned with neighbors to the left
	fromUp bool // from top to bottom
	root   []int
	next   []int // in the block, as a cycle
	shift  []int // of a vertex relative to the root of its block
}

// setHeights sets the y of every vertex.
func (f *figure) setHeights() {
	crossed := f.conflicts()
	var all [4][]int
	best := 0
	for i := range all {
		v := &view{f: f, toLeft: i&1 == 0, fromUp: i&2 == 0}
		v.align(crossed)
		all[i] = v.compact()
		if f.extent(all[i]).size() < f.extent(all[best]).size() {
			best = i
		}
	}
	within := f.extent(all[best])
	for i := range all {
		e := f.extent(all[i])
		move := within.top - e.top
		if i&2 != 0 {
			move = within.bottom - e.bottom
		}
		for v := range all[i] {
			all[i][v] += move
		}
	}
	for v := range f.vs {
		ys := []int{all[0][v], all[1][v], all[2][v], all[3][v]}
		slices.Sort(ys)
		f.vs[v].y = floorHalf(ys[1] + ys[2])
	}
	f.polish()
	f.moveToTop()
}

// floorHalf rounds down for negative numbers too, so that rounding never reduces distances.
func floorHalf(sum int) int { return sum >> 1 }

// extent returns the size of a picture with these heights.
func (f *figure) extent(ys []int) extent {
	e := extent{top: int(^uint(0) >> 1), bottom: -int(^uint(0)>>1) - 1}
	for _, layer := range f.layers {
		if len(layer) > 0 {
			first, last := layer[0], layer[len(layer)-1]
			e.top = min(e.top, ys[first]-f.vs[first].up)
			e.bottom = max(e.bottom, ys[last]+f.vs[last].down)
		}
	}
	return e
}

type extent struct{ top, bottom int }

func (e extent) size() int { return e.bottom - e.top }

func (f *figure) moveToTop() {
	ys := make([]int, len(f.vs))
	for v := range f.vs {
		ys[v] = f.vs[v].y
	}
	e := f.extent(ys)
	for v := range f.vs {
		f.vs[v].y -= e.top
	}
	f.height = e.size()
}

// conflicts marks the segments that cross a segment between two dummies, since straight long edges have precedence over
// short ones.
func (f *figure) conflicts() []bool {
	crossed := make([]bool, len(f.segs))
	for l := 1; l < len(f.layers); l++ {
		layer := f.layers[l]
		low, done := -1, 0 // positions in the previous layer; vertices up to done are processed
		for i, v := range layer {
			inner := f.innerLeft(v)
			if inner < 0 && i < len(layer)-1 {
				continue
			}
			high := len(f.layers[l-1])
			if inner >= 0 {
				high = f.vs[inner].pos
			}
			for ; done <= i; done++ {
				for _, s := range f.left[layer[done]] {
					if p := f.vs[f.segs[s].from].pos; (p < low || p > high) && !f.inner(s) {
						crossed[s] = true
					}
				}
			}
			low = high
		}
	}
	return crossed
}

// inner reports whether a segment connects two dummies.
func (f *figure) inner(s int) bool {
	return f.vs[f.segs[s].from].kind == dummy && f.vs[f.segs[s].to].kind == dummy
}

// innerLeft returns the dummy to the left of a dummy, or -1.
func (f *figure) innerLeft(v int) int {
	if len(f.left[v]) == 1 && f.inner(f.left[v][0]) {
		return f.segs[f.left[v][0]].from
	}
	return -1
}

// align forms the blocks.
func (v *view) align(crossed []bool) {
	n := len(v.f.vs)
	v.root, v.next, v.shift = make([]int, n), make([]int, n), make([]int, n)
	for i := range n {
		v.root[i], v.next[i] = i, i
	}
	for l := range v.f.layers {
		if !v.toLeft {
			l = len(v.f.layers) - 1 - l
		}
		v.alignLayer(l, crossed)
	}
}

func (v *view) alignLayer(l int, crossed []bool) {
	layer := v.f.layers[l]
	taken := -1 // the last position in the neighboring layer that is aligned
	if !v.fromUp {
		taken = len(v.f.vs)
	}
	for i := range layer {
		if !v.fromUp {
			i = len(layer) - 1 - i
		}
		at := layer[i]
		for _, s := range v.middle(at) {
			other, shift := v.across(s)
			pos := v.f.vs[other].pos
			free := v.fromUp && pos > taken || !v.fromUp && pos < taken
			if v.next[at] != at || crossed[s] || !free {
				continue
			}
			v.next[other] = at
			v.root[at] = v.root[other]
			v.next[at] = v.root[at]
			v.shift[at] = v.shift[other] + shift
			taken = pos
		}
	}
}

// middle returns the segments to the median neighbors, one or two, in the order in which they are tried.
func (v *view) middle(at int) []int {
	segs := v.f.right[at]
	if v.toLeft {
		segs = v.f.left[at]
	}
	n := len(segs)
	switch {
	case n == 0:
		return nil
	case n%2 == 1:
		return segs[n/2 : n/2+1]
	case v.fromUp:
		return segs[n/2-1 : n/2+1]
	}
	return []int{segs[n/2], segs[n/2-1]}
}

// across returns the other end of a segment, and how much lower a vertex must be than that to make the segment
// straight.
func (v *view) across(s int) (other, shift int) {
	seg := &v.f.segs[s]
	if v.toLeft {
		return seg.from, seg.fromPort - seg.toPort
	}
	return seg.to, seg.toPort - seg.fromPort
}
