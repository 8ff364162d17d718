package svg

import "github.com/tasq-dev/tasq/net"

// legend explains the symbols in a picture, in lines below it.
type legend struct {
	items []item
	lines [][]int // items by line, after wrapping
	least int     // width of the widest item
}

// item is a symbol and its meaning.
type item struct {
	sign  func(p *pen, x, y int) // draws the symbol around a point
	text  block
	width int
}

func (it *item) height() int { return max(legendLine, it.text.height()+8) }

const (
	legendLine = 22
	signWidth  = 30
	itemGap    = 18
)

// legend returns the explanations that a picture needs: of joins and splits, regions and connectors.
func (g *page) legend() *legend {
	l := &legend{}
	if g.whole.o.NoLegend {
		return l
	}
	l.addGates(g.whole)
	l.addRegions(g.whole)
	l.addConnectors(g)
	return l
}

func (l *legend) addGates(f *figure) {
	used := map[net.Rule]bool{}
	for t := range f.n.NumTasks() {
		if f.joins(net.TaskID(t)) {
			used[f.n.Task(net.TaskID(t)).Join] = true
		}
		if f.splits(net.TaskID(t)) {
			used[f.n.Task(net.TaskID(t)).Split] = true
		}
	}
	for _, r := range []net.Rule{net.And, net.Xor, net.Or} {
		if used[r] {
			l.add(r.String()+"-join, -split", func(p *pen, x, y int) {
				p.put(`<path class="gate" fill="`, lineColor, `" d="`,
					ruleShape(r, x-8, y, true), ruleShape(r, x+8, y, false), `"/>`)
			})
		}
	}
}

func (l *legend) addRegions(f *figure) {
	for i := range f.regions {
		tint := i % len(tints)
		owner := f.written(f.n.TaskName(f.regions[i].owner))
		if owner == "" {
			owner = "the task with this cross"
		}
		l.add("canceled by "+owner, func(p *pen, x, y int) {
			p.put(`<rect class="tint`, tint, `" x="`, x-13, `" y="`, y-8, `" width="26" height="16" rx="5" opacity="0.3" fill="`,
				tints[tint], `"/>`)
		})
	}
}

func (l *legend) addConnectors(g *page) {
	sample := vertex{}
	g.eachConnector(func(v *vertex) {
		if sample.width == 0 {
			sample = *v
		}
	})
	if sample.width > 0 {
		l.add("a flow goes on where its number is once more", func(p *pen, x, y int) { writeConnector(p, &sample, x, y) })
	}
}

func (l *legend) add(text string, sign func(p *pen, x, y int)) {
	it := item{sign: sign, text: wrap(text, smallSize, 300)}
	it.width = signWidth + 6 + it.text.width
	l.items = append(l.items, it)
	l.least = max(l.least, it.width)
}

// wrap breaks the legend into lines.
func (l *legend) wrap(width int) {
	x := width + 1
	for i, it := range l.items {
		if x+itemGap+it.width > width {
			l.lines = append(l.lines, nil)
			x = -itemGap
		}
		last := len(l.lines) - 1
		l.lines[last] = append(l.lines[last], i)
		x += itemGap + it.width
	}
}

func (l *legend) height() int {
	sum := 0
	for i := range l.lines {
		sum += l.lineHeight(i)
	}
	if sum > 0 {
		sum += margin / 2
	}
	return sum
}

// lineHeight returns the height of the highest item of a line.
func (l *legend) lineHeight(line int) int {
	most := 0
	for _, i := range l.lines[line] {
		most = max(most, l.items[i].height())
	}
	return most
}

func (l *legend) write(p *pen, x, y int) {
	if len(l.lines) == 0 {
		return
	}
	p.put(`<g class="legend" text-anchor="start">`)
	for k, line := range l.lines {
		at, middle := x, y+l.lineHeight(k)/2
		for _, i := range line {
			it := &l.items[i]
			it.sign(p, at+signWidth/2, middle)
			p.text(&it.text, at+signWidth+6, middle-it.text.height()/2, "soft")
			at += it.width + itemGap
		}
		y += l.lineHeight(k)
	}
	p.put(`</g>`)
}
