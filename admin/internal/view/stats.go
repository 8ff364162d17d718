package view

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// periods are those that the page of statistics offers.
var periods = []string{"1h", "24h", "7d", "30d"}

const (
	dayPeriod = "24h" // without another one
	maxHours  = 200   // how many lines of hours it shows
)

// stats says how many cases and work items ended, and how long they took, by workflow, by task and by hour.
func (s *Site) stats(r *Request) (*Page, error) {
	if !r.Form.Has("newer") {
		r.Form.Set("newer", dayPeriod)
	}
	l := s.listing(r, "/stats", "Statistics")
	q := query.Of(r.Form, r.Now)
	f := q.Rates()
	if err := q.Err(); err != nil {
		return nil, err
	}
	l.head.Ignored = q.Unread(filterForm)
	names, err := workflowNames(r)
	if err != nil {
		return nil, err
	}
	l.head.About = "Cases and work items that ended in the period, in whole hours; each attempt counts as an item. p50 and p95 are the median and the 95th percentile, " +
		"accurate to 6 %. Completed cases took from creation to end, completed work items from start to end; work items waited from when they were due to their start. \"Before\" is the previous period of the same length. As of " +
		printable.Time(r.Now) + "; reload to update."
	l.filters("newer", field{Name: "workflow", Label: "workflow", Options: names}, field{Name: "task", Label: "task", Hint: "name"})
	for _, word := range periods {
		l.head.Tabs = append(l.head.Tabs, Link{Text: word, Href: l.with("newer", word), Current: r.Form.Get("newer") == word})
	}
	ended, err := r.R.Ended(r, hourly(f))
	if err != nil {
		return nil, err
	}
	tasks, hours := store.RatesOf(ended, store.ByTask), store.RatesOf(ended, store.ByHour)
	before, err := ratesBefore(r, f)
	if err != nil {
		return nil, err
	}
	cases, casesBefore, err := caseRates(r, f)
	if err != nil {
		return nil, err
	}
	p := l.page("", "")
	p.Live, p.Parts = false, []Part{p.Parts[0]}
	if len(tasks) == 0 && len(cases) == 0 {
		empty := Table{Empty: &Empty{Text: "Nothing ended in this period." + l.unknownName(), Drop: []Link{{Text: "Show 30 days of all workflows", Href: s.Link("/stats", "newer", "30d")}}}}
		p.Parts = append(p.Parts, Part{ID: "tasks", Template: "tablepart", Data: empty})
		return p, nil
	}
	p.Parts = append(p.Parts, Part{ID: "chart", Template: "bars", Data: bars(hours, f.Since, r.Now)})
	if f.Task == "" {
		p.Parts = append(p.Parts, Part{ID: "workflows", Template: "ratepart", Data: s.rateTable(r, byWorkflow, cases, casesBefore)})
	}
	p.Parts = append(p.Parts, Part{ID: "tasks", Template: "ratepart", Data: s.rateTable(r, byTask, tasks, before)}, Part{ID: "hours", Template: "ratepart", Data: s.rateTable(r, byHour, hours, nil)})
	return p, nil
}

// hourly is a filter that counts each hour.
func hourly(f store.RateFilter) store.RateFilter {
	f.Hourly = true
	return f
}

// caseRates are the rates of cases by workflow, and those of the period before. A task has none.
func caseRates(r *Request, f store.RateFilter) (rates []store.Rate, before map[rateOf]store.Rate, err error) {
	if f.Task != "" {
		return nil, nil, nil
	}
	f.Cases = true
	if rates, err = store.Rates(r, store.ViewerOf(r.R), f); err != nil {
		return nil, nil, err
	}
	before, err = ratesBefore(r, f)
	return rates, before, err
}

// ratesBefore are the rates by task of the period before the one of a filter, which is as long. None for a filter without a beginning.
func ratesBefore(r *Request, f store.RateFilter) (map[rateOf]store.Rate, error) {
	if f.Since.IsZero() {
		return nil, nil
	}
	f.Since, f.Before = f.Since.Add(-r.Now.Sub(f.Since)), f.Since.Truncate(time.Hour)
	all, err := store.Rates(r, store.ViewerOf(r.R), f)
	before := make(map[rateOf]store.Rate, len(all))
	for _, rate := range all {
		before[rateOf{rate.Workflow, rate.Task}] = rate
	}
	return before, err
}

// rateOf is whose a rate is.
type rateOf struct{ workflow, task string }

// ratePart is a table with the address of all its rows.
type ratePart struct {
	Table *Table
	CSV   string
}

// rateKind is a table of rates.
type rateKind struct {
	id, title, none string
	path            string // where its items or cases are listed
	flag            string // of the API
}

var (
	byWorkflow = rateKind{"workflows", "Cases by workflow", "No case has ended.", "/cases", "cases"}
	byTask     = rateKind{"tasks", "Work items by task", "No work item has ended.", "/items", ""}
	byHour     = rateKind{"hours", "Work items by hour", "No work item has ended.", "/items", "hourly"}
)

