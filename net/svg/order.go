package svg

import "slices"

// Limits for sorting: the vertices that all sweeps visit in total, the sweeps from each initial order, and those
// without improvement. So small nets get all useful sweeps, and large ones terminate.
const (
	maxEffort = 3_000_000
	maxSweeps = 32
	maxIdle   = 10
)

// sortLayers orders the vertices of each layer so that few edges cross. It starts from several orders that follow the
// flows, and sweeps over the layers; the result is the best order found.
func (f *figure) sortLayers() {
	s := newSorter(f)
	sweeps := min(maxSweeps, max(2, maxEffort/(len(f.vs)+1)))
	for _, begin := range []func(){s.deep(false), s.deep(true), s.wide()} {
		begin()
		s.consider()
		for i, idle := 0, 0; i < sweeps && idle < maxIdle && s.crossings > 0; i++ {
			s.sweep(i)
			if idle++; s.consider() {
				idle = 0
			}
		}
		if s.crossings == 0 || sweeps*3*len(f.vs) > maxEffort {
			break
		}
	}
	for l := range f.layers {
		f.layers[l] = s.best[l]
	}
	f.crossings = s.crossings
	f.number()
}

// number sets the position of every vertex, and sorts its segments by those of their other ends.
func (f *figure) number() {
	for _, layer := range f.layers {
		for i, v := range layer {
			f.vs[v].pos = i
		}
	}
	for v := range f.vs {
		slices.SortStableFunc(f.left[v], func(a, b int) int { return f.vs[f.segs[a].from].pos - f.vs[f.segs[b].from].pos })
		slices.SortStableFunc(f.right[v], func(a, b int) int { return f.vs[f.segs[a].to].pos - f.vs[f.segs[b].to].pos })
	}
}

// sorter searches an order of the vertices in their layers.
type sorter struct {
	f           *figure
	left, right [][]int // by vertex: its neighbors in the layers before and after
	layers      [][]int
	pos         []int
	value       []int // scratch, by vertex
	tree        []int // scratch, for counting
	best        [][]int
	crossings   int // of best; -1 before there is one
}

func newSorter(f *figure) *sorter {
	n := len(f.vs)
	s := &sorter{f: f, left: make([][]int, n), right: make([][]int, n), pos: make([]int, n), value: make([]int, n),
		layers: make([][]int, len(f.layers)), best: make([][]int, len(f.layers)), crossings: -1}
	for _, e := range f.segs {
		s.right[e.from] = append(s.right[e.from], e.to)
		s.left[e.to] = append(s.left[e.to], e.from)
	}
	return s
}

// deep starts with the order of a depth-first search, so that branches stay together. With reverse, it takes the last
// neighbor first.
func (s *sorter) deep(reverse bool) func() {
	return func() {
		s.clear()
		seen := make([]bool, len(s.pos))
		for root := range s.pos {
			stack := []int{root}
			for len(stack) > 0 {
				v := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if seen[v] {
					continue
				}
				seen[v] = true
				s.append(v)
				next := slices.Concat(s.right[v], s.left[v])
				if !reverse {
					slices.Reverse(next)
				}
				stack = append(stack, next...)
			}
		}
	}
}

// wide starts with the order of a breadth-first search.
func (s *sorter) wide() func() {
	return func() {
		s.clear()
		seen := make([]bool, len(s.pos))
		for root := range s.pos {
			if seen[root] {
				continue
			}
			seen[root] = true
			for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
				v := queue[0]
				s.append(v)
				for _, w := range slices.Concat(s.right[v], s.left[v]) {
					if !seen[w] {
						seen[w] = true
						queue = append(queue, w)
					}
				}
			}
		}
	}
}

func (s *sorter) clear() {
	for l := range s.layers {
		s.layers[l] = s.layers[l][:0]
	}
}

func (s *sorter) append(v int) {
	l := s.f.vs[v].layer
	s.pos[v] = len(s.layers[l])
	s.layers[l] = append(s.layers[l], v)
}

// consider keeps the current order if it is the best so far, and reports whether it is.
func (s *sorter) consider() bool {
	sum := 0
	for l := range len(s.layers) - 1 {
		sum += s.count(l)
		if s.crossings >= 0 && sum >= s.crossings {
			return false
		}
	}
	s.crossings = sum
	for l := range s.layers {
		s.best[l] = append(s.best[l][:0], s.layers[l]...)
	}
	return true
}

// count returns the crossings between a layer and the next: of the segments that begin above a segment, those that end
// below it. A Fenwick tree counts the ends.
func (s *sorter) count(l int) int {
	size := len(s.layers[l+1])
	if cap(s.tree) < size+1 {
		s.tree = make([]int, 2*size+1)
	}
	tree := s.tree[:size+1]
	clear(tree)
	sum, ends := 0, 0
	for _, v := range s.layers[l] {
		for _, w := range s.right[v] { // segments of one vertex do not cross each other, so all are counted before any is added
			sum += ends - prefix(tree, s.pos[w]+1)
		}
		for _, w := range s.right[v] {
			for i := s.pos[w] + 1; i <= size; i += i & -i {
				tree[i]++
			}
			ends++
		}
	}
	return sum
}

func prefix(tree []int, i int) int {
	sum := 0
	for ; i > 0; i -= i & -i {
		sum += tree[i]
	}
	return sum
}
