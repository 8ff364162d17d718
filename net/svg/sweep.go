package svg

import "slices"

// sweep visits all layers, alternately to the right and to the left. It sorts each layer by the positions of neighbors
// in the layer before, and then transposes adjacent vertices as long as that removes crossings.
func (s *sorter) sweep(round int) {
	last := len(s.layers) - 1
	keepTies := round/2%2 == 0
	if round%2 == 0 {
		for l := 1; l <= last; l++ {
			s.sort(l, s.left, keepTies)
		}
	} else {
		for l := last - 1; l >= 0; l-- {
			s.sort(l, s.right, keepTies)
		}
	}
	s.transpose(round%4 != 3)
}

// sort orders a layer by the mean position of the neighbors. Vertices without neighbors keep their positions, and the
// others are sorted around them. Vertices with equal means keep their order, or are reversed, by which a sweep leaves a
// local minimum.
func (s *sorter) sort(l int, neighbors [][]int, keepTies bool) {
	layer := s.layers[l]
	var bound []int
	for _, v := range layer {
		if ns := neighbors[v]; len(ns) > 0 {
			sum := 0
			for _, w := range ns {
				sum += s.pos[w]
			}
			s.value[v] = sum * 1024 / len(ns)
			bound = append(bound, v)
		}
	}
	if !keepTies {
		slices.Reverse(bound)
	}
	slices.SortStableFunc(bound, func(a, b int) int { return s.value[a] - s.value[b] })
	next := 0
	for i, v := range layer {
		if len(neighbors[v]) > 0 {
			layer[i] = bound[next]
			next++
		}
	}
	for i, v := range layer {
		s.pos[v] = i
	}
}

// transpose swaps adjacent vertices of a layer where that removes crossings, until nothing changes or the effort is
// used up. If loose, it also swaps them where the number of crossings stays the same: from such an order, others with
// fewer may be reachable.
func (s *sorter) transpose(loose bool) {
	const rounds = 10
	changed := make([]bool, len(s.layers))
	for i := range changed {
		changed[i] = true
	}
	for range rounds {
		swapped := false
		for l := range s.layers {
			near := changed[l] || l > 0 && changed[l-1] || l+1 < len(changed) && changed[l+1]
			if !near {
				continue
			}
			if changed[l] = s.transposeLayer(l, loose); changed[l] {
				swapped = true
			}
		}
		if !swapped {
			return
		}
	}
}

func (s *sorter) transposeLayer(l int, loose bool) bool {
	layer := s.layers[l]
	for _, v := range layer {
		s.sortByPos(s.left[v])
		s.sortByPos(s.right[v])
	}
	changed := false
	for i := range len(layer) - 1 {
		a, b := layer[i], layer[i+1]
		now := s.cross(s.left[a], s.left[b]) + s.cross(s.right[a], s.right[b])
		if now == 0 {
			continue
		}
		then := s.cross(s.left[b], s.left[a]) + s.cross(s.right[b], s.right[a])
		if then < now || loose && then == now {
			layer[i], layer[i+1] = b, a
			s.pos[a], s.pos[b] = i+1, i
			changed = true
		}
	}
	return changed
}

func (s *sorter) sortByPos(ns []int) {
	if len(ns) > 1 {
		slices.SortFunc(ns, func(a, b int) int { return s.pos[a] - s.pos[b] })
	}
}

// cross counts the crossings between the edges of a vertex and those of the vertex below it: the pairs of end positions
// in which the one of the upper vertex is below the other. Both lists are sorted.
func (s *sorter) cross(above, under []int) int {
	sum, smaller := 0, 0
	for _, a := range above {
		for smaller < len(under) && s.pos[under[smaller]] < s.pos[a] {
			smaller++
		}
		sum += smaller
	}
	return sum
}

// dropTurns removes the turns from the layers, where they only serve the order and take no room, and layers that become
// empty.
func (f *figure) dropTurns() {
	isTurn := func(v int) bool { return f.vs[v].kind == turn }
	for l := range f.layers {
		f.layers[l] = slices.DeleteFunc(f.layers[l], isTurn)
	}
	for len(f.layers[len(f.layers)-1]) == 0 {
		f.layers = f.layers[:len(f.layers)-1]
	}
	f.segs = slices.DeleteFunc(f.segs, func(s segment) bool { return s.turning })
	f.indexSegments()
	f.number()
}
