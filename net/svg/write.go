package svg

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

const margin = 16 // around the picture

// write writes the whole document.
func (g *page) write(w io.Writer) error {
	buffer := bufio.NewWriter(w)
	p := &pen{w: buffer}
	legend := g.legend()
	wide, high := g.size()
	wide = max(wide, legend.least)
	legend.wrap(wide)
	g.whole.head(p, wide+2*margin, high+2*margin+legend.height())
	opacity := g.whole.opacity()
	top := margin
	for _, f := range g.rows {
		p.put(`<g transform="translate(`, margin, ` `, top, `)">`)
		f.writeRow(p, opacity)
		p.put(`</g>`)
		top += f.height + rowGap
	}
	legend.write(p, margin, high+2*margin)
	p.put(`</g>`)
	p.put(`</svg>`)
	if p.err != nil {
		return p.err
	}
	return buffer.Flush()
}

func (f *figure) writeRow(p *pen, opacity string) {
	for i := range f.regions {
		if len(f.regions[i].members) > 0 {
			f.writeRegion(p, i, opacity)
		}
	}
	f.writeFlows(p)
	for v := range f.vs {
		f.writeVertex(p, v)
	}
}

// head writes the beginning: sizes, title and description, style and background. The ids are made of the title, as a
// page may hold several pictures.
func (f *figure) head(p *pen, width, height int) {
	title := f.o.Title
	if title == "" {
		title = f.label(f.n.Name())
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, title+"\x00"+f.n.Name()) // a hash never fails
	id := fmt.Sprintf("net-%08x", hash.Sum32())
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" class="tasq-net" width="`, width, `" height="`, height,
		`" viewBox="0 0 `, width, ` `, height, `" role="`, f.role(), `" aria-labelledby="`, id, `-title `, id, `-desc">`)
	p.put(`<title id="`, id, `-title">`, escape(title), `</title>`)
	p.put(`<desc id="`, id, `-desc">`, escape(f.describe()), `</desc>`)
	if !f.o.NoStyle {
		p.put(`<style>`, style, `</style>`)
	}
	p.put(`<rect class="bg" width="`, width, `" height="`, height, `" rx="6" fill="`, bgColor, `"/>`)
	p.put(`<g font-family="Helvetica, Arial, 'Liberation Sans', sans-serif" text-anchor="middle" fill="`, inkColor, `">`)
}

// role is what the picture is to assistive technology: an image, which hides what is inside, unless there are links in it.
func (f *figure) role() string {
	for t := range f.n.NumTasks() {
		if f.o.Marks[f.n.TaskName(net.TaskID(t))].Href != "" {
			return "group"
		}
	}
	return "img"
}

