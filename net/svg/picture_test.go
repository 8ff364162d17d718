package svg

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/bpmn"
	"github.com/tasq-dev/tasq/net/pnml"
	"github.com/tasq-dev/tasq/net/yawl"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// nightly asks for the heavier form of the tests.
var nightly = testsize.Nightly()

// rect is the room that a vertex takes, with all its text.
type rect struct{ left, top, right, bottom int }

func (r rect) meets(o rect) bool {
	return r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom
}

func (r rect) holds(x, y int) bool { return r.left < x && x < r.right && r.top < y && y < r.bottom }

func (f *figure) rect(i int) rect {
	v := &f.vs[i]
	return rect{f.x(i) - v.width/2, v.y - v.up, f.x(i) + (v.width+1)/2, v.y + v.down}
}

// check finds what a picture must not have: boxes or texts that overlap, an edge through a box or a text that is not
// its own, something outside of the picture, and text that is cut or does not fit.
func (f *figure) check() error {
	width := f.columns[len(f.columns)-1].right
	for l, layer := range f.layers {
		for k, i := range layer {
			r := f.rect(i)
			room := rect{f.columns[l].left, 0, min(f.columns[l].right, width) + 1, f.height}
			if r.left < room.left || r.right > room.right || r.top < room.top || r.bottom > room.bottom {
				return fmt.Errorf("%q is at %v, outside of its column %v", f.name(i), r, f.columns[l])
			}
			if k > 0 && r.meets(f.rect(layer[k-1])) {
				return fmt.Errorf("%q at %v overlaps %q at %v", f.name(i), r, f.name(layer[k-1]), f.rect(layer[k-1]))
			}
		}
		if l > 0 && f.columns[l].left < f.columns[l-1].right {
			return fmt.Errorf("column %d begins in column %d", l, l-1)
		}
	}
	for i := range f.edges {
		if err := f.checkEdge(i); err != nil {
			return err
		}
	}
	return f.checkText()
}

func (f *figure) checkEdge(i int) error {
	e := &f.edges[i]
	w := f.route(i)
	if x, y := w.at(); x != f.x(e.to)-f.reach(e.to, f.ends[i]) || y != f.vs[e.to].y+f.ends[i] {
		return fmt.Errorf("the edge from %q ends at %d %d and not at %q", f.name(e.from), x, y, f.name(e.to))
	}
	if last := len(w.steps) - 1; last < 0 || w.steps[last].curve || w.y < 0 {
		return fmt.Errorf("the edge from %q to %q does not end in a straight line: %v", f.name(e.from), f.name(e.to), w.steps)
	}
	x, y := w.x, w.y
	for _, s := range w.steps {
		const parts = 24
		for k := 0; k <= parts; k++ {
			atX, atY := s.point(x, y, k, parts)
			if v := f.hit(atX, atY); v >= 0 && v != e.from && v != e.to {
				return fmt.Errorf("the edge from %q to %q runs through %q at %d %d",
					f.name(e.from), f.name(e.to), f.name(v), atX, atY)
			}
			if atY < 0 || atY > f.height || atX < -f.tail || atX > f.columns[len(f.columns)-1].right+f.tail {
				return fmt.Errorf("the edge from %q to %q leaves the picture at %d %d",
					f.name(e.from), f.name(e.to), atX, atY)
			}
		}
		x, y = s.x, s.y
	}
	return nil
}

// point is a point of a step that begins at x, y.
func (s *step) point(x, y, k, parts int) (int, int) {
	if !s.curve {
		return x + (s.x-x)*k/parts, s.y
	}
	bezier := func(a, b, c, d int) int {
		m := parts - k
		return (a*m*m*m + 3*b*m*m*k + 3*c*m*k*k + d*k*k*k) / (parts * parts * parts)
	}
	return bezier(x, s.x1, s.x2, s.x), bezier(y, s.y1, s.y2, s.y)
}

// hit is the vertex at a point, -1 for none. Passing points are lines, so they are none, and neither is the text at
// one, which stands above its own line.
func (f *figure) hit(x, y int) int {
	l, _ := slices.BinarySearchFunc(f.columns, x, func(c column, x int) int { return c.right - x })
	if l == len(f.columns) || x < f.columns[l].left {
		return -1
	}
	for _, i := range f.layers[l] {
		if f.rect(i).holds(x, y) && !(f.vs[i].kind == dummy && y >= f.vs[i].y) {
			return i
		}
	}
	return -1
}

