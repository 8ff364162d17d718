package view

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Sizes of the chart, in pixels.
const (
	chartWidth = 1100
	chartLeft  = 170
	chartRow   = 22
	chartRows  = 40
)

// lane is a row of the chart: the attempts of one piece of work, the oldest first.
type lane []*store.ItemRow

// lanesOf groups items, the newest first, by the attempts that follow one another, and returns at most so many lanes, the one that began last at the end.
func lanesOf(items []*store.ItemRow, most int) (lanes []lane) {
	of := make(map[workitem.ID]int)
	for _, it := range items {
		i, known := of[it.Successor]
		if !known || it.Successor.IsZero() {
			if len(lanes) == most {
				continue
			}
			i = len(lanes)
			lanes = append(lanes, nil)
		}
		of[it.ID] = i
		lanes[i] = append(lanes[i], it)
	}
	for _, l := range lanes {
		slices.Reverse(l)
	}
	slices.SortStableFunc(lanes, func(a, b lane) int { return bytes.Compare(a[0].ID[:], b[0].ID[:]) }) // ids are in the order of creation
	return lanes
}

// chart is a chart under construction.
type chart struct {
	b              strings.Builder
	from, now, end time.Time // end is after now if something is due by then
}

// gantt draws when items waited and were worked on, the attempts of one piece of work in a row. The table has the same data.
func gantt(items []*store.ItemRow, from, ended, now time.Time) template.HTML {
	lanes := lanesOf(items, chartRows)
	c := &chart{from: from, now: now}
	if !ended.IsZero() {
		c.now = ended
	}
	drawn, first := 0, c.now
	for _, l := range lanes {
		drawn += len(l)
		if l[0].Created.Before(first) {
			first = l[0].Created
		}
	}
	if drawn < len(items) || drawn == maxRows { // there are older ones
		c.from = first
	}
	c.end = c.horizon(lanes)
	x, whole, high := c.x, c.end.Sub(c.from), 24+chartRow*len(lanes)
	label := counted(drawn, "work item")
	if c.end.After(c.now) {
		high += 14
	}
	b := &c.b
	fmt.Fprintf(b, `<svg width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%s over time">`, chartWidth, high, label)
	for step, at := stepOf(whole), time.Duration(0); at <= whole; at += step {
		left, anchor := x(c.from.Add(at)), "middle"
		if left > chartWidth-60 {
			anchor = "end"
		}
		fmt.Fprintf(b, `<path class="line" d="M%d 18V%d"/><text class="axis" x="%d" y="12" text-anchor="%s">+%s</text>`, left, high, left, anchor, axisTime(at))
	}
	if c.end.After(c.now) {
		fmt.Fprintf(b, `<path class="axisline" d="M%d 18V%d"/><text class="axis" x="%d" y="%d">now</text>`, x(c.now), high, x(c.now)+4, high-2)
	}
	for i, l := range lanes {
		c.lane(l, 24+chartRow*i)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // all texts are escaped
}

// horizon returns where the axis ends: at the last due time of what is to come, but at most half as far away as the beginning.
func (c *chart) horizon(lanes []lane) time.Time {
	whole := max(c.now.Sub(c.from), time.Millisecond)
	end := c.from.Add(whole)
	for _, l := range lanes {
		if it := l[len(l)-1]; c.comes(it) && it.Due.After(end) {
			end = it.Due
		}
	}
	if most := c.from.Add(whole + whole/2); end.After(most) {
		return most
	}
	return end
}

// comes reports whether an item is not due yet.
func (c *chart) comes(it *store.ItemRow) bool {
	return it.State == workitem.Initialized && it.Due.After(c.now)
}

// x is the place of a time.
func (c *chart) x(t time.Time) int {
	whole, right := c.end.Sub(c.from), 20
	if c.end.After(c.now) {
		right = 110 // for when it is due
	}
	return chartLeft + int(float64(chartWidth-chartLeft-right)*float64(min(max(t.Sub(c.from), 0), whole))/float64(whole))
}

// steps are round times between two marks.
var steps = func() (all []time.Duration) {
	for unit := 100 * time.Microsecond; unit < time.Second; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	for _, unit := range []time.Duration{time.Second, time.Minute} {
		all = append(all, unit, 2*unit, 5*unit, 10*unit, 15*unit, 30*unit)
	}
	all = append(all, time.Hour, 2*time.Hour, 3*time.Hour, 6*time.Hour, 12*time.Hour)
	for day := 24 * time.Hour; day < 100*365*24*time.Hour; day *= 10 {
		all = append(all, day, 2*day, 5*day)
	}
	return all
}()

// stepOf returns the shortest of the steps of which at most six fit into the whole.
func stepOf(whole time.Duration) time.Duration {
	for _, step := range steps {
		if whole/step <= 6 {
			return step
		}
	}
	return max(whole, 1)
}

// axisTime writes the time at a mark, which is a multiple of a step, exactly.
func axisTime(d time.Duration) string {
	if d < time.Minute {
		return d.String()
	}
	return printable.Duration(d)
}

// lane draws a row: its attempts, and after each how it ended.
func (c *chart) lane(l lane, y int) {
	label := printable.Brief([]byte(l[len(l)-1].Label()), 22)
	fmt.Fprintf(&c.b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartLeft-10, y+14, template.HTMLEscapeString(printable.Line(label)))
	for _, it := range l {
		c.attempt(it, y)
	}
	free := chartWidth - 14 // up to where a sign covers no later one
	for _, it := range slices.Backward(l) {
		at := min(c.x(it.Ended)+4, chartWidth-14)
		if it.Ended.IsZero() || it.Started.IsZero() || at > free {
			continue
		}
		fmt.Fprintf(&c.b, `<text class="axis" x="%d" y="%d"%s>%s</text>`, at, y+14, halo, sign(it.State.String()))
		free = at - 14
	}
	c.due(l[len(l)-1], y)
}

// halo separates a text from what it is written on.
const halo = ` stroke="var(--card)" stroke-width="3" paint-order="stroke"`

// due marks when the next attempt is due.
func (c *chart) due(it *store.ItemRow, y int) {
	if !c.comes(it) {
		return
	}
	at, words := c.x(it.Due), "due in "+printable.Took(it.Due.Sub(c.now))
	if it.Due.After(c.end) {
		words = "→ " + words
	} else {
		fmt.Fprintf(&c.b, `<path class="axisline" d="M%d %dv18"/>`, at, y)
	}
	fmt.Fprintf(&c.b, `<text class="axis" x="%d" y="%d">%s</text>`, at+4, y+14, words)
}

// span is a part of the life of an item; its bar is so much narrower than the row.
func (c *chart) span(it *store.ItemRow, y int, class string, from, to time.Time, pad int) {
	a, z := c.x(from), c.x(to)
	fmt.Fprintf(&c.b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="2"><title>%s</title></rect>`, class, a, y+pad, max(z-a, 2), 18-2*pad,
		template.HTMLEscapeString(it.Label()+" "+it.State.String()+", "+printable.Took(to.Sub(from))))
}

// attempt draws how long an item waited, and how long it was under way.
func (c *chart) attempt(it *store.ItemRow, y int) {
	begun, over := it.Started, it.Ended
	if over.IsZero() {
		over = c.now
	}
	if begun.IsZero() {
		begun = over
		if c.comes(it) {
			begun = it.Due
		}
	}
	due := it.Created
	if it.Attempt > 1 && it.Due.After(due) {
		due = it.Due
		if due.After(begun) {
			due = begun
		}
		c.span(it, y, "r", it.Created, due, 6)
	}
	if due.Before(begun) || it.Attempt == 1 {
		c.span(it, y, "w", due, begun, 6)
	}
	if it.Started.IsZero() {
		return
	}
	classes := map[workitem.State]string{workitem.Completed: "d", workitem.Failed: "f", workitem.Canceled: "c", workitem.Started: "g"}
	c.span(it, y, classes[it.State], begun, over, 2)
	if wide := c.x(over) - c.x(begun); it.By != "" && wide > 12*utf8.RuneCountInString(it.By)+20 {
		fmt.Fprintf(&c.b, `<text class="on" x="%d" y="%d" text-anchor="middle">%s</text>`, c.x(begun)+wide/2, y+13, template.HTMLEscapeString(printable.Line(it.By)))
	}
}
