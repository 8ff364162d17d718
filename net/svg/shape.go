package svg

import (
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

func (f *figure) writeVertex(p *pen, i int) {
	v := &f.vs[i]
	switch v.kind {
	case circle, bead:
		f.writeCondition(p, i)
	case box:
		f.writeTask(p, i)
	case connector:
		writeConnector(p, v, f.x(i), v.y)
	}
}

// writeCondition writes a circle with its content: tokens, or else the symbols of the start and the end.
func (f *figure) writeCondition(p *pen, i int) {
	v := &f.vs[i]
	tokens, r := f.tokens(v.id), v.up
	f.openCondition(p, net.ConditionID(v.id), f.x(i), v.y)
	class, stroke, thick := "circle", lineColor, "1.4"
	switch {
	case f.isStart(i):
		class, stroke, thick = "circle start", startColor, "2"
	case f.isEnd(i):
		class, stroke, thick = "circle end", endColor, "2"
	}
	p.put(`<circle class="`, class, `" r="`, r, `" fill="`, bgColor, `" stroke="`, stroke, `" stroke-width="`, thick, `"/>`)
	switch {
	case tokens > 0:
		writeTokens(p, int(tokens), r)
	case f.isStart(i):
		p.put(`<path class="startmark" fill="`, startColor, `" d="M-5-7l12 7l-12 7z"/>`)
	case f.isEnd(i):
		p.put(`<rect class="endmark" fill="`, endColor, `" x="-5" y="-5" width="10" height="10"/>`)
	}
	p.text(&v.text, 0, r+3, "soft")
	p.put(`</g>`)
}

// openCondition begins the group of a condition around a point. What is in a group is written from there, so that elements
// of the same shape have the same text, which compresses well.
func (f *figure) openCondition(p *pen, c net.ConditionID, x, y int) {
	p.put(`<g class="condition"`, f.data("name", f.n.ConditionName(c)), ` transform="translate(`, x, ` `, y, `)"><title>`,
		escape(f.tipOf(c)), `</title>`)
}

// writeConnector writes a label with the number of a flow.
func writeConnector(p *pen, v *vertex, x, y int) {
	p.put(`<g class="connector"><title>`, escape(v.tip), `</title><rect class="plate" x="`, x-v.width/2, `" y="`, y-v.up,
		`" width="`, v.width, `" height="`, v.up+v.down, `" rx="3" fill="`, greyColor, `"/>`)
	p.text(&v.text, x, y-v.text.height()/2, "")
	p.put(`</g>`)
}

func (f *figure) tipOf(c net.ConditionID) string {
	tip := "condition " + f.n.ConditionName(c)
	switch c {
	case f.n.Start():
		tip = "start condition " + f.n.ConditionName(c)
	case f.n.End():
		tip = "end condition " + f.n.ConditionName(c)
	}
	if tokens := f.tokens(int(c)); tokens > 0 {
		tip += ": " + count(int(tokens), "token")
	}
	return tip
}

// writeTokens writes up to four dots as on a die, or a larger number as text, into a circle around the origin.
func writeTokens(p *pen, tokens, r int) {
	d, dot := 2*r/5, r/5+1
	places := [...][][2]int{1: {{0, 0}}, 2: {{-d, 0}, {d, 0}}, 3: {{-d, d - 1}, {d, d - 1}, {0, -d}},
		4: {{-d, -d}, {d, -d}, {-d, d}, {d, d}}}
	if tokens >= len(places) {
		text := strconv.Itoa(tokens)
		size := min(13, 3*r/(len(text)+1)+1)
		p.put(`<text class="token" x="0" y="`, size/3+1, `" font-size="`, size, `" font-weight="bold">`, text,
			`</text>`)
		return
	}
	for _, at := range places[tokens] {
		p.put(`<circle class="token" cx="`, at[0], `" cy="`, at[1], `" r="`, dot, `" fill="`, inkColor, `"/>`)
	}
}

// writeTask writes a box with its strips, its name, and the colors of its cancellation region. Its group begins at the
// corner of the box.
func (f *figure) writeTask(p *pen, i int) {
	v := &f.vs[i]
	t := net.TaskID(v.id)
	task := f.n.Task(t)
	high := v.up + v.down
	mark := f.o.Marks[task.Name]
	f.openTask(p, t, mark, f.x(i)-v.width/2, v.y-v.up)
	class, fill, stroke, thick := "box", bgColor, lineColor, "1.4"
	if task.Kind == net.Routing {
		class, fill = "grey", greyColor
	}
	if f.busy(v.id) {
		class, fill, stroke, thick = "busy", busyBox, busyColor, "2.4"
	}
	left, right := 0, v.width
	p.put(`<rect class="`, class, `" width="`, v.width, `" height="`, high, `" rx="3" fill="`, fill, `" stroke="`, stroke,
		`" stroke-width="`, thick, `"/>`)
	if f.joins(t) {
		writeRule(p, task.Join, left, high, true)
		left += strip
	}
	if f.splits(t) {
		writeRule(p, task.Split, right-strip, high, false)
		right -= strip
	}
	if task.Kind == net.Composite {
		p.put(`<rect class="`, class, ` inner" x="`, left+3, `" y="3" width="`, right-left-6, `" height="`, high-6,
			`" rx="2" fill="none" stroke="`, stroke, `"/>`)
	}
	middle := (left + right) / 2
	top := v.up - (v.text.height()+v.more.height())/2
	p.text(&v.text, middle, top, "")
	p.text(&v.more, middle, top+v.text.height(), "soft")
	if f.busy(v.id) {
		p.put(`<circle class="busymark" cx="`, v.width, `" cy="0" r="5" fill="`, busyColor, `"/>`)
	}
	f.writeBadge(p, t)
	writePill(p, mark.Badge, v.width)
	p.put(`</g>`)
	if mark.Href != "" {
		p.put(`</a>`)
	}
}

// openTask begins the group of a task at a point, in a link if its mark has one.
func (f *figure) openTask(p *pen, t net.TaskID, mark Mark, x, y int) {
	class, tip := "task", f.tip(t)
	if mark.Class != "" {
		class += " " + mark.Class
	}
	if mark.Title != "" {
		tip = mark.Title
	}
	if mark.Href != "" {
		p.put(`<a href="`, escape(mark.Href), `">`)
	}
	p.put(`<g class="`, escape(class), `"`, f.data("name", f.n.Task(t).Name), ` transform="translate(`, x, ` `, y, `)"><title>`,
		escape(tip), `</title>`)
}

// writePill writes the text of a mark around the upper right corner of a box, which is so wide.
func writePill(p *pen, text string, x int) {
	if text == "" {
		return
	}
	b := wrap(text, smallSize, 90)
	b.lines = b.lines[:min(len(b.lines), 1)]
	wide := b.width + 10
	p.put(`<g class="badge"><rect fill="`, inkColor, `" x="`, x-wide+8, `" y="-9" width="`, wide, `" height="17" rx="8"/>`,
		`<g fill="`, bgColor, `" font-weight="bold">`)
	p.text(&b, x-wide/2+8, -7, "")
	p.put(`</g></g>`)
}

// writeBadge writes a mark on a task that cancels, in the color of its region.
func (f *figure) writeBadge(p *pen, t net.TaskID) {
	for i := range f.regions {
		if f.regions[i].owner == t {
			tint := i % len(tints)
			p.put(`<g stroke="`, bgColor, `" stroke-width="1.6"><circle class="tint`, tint, `" r="7" fill="`, tints[tint],
				`"/><path d="M-3-3l6 6m0-6l-6 6"/></g>`)
		}
	}
}

// tip returns the tooltip of a task.
func (f *figure) tip(t net.TaskID) string {
	task := f.n.Task(t)
	kinds := [...]string{net.Atomic: "task ", net.Routing: "routing task ", net.Composite: "composite task "}
	parts := []string{kinds[min(task.Kind, net.Composite)] + task.Name}
	if task.Kind == net.Composite && len(task.Of) > 0 {
		parts = append(parts, "runs "+strings.Join(task.Of, ", "))
	}
	if f.joins(t) {
		parts = append(parts, task.Join.String()+"-join")
	}
	if f.splits(t) {
		parts = append(parts, task.Split.String()+"-split")
	}
	if len(task.Cancels) > 0 {
		parts = append(parts, "cancels "+strings.Join(task.Cancels, ", "))
	}
	if f.busy(int(t)) {
		parts = append(parts, "busy")
	}
	return strings.Join(parts, "; ")
}

// writeRule writes the strip of a join or a split, with the height of its box: a triangle that points to the box for
// and, one that points away from it for xor, and a diamond for or.
func writeRule(p *pen, r net.Rule, x, high int, left bool) {
	line := x // between the strip and the box
	if left {
		line += strip
	}
	p.put(`<path class="strip" fill="`, stripColor, `" d="M`, x+2, ` 2h`, strip-4, `v`, high-4, `h`, 4-strip, `z"/>`)
	p.put(`<path class="flow" stroke="`, lineColor, `" stroke-width="1.4" d="M`, line, ` 0v`, high, `"/>`)
	p.put(`<path class="gate" fill="`, lineColor, `" d="`, ruleShape(r, x+strip/2, high/2, left), `"/>`)
}

// ruleShape returns the symbol of a rule around a point.
func ruleShape(r net.Rule, x, y int, left bool) string {
	at := "M" + strconv.Itoa(x) + " " + strconv.Itoa(y)
	switch {
	case r == net.Or:
		return at + "m-6 0l6-8l6 8l-6 8z"
	case (r == net.And) == left: // the tip is on the right
		return at + "m-4-7l9 7l-9 7z"
	}
	return at + "m4-7l-9 7l9 7z"
}