func (f *figure) checkText() error {
	for i := range f.vs {
		v := &f.vs[i]
		for _, b := range []*block{&v.text, &v.more} {
			for _, line := range b.lines {
				if textWidth(line, b.size) > v.width {
					return fmt.Errorf("%q is wider than its box", line)
				}
			}
		}
		if name := f.name(i); v.kind == box || v.kind == circle {
			if err := checkShown(&v.text, f.written(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkShown checks that a text is there as a whole, or cut with an ellipsis and as a whole where one points at it.
func checkShown(b *block, text string) error {
	tight := func(s string) string { return strings.ReplaceAll(clean(s), " ", "") }
	shown, whole := tight(strings.Join(b.lines, "")), tight(text)
	if begin, cut := strings.CutSuffix(shown, "…"); b.whole != "" {
		if !cut || !strings.HasPrefix(whole, begin) || tight(b.whole) != whole || len(b.lines) > maxLines {
			return fmt.Errorf("%q is cut to %q, and %q is all of it", whole, shown, b.whole)
		}
	} else if shown != whole {
		return fmt.Errorf("%q is shown as %q", whole, shown)
	}
	return nil
}

// laidOut is a figure that is ready to be written, in a single row.
func laidOut(n *net.Net, o Options) *figure {
	o.Width = -1
	return folded(n, o).rows[0]
}

func folded(n *net.Net, o Options) *page { return layOut(newFigure(n, &o)) }

// busyDay marks a net with all there is.
func busyDay(n *net.Net) Options {
	o := Options{Marking: make(net.Marking, n.NumConditions()), Busy: net.NewBits(n.NumTasks())}
	o.Flows = make(map[[2]string]string)
	for c := range o.Marking {
		o.Marking[c] = int32(c % 7)
	}
	for t := range n.NumTasks() {
		if t%3 == 0 {
			o.Busy.Add(t)
		}
	}
	for i, fl := range n.Definition().Flows {
		if i%2 == 0 {
			o.Flows[[2]string{fl.From, fl.To}] = "if it is number " + fmt.Sprint(i)
		}
	}
	return o
}

func checkAll(t *testing.T, where string, ds []*net.Definition) (crossings int) {
	for _, d := range ds {
		n, err := net.Compile(d)
		if err != nil {
			continue // it is no net
		}
		f := laidOut(n, Options{})
		require.NoError(t, f.check(), "%s: %s", where, d.Name)
		require.NoError(t, folded(n, Options{}).check(), "%s: %s, in rows", where, d.Name)
		if len(f.vs) < 200 || nightly {
			require.NoError(t, laidOut(n, busyDay(n)).check(), "%s: %s, marked", where, d.Name)
		}
		crossings += f.crossings
	}
	return crossings
}

// some leaves each third file of a list, or each twelfth with -short. The nightly form has all of them.
func some(files []modeltest.File) []modeltest.File {
	every := testsize.Pick(12, 3, 1)
	var list []modeltest.File
	for i := 0; i < len(files); i += every {
		list = append(list, files[i])
	}
	return list
}

func TestPicturesOfPublishedNets(t *testing.T) {
	t.Run("pnml", func(t *testing.T) {
		files := some(modeltest.Files(t, "ibm-a-b1.tar.gz", ".pnml"))
		crossings := 0
		for _, file := range files {
			r, err := pnml.Decode(strings.NewReader(file.Data), pnml.Options{})
			require.NoError(t, err)
			crossings += checkAll(t, file.Base(), r.Definitions())
		}
		require.Less(t, crossings, 2*len(files), "two crossings a picture")
	})
	t.Run("yawl", func(t *testing.T) {
		for _, file := range some(modeltest.Files(t, "yawl.tar.gz", ".yawl", ".ywl", ".xml")) {
			r, err := yawl.Decode(strings.NewReader(file.Data), yawl.Options{})
			require.NoError(t, err)
			checkAll(t, file.Base(), r.Definitions())
		}
	})
	t.Run("bpmn", func(t *testing.T) {
		for _, file := range some(modeltest.Files(t, "bpmn.tar.gz", ".bpmn")) {
			r, err := bpmn.Decode(strings.NewReader(file.Data), bpmn.Options{})
			require.NoError(t, err)
			checkAll(t, file.Base(), r.Definitions())
		}
	})
}

// drawnNet is a chain of tasks and conditions with flows across it in all directions, so that every element is on a
// path from the start to the end.
func drawnNet(t *rapid.T) *net.Net {
	size := rapid.IntRange(1, 25).Draw(t, "size")
	gate := rapid.SampledFrom([]net.Rule{net.And, net.Xor, net.Or})
	d := &net.Definition{Name: rapid.String().Draw(t, "title")}
	d.Conditions = []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}}
	flow := func(from, to string) { d.Flows = append(d.Flows, net.Flow{From: from, To: to}) }
	task := func(i int) string { return fmt.Sprintf("%st%d", strings.Repeat("long-", i%7), i) }
	flow("i", task(0))
	for i := range size {
		d.Tasks = append(d.Tasks, net.Task{Name: task(i), Kind: net.Kind(rapid.IntRange(0, 2).Draw(t, "kind")),
			Join: gate.Draw(t, "join"), Split: gate.Draw(t, "split"), Of: []string{"another"}})
		next := "o"
		if i+1 < size {
			next = task(i + 1)
		}
		if next != "o" && rapid.Bool().Draw(t, "explicit") {
			c := fmt.Sprintf("condition %d", i)
			d.Conditions = append(d.Conditions, net.Condition{Name: c})
			flow(task(i), c)
			flow(c, next)
		} else {
			flow(task(i), next)
		}
	}
	pick := func(what string) string { return task(rapid.IntRange(0, size-1).Draw(t, what)) }
	for range rapid.IntRange(0, size).Draw(t, "extra") {
		flow(pick("from"), pick("to"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "ends") {
		flow(pick("from"), "o")
	}
	for range rapid.IntRange(0, 3).Draw(t, "regions") {
		owner := rapid.IntRange(0, size-1).Draw(t, "owner")
		d.Tasks[owner].Cancels = append(d.Tasks[owner].Cancels, pick("member"))
		f := rapid.SampledFrom(d.Flows).Draw(t, "member")
		if isCondition(d, f.From) || isCondition(d, f.To) {
			continue
		}
		d.Tasks[owner].Cancels = append(d.Tasks[owner].Cancels, net.ImplicitName(f.From, f.To))
	}
	for i := range d.Tasks {
		if d.Tasks[i].Kind != net.Composite {
			d.Tasks[i].Of = nil
		}
	}
	n, err := net.Compile(d)
	if err != nil {
		t.Fatalf("the test draws nets that are none: %v", err)
	}
	return n
}

func isCondition(d *net.Definition, name string) bool {
	return slices.ContainsFunc(d.Conditions, func(c net.Condition) bool { return c.Name == name })
}

func TestPicturesOfRandomNets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawnNet(t)
		require.NoError(t, laidOut(n, Options{}).check())
		require.NoError(t, laidOut(n, busyDay(n)).check())
		narrow := busyDay(n)
		narrow.Width = rapid.IntRange(1, 1500).Draw(t, "width")
		require.NoError(t, folded(n, narrow).check())
	})
}

// No edge that leads forward is called one that leads back, or the other way round, and the layers agree with that.
func TestOnlyLoopsLeadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := laidOut(drawnNet(t), Options{})
		for _, e := range f.edges {
			from, to := f.vs[e.from].layer, f.vs[e.to].layer
			require.Equal(t, e.back, from >= to)
		}
	})
}

