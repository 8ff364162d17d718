package view

import (
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

// gantt draws when items waited and were worked on. The table has the same data.
func gantt(items []*store.ItemRow, from, ended, now time.Time) template.HTML {
	items = slices.Clone(items[:min(len(items), chartRows)])
	slices.Reverse(items)
	end := now
	if !ended.IsZero() {
		end = ended
	}
	if len(items) > 0 && items[0].Created.After(from) && len(items) == chartRows {
		from = items[0].Created
	}
	whole := max(end.Sub(from), time.Millisecond)
	x := func(t time.Time) int {
		d := min(max(t.Sub(from), 0), whole)
		return chartLeft + int(float64(chartWidth-chartLeft-20)*float64(d)/float64(whole))
	}
	high := 24 + chartRow*len(items)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%s over time">`, chartWidth, high, counted(len(items), "work item"))
	for step, at := stepOf(whole), time.Duration(0); at <= whole; at += step {
		left, anchor := x(from.Add(at)), "middle"
		if left > chartWidth-60 {
			anchor = "end"
		}
		fmt.Fprintf(&b, `<path class="line" d="M%d 18V%d"/><text class="axis" x="%d" y="12" text-anchor="%s">+%s</text>`, left, high, left, anchor, axisTime(at))
	}
	for i, it := range items {
		bar(&b, it, 24+chartRow*i, x, end)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // all texts are escaped
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

func bar(b *strings.Builder, it *store.ItemRow, y int, x func(time.Time) int, end time.Time) {
	label := printable.Brief([]byte(it.Label()), 22)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartLeft-10, y+14, template.HTMLEscapeString(printable.Line(label)))
	begun, over := it.Started, it.Ended
	if begun.IsZero() {
		begun = end
		if !over.IsZero() {
			begun = over
		}
	}
	if over.IsZero() {
		over = end
	}
	rect := func(class string, from, to time.Time, pad int, sign string) {
		a, z := x(from), x(to)
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="2"><title>%s</title></rect>`, class, a, y+pad, max(z-a, 2), 18-2*pad,
			template.HTMLEscapeString(it.Label()+" "+it.State.String()+", "+printable.Took(to.Sub(from))))
		if sign != "" {
			fmt.Fprintf(b, `<text class="axis" x="%d" y="%d">%s</text>`, min(z+4, chartWidth-14), y+14, sign)
		}
	}
	class := "w"
	if it.Attempt > 1 && !it.Due.IsZero() {
		class = "r"
		if due := it.Due; due.Before(begun) {
			rect("w", due, begun, 6, "")
			rect(class, it.Created, due, 6, "")
			class = ""
		}
	}
	if class != "" {
		rect(class, it.Created, begun, 6, "")
	}
	if it.Started.IsZero() {
		return
	}
	classes := map[workitem.State]string{workitem.Completed: "d", workitem.Failed: "f", workitem.Canceled: "c", workitem.Started: "g"}
	rect(classes[it.State], begun, over, 2, sign(it.State.String()))
	if wide := x(over) - x(begun); it.By != "" && wide > 12*utf8.RuneCountInString(it.By)+20 {
		fmt.Fprintf(b, `<text class="on" x="%d" y="%d" text-anchor="middle">%s</text>`, x(begun)+wide/2, y+13, template.HTMLEscapeString(printable.Line(it.By)))
	}
}
