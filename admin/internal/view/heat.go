package view

import (
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// measures are what the colors of a net can show; the first is the default.
var measures = []string{"live", "failures", "attempts", "wait", "time"}

// heat is the statistics of the tasks of a net.
type heat struct {
	by     string // an element of measures
	period string // in which the items ended whose times are shown, as in 24h
	counts []store.Count
	tasks  map[string]*taskHeat
}

type taskHeat struct {
	live, failed int64
	incidents    int64      // open ones, of all versions
	oldest       time.Time  // of the live items
	ended        store.Rate // of the items that ended in the period
}

// readHeat reads how the tasks of a net stand: their counts, the oldest live item of each, and how long the items waited and took that ended
// in the period of the address. What it reads is bounded by the number of tasks and hours, however many items there are.
func readHeat(r *Request, n *net.Net, d *store.Definition, live *liveCounts) (*heat, error) {
	h := &heat{by: r.Form.Get("heat"), counts: live.counts, tasks: make(map[string]*taskHeat)}
	if !slices.Contains(measures, h.by) {
		h.by = measures[0]
	}
	for _, name := range n.TaskNames() {
		t := &taskHeat{live: live.items[d.Fingerprint][name]}
		t.failed, _ = itemCounter(live.counts, d.Name, name)("failed")
		h.tasks[name] = t
		if t.live == 0 {
			continue
		}
		oldest, err := r.R.Items(r, store.ItemFilter{Workflow: d.Name, Task: name, States: []workitem.State{workitem.Initialized, workitem.Started},
			Page: store.Page{Limit: 1}})
		if err != nil {
			return nil, err
		}
		for _, it := range oldest {
			t.oldest = it.Created
		}
	}
	return h, h.readTimes(r, d.Name)
}

// readTimes reads the rates of the tasks of a workflow.
func (h *heat) readTimes(r *Request, flow string) error {
	if !r.Form.Has("newer") {
		r.Form.Set("newer", dayPeriod)
	}
	h.period = r.Form.Get("newer")
	q := query.Of(r.Form, r.Now)
	f := store.RateFilter{Workflow: flow, Since: q.Bound("newer")}
	if err := q.Err(); err != nil {
		return err
	}
	rates, err := store.Rates(r, store.ViewerOf(r.R), f)
	for _, rate := range rates {
		if t := h.tasks[rate.Task]; t != nil {
			t.ended = rate
		}
	}
	return err
}

// value returns the number for the color of a task, and the text of its badge; "" for no badge.
func (h *heat) value(task string) (v float64, badge string) {
	t := h.tasks[task]
	switch {
	case h.by == "failures" && t.failed > 0:
		return float64(t.failed), thousands(t.failed)
	case h.by == "attempts" && t.ended.Done+t.ended.Failed > 0:
		return t.attempts() - 1, t.attemptsText() // one attempt for each item is no heat
	case h.by == "wait" && t.ended.Started > 0:
		return t.ended.WaitedP50.Seconds(), printable.Took(t.ended.WaitedP50)
	case h.by == "time" && t.ended.Done > 0:
		return t.ended.P50.Seconds(), printable.Took(t.ended.P50)
	case h.by == "live" && t.live+t.incidents > 0:
		return float64(t.live + t.incidents), t.liveText()
	}
	return 0, ""
}

// liveText is how many items are live, and how many incidents are open.
func (t *taskHeat) liveText() string {
	if t.incidents == 0 {
		return thousands(t.live)
	}
	text := sign("incident") + thousands(t.incidents)
	if t.live > 0 {
		text = thousands(t.live) + " " + text
	}
	return text
}

// readIncidents counts the open incidents of the tasks of a workflow, among those that a page examines.
func (s *Site) readIncidents(r *Request, h *heat, flow string) error {
	open, _, err := s.openHeads(r, store.IncidentFilter{})
	for _, o := range open {
		if t := h.tasks[o.Task]; t != nil && o.Workflow == flow {
			t.incidents++
		}
	}
	return err
}

// attempts is how many attempts ended in the period for each item that completed; all of them if none has.
func (t *taskHeat) attempts() float64 {
	return float64(t.ended.Done+t.ended.Failed) / float64(max(t.ended.Done, 1))
}

// attemptsText is how many attempts an item took; "" if none has ended. It ends with a plus if no item has completed, so that more will follow.
func (t *taskHeat) attemptsText() string {
	switch {
	case t.ended.Done+t.ended.Failed == 0:
		return ""
	case t.ended.Done == 0:
		return fmt.Sprintf("%d+", t.ended.Failed)
	}
	return fmt.Sprintf("%.1f", t.attempts())
}

// shades is the number of colors.
const shades = 4

// netPart is a net with the statistics of its tasks.
type netPart struct {
	SVG     template.HTML
	Choices []Link
	Periods []Link
	Note    string
}

// heatNotes explain the colors and numbers.
var heatNotes = map[string]string{
	"live":     "The numbers are live work items of started cases; !3 stands for three open incidents, of all versions of the workflow.",
	"failures": "The numbers are failed work items, including those that were retried, of all versions of the workflow.",
	"attempts": "The numbers are attempts for each completed work item, those of all versions that ended in the period; 3+ is three attempts, and no item completed.",
	"wait":     "The times are medians from when an item was due to its start, of the items of all versions that ended in the period.",
	"time":     "The times are medians from start to completion, of the items of all versions that completed in the period.",
}

// netOf draws a net with colored tasks: the task with the highest number has the strongest color.
func (s *Site) netOf(r *Request, n *net.Net, d *store.Definition, h *heat) (netPart, error) {
	p := netPart{Note: heatNotes[h.by] + " The stronger its color, the more a task has. A task leads to its items. " +
		"The wider an arrow, the more items completed in the period: those of the task it leaves, or of the task it enters if the first one has no items or chooses among several arrows."}
	choice := func(text, by, period string, current bool) Link {
		return Link{Text: text, Current: current, Href: s.Link("/workflows/"+escapePath(d.Name), "fingerprint", r.Form.Get("fingerprint"), "heat", by, "newer", period)}
	}
	for _, by := range measures {
		p.Choices = append(p.Choices, choice(by, by, h.period, by == h.by))
	}
	for _, period := range periods {
		p.Periods = append(p.Periods, choice(period, h.by, period, period == h.period))
	}
	most := 0.0
	for _, task := range n.TaskNames() {
		v, _ := h.value(task)
		most = max(most, v)
	}
	marks := make(map[string]svg.Mark)
	for _, task := range n.TaskNames() {
		m := svg.Mark{Href: s.Link("/items", "workflow", d.Name, "task", task)}
		if v, badge := h.value(task); badge != "" {
			shade := 1
			if most > 0 {
				shade = 1 + int(v/most*(shades-1)+0.5)
			}
			m.Badge, m.Class, m.Title = badge, fmt.Sprintf("heat%d", shade), task+": "+badge+" "+heatWords[h.by]
			if about := h.tasks[task]; h.by == "live" && about.incidents > 0 {
				m.Class, m.Title = "t-bad", fmt.Sprintf("%s: %s live work items, %s", task, thousands(about.live), counted(int(about.incidents), "open incident"))
			}
		}
		marks[task] = m
	}
	var err error
	p.SVG, err = draw(n, svg.Options{Marks: marks, Arrows: h.arrows(n)})
	return p, err
}

// maxTitled is the number of flows up to which arrows have tooltips: those of a large net would be most of its page.
const maxTitled = 200

// arrows returns the widths of the flows: the more items completed, the wider. A flow whose number of items is not known has none.
func (h *heat) arrows(n *net.Net) map[[2]string]svg.Arrow {
	all, most := make(map[[2]string]svg.Arrow), 1
	for _, t := range h.tasks {
		most = max(most, t.ended.Done)
	}
	for _, f := range n.Definition().Flows {
		task := h.counted(n, f)
		if task == "" || h.tasks[task].ended.Done == 0 {
			continue
		}
		done := h.tasks[task].ended.Done
		a := svg.Arrow{Width: 2 + (2*done+most/2)/most}
		if len(n.Definition().Flows) <= maxTitled {
			a.Title = fmt.Sprintf("%s of %s completed", counted(done, "work item"), task)
		}
		all[[2]string{f.From, f.To}] = a
	}
	return all
}

// counted returns the task whose items pass a flow: all that complete it, or all that it begins with; "" if the items of a flow are not known.
func (h *heat) counted(n *net.Net, f net.Flow) string {
	if t, ok := n.TaskByName(f.From); ok && n.Task(t).Kind == net.Atomic && (n.Task(t).Split == net.And || len(n.Outputs(t)) == 1) {
		return f.From
	}
	if t, ok := n.TaskByName(f.To); ok && n.Task(t).Kind == net.Atomic && (n.Task(t).Join == net.And || len(n.Inputs(t)) == 1) {
		return f.To
	}
	return ""
}

// heatWords follow a number of a task.
var heatWords = map[string]string{"live": "live work items", "failures": "failed work items", "attempts": "attempts for each completed work item", "wait": "until half of the items started", "time": "for half of the items"}

// taskTable returns a table with a row for each task.
func (s *Site) taskTable(n *net.Net, d *store.Definition, h *heat) *Table {
	t := &Table{ID: "tasks", Title: "Tasks", Head: []string{"task", "kind", "incidents", "live here", "oldest live", "waiting", "started", "completed", "failed", "canceled",
		"attempts", "waited p50 / p95", "took p50 / p95"}, Note: "The states count the items of all versions of the workflow. An item waits from when it is due until it is started. " +
		"Attempts are those for each completed item. They and the times are of the items that ended in the period, in whole hours; times are accurate to 6 %."}
	for _, name := range n.TaskNames() {
		id, _ := n.TaskByName(name)
		kind := map[net.Kind]string{net.Routing: "routing", net.Composite: "composite"}[n.Task(id).Kind] // of a task with work items, nothing
		count, about := itemCounter(h.counts, d.Name, name), h.tasks[name]
		oldest := at(about.oldest)
		oldest.Num = true     // as narrow as it can be
		incidents := text("") // without any the column is left out
		if about.incidents > 0 {
			incidents = countLink(about.incidents, s.Link("/incidents", "workflow", d.Name, "task", name))
		}
		cells := []Cell{link(name, s.Link("/items", "workflow", d.Name, "task", name)), text(kind), incidents, number(about.live), oldest}
		for _, word := range itemWords {
			k, _ := count(word)
			cells = append(cells, countLink(k, s.Link("/items", "workflow", d.Name, "task", name, "state", word)))
		}
		ended := &about.ended
		t.row("", append(cells, Cell{Kind: "text", Text: about.attemptsText(), Num: true}, quantilesCell(ended.WaitedP50, ended.WaitedP95, ended.Started),
			quantilesCell(ended.P50, ended.P95, ended.Done))...)
	}
	return t
}

// quantilesCell has two quantiles of n durations, the first of which is not longer; it is empty if there are none.
func quantilesCell(first, second time.Duration, n int) Cell {
	c := tookCell(first, n)
	if n > 0 {
		c.Text += " / " + printable.Took(second)
	}
	return c
}
