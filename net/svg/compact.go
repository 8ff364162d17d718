package svg

import "slices"

// gap returns the space between two vertices of a layer.
func gap(a, b *vertex) int {
	switch {
	case a.kind == connector && b.kind == connector:
		return 8
	case a.real() && b.real():
		return 26
	case a.real() || b.real():
		return 18
	}
	return 12
}

// minDistance returns the minimum distance between the heights of two neighbors in a layer.
func minDistance(above, under *vertex) int { return above.down + gap(above, under) + under.up }

// bond is the minimum distance of a block below another. A block is named by its root.
type bond struct{ above, under, distance int }

// blocks are the blocks of a view with the distances between them. Aligned edges never cross, so a block above another
// is nowhere below it, and there is an order from top to bottom.
type blocks struct {
	bonds        []bond
	above, under [][]int // by block: its bonds to the blocks above and below
	order        []int   // from top to bottom
	at           []int   // by block: its height
	pulls        [][]pull
	heights      []height // scratch
	centered     bool     // blocks prefer the middle of a range to their position in it
}

// compact returns the height of every vertex.
func (v *view) compact() []int {
	b := v.blocks()
	b.pulls = v.pulls()
	if v.fromUp {
		b.press()
	} else {
		b.lift()
	}
	b.relax()
	ys := make([]int, len(v.root))
	for i := range ys {
		ys[i] = b.at[v.root[i]] + v.shift[i]
	}
	return ys
}

// polish moves chains of vertices, which the mean has left level, to the middle of their successors and predecessors.
// So a task is in the middle of its branches, and unnecessary space between branches is removed.
func (f *figure) polish() {
	v := &view{f: f, root: make([]int, len(f.vs)), shift: make([]int, len(f.vs))}
	for i := range v.root {
		v.root[i] = i
	}
	for _, layer := range f.layers {
		for _, at := range layer {
			if len(f.left[at]) != 1 {
				continue
			}
			s := &f.segs[f.left[at][0]]
			level := f.vs[s.from].y+s.fromPort == f.vs[at].y+s.toPort
			if level && (len(f.right[s.from]) == 1 || f.vs[at].kind == dummy && f.vs[s.from].kind == dummy) {
				v.root[at] = v.root[s.from]
				v.shift[at] = v.shift[s.from] + s.fromPort - s.toPort
			}
		}
	}
	b := v.blocks()
	b.pulls, b.centered = v.pulls(), true
	for i := range b.at {
		b.at[i] = f.vs[i].y
	}
	b.relax()
	for i := range f.vs {
		f.vs[i].y = b.at[v.root[i]] + v.shift[i]
	}
}

func (v *view) blocks() *blocks {
	n := len(v.root)
	b := &blocks{above: make([][]int, n), under: make([][]int, n), at: make([]int, n)}
	waits := make([]int, n) // number of blocks above that were not placed yet
	for _, layer := range v.f.layers {
		for i := 1; i < len(layer); i++ {
			x, y := layer[i-1], layer[i]
			d := minDistance(&v.f.vs[x], &v.f.vs[y]) + v.shift[x] - v.shift[y]
			k := bond{above: v.root[x], under: v.root[y], distance: d}
			b.above[k.under] = append(b.above[k.under], len(b.bonds))
			b.under[k.above] = append(b.under[k.above], len(b.bonds))
			b.bonds = append(b.bonds, k)
			waits[k.under]++
		}
	}
	for i := range n {
		if v.root[i] == i && waits[i] == 0 {
			b.order = append(b.order, i)
		}
	}
	for i := 0; i < len(b.order); i++ {
		for _, k := range b.under[b.order[i]] {
			next := b.bonds[k].under
			if waits[next]--; waits[next] == 0 {
				b.order = append(b.order, next)
			}
		}
	}
	return b
}

// press moves every block as high as the blocks above it allow.
func (b *blocks) press() {
	for _, i := range b.order {
		if len(b.above[i]) > 0 {
			b.at[i] = b.ceiling(i)
		}
	}
}