// The order of the layers is counted twice: by the tree, and pair by pair.
func TestCrossingsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{}
		f := newFigure(drawnNet(t), &o)
		f.assignLayers(f.findLoops())
		bands := f.bands()
		f = f.row(0, bands[len(bands)-1].last)
		f.tear()
		f.closeUp()
		f.addChains()
		f.index()
		f.sortLayers()
		pairs := 0
		for i, a := range f.segs {
			for _, b := range f.segs[:i] {
				if f.vs[a.from].layer == f.vs[b.from].layer &&
					(f.vs[a.from].pos-f.vs[b.from].pos)*(f.vs[a.to].pos-f.vs[b.to].pos) < 0 {
					pairs++
				}
			}
		}
		require.Equal(t, pairs, f.crossings)
	})
}

// chain is a net of so many tasks in a row, with more flows.
func chain(size int, more func(i int, flow func(from, to int))) *net.Net {
	d := &net.Definition{Name: "chain"}
	d.Conditions = []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}}
	name := func(i int) string { return fmt.Sprintf("t%d", i) }
	d.Flows = []net.Flow{{From: "i", To: name(0)}, {From: name(size - 1), To: "o"}}
	flow := func(from, to int) { d.Flows = append(d.Flows, net.Flow{From: name(from), To: name(to)}) }
	for i := range size {
		d.Tasks = append(d.Tasks, net.Task{Name: name(i), Join: net.Xor, Split: net.Xor})
		if i > 0 {
			flow(i-1, i)
		}
		more(i, flow)
	}
	return net.MustCompile(d)
}

// Large nets are drawn too, those of the nightly form with thousands of elements. What would pass too many layers is torn.
func TestLargeNets(t *testing.T) {
	size := 400
	if nightly {
		size = 5000
	}
	tests := map[string]struct {
		more func(i int, flow func(from, to int))
		torn bool
	}{
		"a row":      {more: func(int, func(int, int)) {}},
		"short cuts": {more: func(i int, flow func(int, int)) { flow(max(0, i-2-i*7919%20), i) }},
		"loops":      {more: func(i int, flow func(int, int)) { flow(i, max(0, i-i*7919%30)) }},
		"to the end": {more: func(i int, flow func(int, int)) { flow(i/2, size-1) }, torn: true},
		"far back":   {more: func(i int, flow func(int, int)) { flow(i, i*7919%(i+1)) }, torn: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := chain(size, test.more)
			f := laidOut(n, Options{})
			require.NoError(t, f.check())
			require.Less(t, len(f.vs), 4*size+2*maxChains(size))
			notes := 0
			for i := range f.vs {
				if f.vs[i].kind == connector {
					notes++
				}
			}
			require.Equal(t, test.torn, notes > 0)
			p := folded(n, Options{})
			require.NoError(t, p.check())
			require.NoError(t, p.write(io.Discard))
		})
	}
}