// rateTable has a line for each rate, beside those of the period before.
func (s *Site) rateTable(r *Request, kind rateKind, rates []store.Rate, before map[rateOf]store.Rate) ratePart {
	query := []string{"newer", r.Form.Get("newer"), "workflow", r.Form.Get("workflow"), "task", r.Form.Get("task"), "format", "csv"}
	t := &Table{ID: kind.id, Title: kind.title, Head: []string{"workflow", "task", "hour, UTC", "done", "failed", "waited p50", "waited p95", "took p50", "took p95",
		"done before", "waited p50 before", "took p50 before"},
		Empty: &Empty{Text: kind.none}}
	if kind.flag != "" {
		query = append(query, kind.flag, "true")
	}
	for i, rate := range rates {
		if i == maxHours {
			t.Note = fmt.Sprintf("and %s more lines; the download has all", thousands(int64(len(rates)-i)))
			break
		}
		hour := text("")
		if !rate.Hour.IsZero() {
			hour.Text = rate.Hour.Format("2006-01-02 15:04")
		}
		of := []string{"workflow", rate.Workflow, "task", rate.Task, "newer", r.Form.Get("newer"), "state"}
		task := text("")
		if rate.Task != "" {
			task = link(rate.Task, s.Link("/items", of[:6]...))
		}
		cells := []Cell{link(rate.Workflow, s.Link("/workflows/"+escapePath(rate.Workflow))), task, hour,
			number(int64(rate.Done)), countLink(int64(rate.Failed), s.Link(kind.path, append(of, "failed")...))}
		was, then := before[rateOf{rate.Workflow, rate.Task}]
		old := Cell{Kind: "text", Num: true}
		if then {
			old = number(int64(was.Done))
		}
		t.row("", append(cells, tookCell(rate.WaitedP50, rate.Started), tookCell(rate.WaitedP95, rate.Started), tookCell(rate.P50, rate.Done), tookCell(rate.P95, rate.Done),
			old, tookCell(was.WaitedP50, was.Started), tookCell(was.P50, was.Done))...)
	}
	return ratePart{Table: t, CSV: s.Link("/api/v1/stats", query...)}
}

// tookCell is a percentile of n durations; empty if there are none.
func tookCell(d time.Duration, n int) Cell {
	c := Cell{Kind: "text", Num: true}
	if n > 0 {
		c.Text = printable.Took(d)
	}
	return c
}

// Sizes of the chart of what ended, in pixels.
const (
	barsWidth = 900
	barsRight = 850 // of the bars; the scale stands beside the newest hours, where a narrow window begins
	barsHigh  = 120
	mostBars  = 7 * 24
)

// bars draws how many items completed and failed in each hour from a time until now, or in each day where there are too many hours. The table of the
// hours has the same.
func bars(hours []store.Rate, from, now time.Time) template.HTML {
	unit, layout := time.Hour, "02 Jan 15:04"
	if from.IsZero() { // the newest hour of each task is the first of it
		from = now
		for _, r := range hours {
			from = earlier(from, r.Hour)
		}
	}
	if now.Sub(from) > mostBars*time.Hour {
		unit, layout = 24*time.Hour, "02 Jan"
	}
	from = from.UTC().Truncate(unit)
	type bar struct{ done, failed int }
	all := make([]bar, min(int(now.Sub(from)/unit)+1, 10*366))
	most := 1
	for _, r := range hours {
		i := int(r.Hour.Sub(from) / unit)
		if i < 0 || i >= len(all) {
			continue
		}
		all[i].done += r.Done
		all[i].failed += r.Failed
		most = max(most, all[i].done+all[i].failed)
	}
	var b strings.Builder
	const bottom = barsHigh + 10
	fmt.Fprintf(&b, `<svg width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="Work items that ended, by %s">`, barsWidth, bottom+24, map[bool]string{true: "hour", false: "day"}[unit == time.Hour])
	fmt.Fprintf(&b, `<path class="line" d="M0 10H%d"/><text class="axis" data-scale="" x="%d" y="14">%s</text>`, barsRight, barsRight+6, thousands(int64(most)))
	step := barsRight / float64(len(all))
	for i, v := range all {
		x, wide := step*float64(i), max(step-2, 1)
		title := fmt.Sprintf("%s: %d done, %d failed", from.Add(time.Duration(i)*unit).Format(layout), v.done, v.failed)
		good, bad := float64(v.done)/float64(most)*barsHigh, float64(v.failed)/float64(most)*barsHigh
		rect := func(class string, y, high float64) {
			if high > 0 {
				fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`, class, x, y, wide, max(high, 1), title)
			}
		}
		rect("d", bottom-good, good)
		rect("f", bottom-good-bad, bad)
	}
	fmt.Fprintf(&b, `<path class="axisline" d="M0 %dH%d"/>`, bottom, barsRight)
	for _, mark := range []struct {
		i      int
		anchor string
	}{{0, "start"}, {len(all) / 2, "middle"}, {len(all) - 1, "end"}} {
		x := step * (float64(mark.i) + map[string]float64{"start": 0, "middle": 0.5, "end": 1}[mark.anchor])
		if len(all) > 2 || mark.i == 0 && mark.anchor == "start" {
			fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%d" text-anchor="%s">%s</text>`, x, bottom+16, mark.anchor, from.Add(time.Duration(mark.i)*unit).Format(layout))
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // #nosec: it has numbers and times only
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