// lift moves every block as low as the blocks below it allow.
func (b *blocks) lift() {
	for _, i := range slices.Backward(b.order) {
		if len(b.under[i]) > 0 {
			b.at[i] = b.floor(i)
		}
	}
}

// relax moves the blocks towards those to which they have edges, as far as their neighbors allow, several times down
// and up.
func (b *blocks) relax() {
	const rounds = 6
	for range rounds {
		for _, i := range slices.Backward(b.order) {
			b.moveTo(i, b.wanted(i))
		}
		for _, i := range b.order {
			b.moveTo(i, b.wanted(i))
		}
	}
}

func (b *blocks) moveTo(i, y int) {
	if len(b.under[i]) > 0 {
		y = min(y, b.floor(i))
	}
	if len(b.above[i]) > 0 {
		y = max(y, b.ceiling(i))
	}
	b.at[i] = y
}

// pull is an edge from a block to another, with the preferred distance.
type pull struct{ to, distance, weight int }

// wanted returns the height at which the edges of a block are shortest in total, which is the weighted median of the
// heights that each of them prefers. If that is a range, it is the nearest point of it.
func (b *blocks) wanted(i int) int {
	pulls := b.pulls[i]
	if len(pulls) == 0 {
		return b.at[i]
	}
	b.heights = b.heights[:0]
	sum := 0
	for _, p := range pulls {
		b.heights = append(b.heights, height{b.at[p.to] + p.distance, p.weight})
		sum += p.weight
	}
	slices.SortFunc(b.heights, func(x, y height) int { return x.y - y.y })
	low, high, before := 0, 0, 0
	for k, h := range b.heights {
		if 2*before < sum {
			low = h.y
		}
		before += h.weight
		if 2*before <= sum && k+1 < len(b.heights) {
			high = b.heights[k+1].y
		}
	}
	high = max(low, high)
	if b.centered {
		return b.snap(floorHalf(low + high))
	}
	return min(max(b.at[i], low), high)
}

// snap adjusts a height slightly if that makes an edge level: a bend of two pixels looks like a mistake.
func (b *blocks) snap(y int) int {
	const near = 4
	nearest, distance := y, near+1
	for _, h := range b.heights {
		if d := max(h.y-y, y-h.y); d < distance {
			nearest, distance = h.y, d
		}
	}
	return nearest
}

type height struct{ y, weight int }

// pulls returns the edges between blocks.
func (v *view) pulls() [][]pull {
	pulls := make([][]pull, len(v.root))
	for i := range v.f.segs {
		s := &v.f.segs[i]
		a, z := v.root[s.from], v.root[s.to]
		if a == z {
			continue
		}
		d := v.shift[s.from] + s.fromPort - v.shift[s.to] - s.toPort // how much lower z must be than a for a straight line
		w := v.f.weight(s)
		pulls[a] = append(pulls[a], pull{to: z, distance: -d, weight: w})
		pulls[z] = append(pulls[z], pull{to: a, distance: d, weight: w})
	}
	return pulls
}

// weight returns how important it is that a segment is level: more in the middle of a long edge than at its ends, and
// there more than between boxes.
func (f *figure) weight(s *segment) int {
	switch from, to := f.vs[s.from].kind == dummy, f.vs[s.to].kind == dummy; {
	case from && to:
		return 8
	case from || to:
		return 2
	}
	return 1
}

// ceiling returns the highest position of a block below the blocks above it, and floor the lowest above those below it.
func (b *blocks) ceiling(i int) int {
	first := b.bonds[b.above[i][0]]
	c := b.at[first.above] + first.distance
	for _, k := range b.above[i][1:] {
		c = max(c, b.at[b.bonds[k].above]+b.bonds[k].distance)
	}
	return c
}

func (b *blocks) floor(i int) int {
	first := b.bonds[b.under[i][0]]
	c := b.at[first.under] - first.distance
	for _, k := range b.under[i][1:] {
		c = min(c, b.at[b.bonds[k].under]-b.bonds[k].distance)
	}
	return c
}