// describe summarizes the picture in words.
func (f *figure) describe() string {
	conditions := 0
	for c := range f.n.NumConditions() {
		if !f.n.Implicit(net.ConditionID(c)) {
			conditions++
		}
	}
	s := fmt.Sprintf("Workflow %s from %s to %s: %s, %s", f.n.Name(), f.n.ConditionName(f.n.Start()),
		f.n.ConditionName(f.n.End()), count(f.n.NumTasks(), "task"), count(conditions, "condition"))
	if len(f.regions) > 0 {
		s += ", " + count(len(f.regions), "cancellation region")
	}
	var marked, busy []string
	for c, tokens := range f.o.Marking {
		if tokens > 0 && c < f.n.NumConditions() {
			marked = append(marked, f.n.ConditionName(net.ConditionID(c)))
		}
	}
	for t := range f.n.NumTasks() {
		if f.busy(t) {
			busy = append(busy, f.n.TaskName(net.TaskID(t)))
		}
	}
	if len(marked) > 0 {
		s += "; tokens in " + strings.Join(marked, ", ")
	}
	if len(busy) > 0 {
		s += "; busy: " + strings.Join(busy, ", ")
	}
	return s + "."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// writeFlows writes the arrows, and above them what is written at them.
func (f *figure) writeFlows(p *pen) {
	p.put(`<g class="flow" fill="none" stroke="`, lineColor, `" stroke-width="1.4">`)
	var heads strings.Builder
	atX, atY, move := 0, 0, "M"
	for i := range f.edges {
		w := f.route(i)
		of := &f.edges[i].flow
		p.put(`<path d="`, w.data(), `"`, f.data("from", of.from), f.data("to", of.to), f.o.Arrows[[2]string{of.from, of.to}].rest())
		x, y := w.at()
		fmt.Fprintf(&heads, "%s%d %dl-8-4v8z", move, x-atX, y-atY)
		atX, atY, move = x, y, "m"
	}
	p.put(`</g>`)
	p.put(`<path class="head" fill="`, lineColor, `" d="`, heads.String(), `"/>`)
	f.writeBeads(p)
	for i := range f.vs {
		if v := &f.vs[i]; v.kind == dummy && len(v.text.lines) > 0 {
			p.text(&v.text, f.x(i), v.y-v.up+1, "soft")
		}
	}
}

// rest is the rest of the path of an arrow: its width and its tooltip.
func (a Arrow) rest() string {
	width := ""
	if a.Width > 0 {
		width = fmt.Sprintf(` stroke-width="%d"`, min(a.Width, widest))
	}
	if a.Title == "" {
		return width + `/>`
	}
	return width + `><title>` + escape(a.Title) + `</title></path>`
}

// widest is the greatest width of an arrow: that of its head where the line ends.
const widest = 4

// data is an attribute with a name of the net, unless the picture is to have none.
func (f *figure) data(attribute, name string) string {
	if f.o.NoData {
		return ""
	}
	return ` data-` + attribute + `="` + escape(name) + `"`
}

// writeBeads writes the tokens that lie on arrows, see [Options].Steady.
func (f *figure) writeBeads(p *pen) {
	if !f.o.Steady {
		return
	}
	for i := range f.edges {
		e := &f.edges[i]
		c := e.flow.condition
		if !e.flow.implicit || e.torn || f.tokens(int(c)) == 0 {
			continue
		}
		x, y := f.route(i).middle()
		f.openCondition(p, c, x, y)
		p.put(`<circle class="circle" r="`, beadSize, `" fill="`, bgColor, `" stroke="`, lineColor, `" stroke-width="1.4"/>`)
		writeTokens(p, int(f.tokens(int(c))), beadSize)
		p.put(`</g>`)
	}
}

// data is the way as SVG writes paths. The line ends inside the head, whose tip is the way's end. All but its beginning
// is relative, so that flows of the same shape have the same text, which compresses well.
func (w *way) data() string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", w.x, w.y)
	x, y := w.x, w.y
	for i, s := range w.steps {
		switch {
		case s.curve:
			fmt.Fprintf(&b, "c%d %d %d %d %d %d", s.x1-x, s.y1-y, s.x2-x, s.y2-y, s.x-x, s.y-y)
		case i == len(w.steps)-1:
			fmt.Fprintf(&b, "h%d", s.x-4-x)
		default:
			fmt.Fprintf(&b, "h%d", s.x-x)
		}
		x, y = s.x, s.y
	}
	return b.String()
}

// opacity is that of the areas: the more of them lie on one another somewhere, the less can each of them take. That is
// at elements, as an area holds a flow only with both its ends.
func (f *figure) opacity() string {
	most := 2
	covered := make(map[int]int)
	for _, r := range f.regions {
		for v := range r.members {
			covered[v]++
			most = max(most, covered[v])
		}
	}
	return fmt.Sprintf("0.%02d", max(6, 44/most))
}

// writeRegion writes the area of a region as one shape: its border is drawn first, and what is inside over it.
func (f *figure) writeRegion(p *pen, i int, opacity string) {
	tint := i % len(tints)
	slabs := f.slabs(&f.regions[i], i%4)
	name := f.n.TaskName(f.regions[i].owner)
	p.put(`<g class="region" opacity="`, opacity, `"><title>`,
		escape("canceled when "+f.label(name)+" completes"), `</title>`)
	for _, border := range []bool{true, false} {
		if border {
			p.put(`<g class="edge`, tint, `" fill="none" stroke="`, tints[tint], `" stroke-width="3">`)
		} else {
			p.put(`<g class="tint`, tint, `" fill="`, tints[tint], `">`)
		}
		for k := range slabs {
			s := &slabs[k]
			p.put(`<rect x="`, s.left, `" y="`, s.top, `" width="`, s.right-s.left, `" height="`, s.bottom-s.top,
				`" rx="9"/>`)
			for _, j := range s.joined {
				p.put(`<path d="`, f.bridge(s, &slabs[j]).data(), `"/>`)
			}
		}
		p.put(`</g>`)
	}
	p.put(`</g>`)
}

func (b bridge) data() string {
	half := (b.right - b.left) / 2
	return fmt.Sprintf("M%d %dH%dC%d %d %d %d %d %dH%dV%dH%dC%d %d %d %d %d %dH%dz",
		b.fromX, b.top, b.left, b.left+half, b.top, b.right-half, b.toTop, b.right, b.toTop, b.toX,
		b.toBottom, b.right, b.right-half, b.toBottom, b.left+half, b.bottom, b.left, b.bottom, b.fromX)
}
