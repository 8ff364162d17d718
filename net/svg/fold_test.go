package svg

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// check finds what a picture in rows must not have: what [figure.check] finds in each of them, a row of several layers
// that is too wide, an element or a flow that is missing or there twice, and connectors that do not go together.
func (p *page) check() error {
	limit := p.whole.o.Width
	if limit == 0 {
		limit = defaultWidth
	}
	elements, flows, numbers := map[string]int{}, map[int]int{}, map[string][]string{}
	for i, f := range p.rows {
		if err := f.check(); err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
		if width := f.width() + 2*margin; limit > 0 && width > limit && f.spans() {
			return fmt.Errorf("row %d is %d wide, more than %d", i+1, width, limit)
		}
		for v := range f.vs {
			if at := &f.vs[v]; at.real() && at.kind != connector {
				elements[fmt.Sprint(at.kind, at.id)]++
			}
		}
		for _, e := range f.edges {
			flows[e.id]++
			if f.vs[e.to].kind == connector {
				number := f.vs[e.to].text.lines[0]
				numbers[number] = append(numbers[number], fmt.Sprintf("%d ends", e.id))
			}
			if f.vs[e.from].kind == connector {
				number := f.vs[e.from].text.lines[0]
				numbers[number] = append(numbers[number], fmt.Sprintf("%d begins", e.id))
			}
		}
	}
	for id := range p.whole.edges {
		if n := flows[id]; n != 1 && n != 2 {
			return fmt.Errorf("flow %d is there %d times", id, n)
		}
		delete(flows, id)
	}
	if len(elements) != len(p.whole.vs) || len(flows) > 0 {
		return fmt.Errorf("%d elements of %d are there, and flows that are none: %v", len(elements), len(p.whole.vs), flows)
	}
	for number, ends := range numbers {
		slices.Sort(ends)
		if len(ends) != 2 || ends[0][:len(ends[0])-len("begins")] != ends[1][:len(ends[1])-len("ends")] {
			return fmt.Errorf("the connectors %s are %v", number, ends)
		}
	}
	return nil
}

// spans reports whether a row has elements in several layers.
func (f *figure) spans() bool {
	layer := -1
	for i := range f.vs {
		if v := &f.vs[i]; v.real() && v.kind != connector {
			if layer >= 0 && layer != v.layer {
				return true
			}
			layer = v.layer
		}
	}
	return false
}

func (p *page) connectors() int {
	n := 0
	p.eachConnector(func(*vertex) { n++ })
	return n
}

func TestAWideNetIsDrawnInRows(t *testing.T) {
	n := chain(300, func(int, func(int, int)) {})
	p := folded(n, Options{})
	require.NoError(t, p.check())
	require.Greater(t, len(p.rows), 5)
	require.Equal(t, 2*(len(p.rows)-1), p.connectors(), "one flow is cut between two rows")
	width, _ := p.size()
	require.LessOrEqual(t, width+2*margin, 1800)
	for i, f := range p.rows[:len(p.rows)-1] {
		require.Greater(t, f.width(), 1500, "row %d is full", i+1)
	}
	require.Len(t, folded(n, Options{Width: -1}).rows, 1)
	require.Len(t, folded(chain(5, func(int, func(int, int)) {}), Options{}).rows, 1)
}

// Rows are broken where few flows are cut, and otherwise so that the upper ones are full.
func TestRowsBreakWhereFewFlowsAreCut(t *testing.T) {
	for name, test := range map[string]struct {
		cuts []int
		want [][2]int
	}{
		"equal":         {[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, [][2]int{{0, 6}, {6, 10}}},
		"fewer before":  {[]int{1, 1, 1, 1, 1, 4, 4, 4, 1, 0}, [][2]int{{0, 5}, {5, 10}}},
		"one more row":  {[]int{1, 1, 9, 9, 9, 9, 9, 1, 1, 0}, [][2]int{{0, 2}, {2, 8}, {8, 10}}},
		"not much less": {[]int{1, 2, 2, 2, 2, 2, 2, 2, 2, 0}, [][2]int{{0, 6}, {6, 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			bands := make([]band, len(test.cuts))
			for i, cuts := range test.cuts {
				bands[i] = band{first: i, last: i, width: 100, cuts: cuts}
			}
			require.Equal(t, test.want, breaks(bands, 740))
			require.Equal(t, [][2]int{{0, 10}}, breaks(bands, 1000))
		})
	}
}

// Regions keep their members and their tints in all rows.
func TestRegionsGoAcrossRows(t *testing.T) {
	d := chain(30, func(int, func(int, int)) {}).Definition()
	d.Tasks[2].Cancels = []string{"t3", "t28"}
	d.Tasks[29].Cancels = []string{"t27"}
	p := folded(net.MustCompile(d), Options{Width: 600})
	require.NoError(t, p.check())
	members := [2]int{}
	for _, f := range p.rows {
		for i := range members {
			members[i] += len(f.regions[i].members)
		}
	}
	require.Equal(t, [2]int{2, 1}, members)
}
