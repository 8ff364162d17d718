package view

import (
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// measures are what the colors of a net can show; the first is the default.
var measures = []string{"live", "failures", "wait", "time"}

// sampled is the number of the newest work items from which durations are computed.
const sampled = 1000

// heat is the statistics of the tasks of a net.
type heat struct {
	by     string // an element of measures
	counts []store.Count
	tasks  map[string]*taskHeat
}

type taskHeat struct {
	live, failed int64
	oldest       time.Time // of the live items
	waited       durations // of the newest that have started: from when they were due
	took         durations // of the newest that completed, from their start
}

// durations are sorted in ascending order.
type durations []time.Duration

// readHeat reads how the tasks of a net stand: their counts, the oldest live item of each, and how long the newest work
// items waited and took. What it reads is bounded by the number of tasks, however many items there are.
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

func (h *heat) readTimes(r *Request, flow string) error {
	newest, err := r.R.Items(r, store.ItemFilter{Page: store.Page{Limit: sampled, Desc: true}})
	for _, it := range newest {
		t := h.tasks[it.Task]
		if t == nil || it.Workflow != flow || it.Started.IsZero() {
			continue
		}
		t.waited = append(t.waited, store.Waited(it.Item))
		if it.State == workitem.Completed {
			t.took = append(t.took, it.Ended.Sub(it.Started))
		}
	}
	for _, t := range h.tasks {
		slices.Sort(t.waited)
		slices.Sort(t.took)
	}
	return err
}

// quantile returns the duration that the given percentage does not exceed; 0 if there are none.
func (d durations) quantile(percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[(len(d)*percent+99)/100-1]
}

// cells returns cells for the median and the p95.
func (d durations) cells() []Cell {
	cells := []Cell{text(""), text("")}
	for i, percent := range []int{50, 95} {
		if len(d) > 0 {
			cells[i] = Cell{Kind: "text", Text: printable.Took(d.quantile(percent)), Num: true}
		}
	}
	return cells
}

// value returns the number for the color of a task, and the text of its badge; "" for no badge.
func (h *heat) value(task string) (v float64, badge string) {
	t := h.tasks[task]
	switch {
	case h.by == "failures" && t.failed > 0:
		return float64(t.failed), thousands(t.failed)
	case h.by == "wait" && len(t.waited) > 0:
		return t.waited.quantile(50).Seconds(), printable.Took(t.waited.quantile(50))
	case h.by == "time" && len(t.took) > 0:
		return t.took.quantile(50).Seconds(), printable.Took(t.took.quantile(50))
	case h.by == "live" && t.live > 0:
		return float64(t.live), thousands(t.live)
	}
	return 0, ""
}

// shades is the number of colors.
const shades = 4

// netPart is a net with the statistics of its tasks.
type netPart struct {
	SVG     template.HTML
	Choices []Link
	Note    string
}

// heatNotes explain the colors and numbers.
var heatNotes = map[string]string{
	"live":     "The numbers are live work items of running cases.",
	"failures": "The numbers are failed work items, including those that were retried, of all versions of the workflow.",
	"wait": fmt.Sprintf("The times are medians from when an item was due to its start, among the newest %s work items of the database.",
		thousands(sampled)),
	"time": fmt.Sprintf("The times are medians from start to completion, among the newest %s work items of the database.",
		thousands(sampled)),
}

// netOf draws a net with colored tasks: the task with the highest number has the strongest color.
func (s *Site) netOf(r *Request, n *net.Net, d *store.Definition, h *heat) (netPart, error) {
	p := netPart{Note: heatNotes[h.by] + " The stronger its color, the more a task has. A task leads to its items."}
	for _, by := range measures {
		p.Choices = append(p.Choices, Link{Text: by, Current: by == h.by, Href: s.Link("/workflows/"+escapePath(d.Name), "fingerprint", r.Form.Get("fingerprint"), "heat", by)})
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
		}
		marks[task] = m
	}
	var err error
	p.SVG, err = draw(n, svg.Options{Marks: marks})
	return p, err
}

// heatWords follow a number of a task.
var heatWords = map[string]string{"live": "live work items", "failures": "failed work items", "wait": "until half of the items started", "time": "for half of the items"}

// taskTable returns a table with a row for each task.
func (s *Site) taskTable(n *net.Net, d *store.Definition, h *heat) *Table {
	t := &Table{ID: "tasks", Title: "Tasks", Head: []string{"task", "kind", "live here", "oldest live", "waiting", "started", "completed", "failed", "canceled",
		"waited p50", "waited p95", "took p50", "took p95"}, Note: fmt.Sprintf("The states count the items of all versions of the workflow. An item waits from when it is due "+
		"until it is started. The times are of the newest %s work items of the database.", thousands(sampled))}
	for _, name := range n.TaskNames() {
		id, _ := n.TaskByName(name)
		kind := map[net.Kind]string{net.Routing: "routing", net.Composite: "composite"}[n.Task(id).Kind] // of a task with work items, nothing
		count, about := itemCounter(h.counts, d.Name, name), h.tasks[name]
		cells := []Cell{link(name, s.Link("/items", "workflow", d.Name, "task", name)), text(kind), number(about.live), at(about.oldest)}
		for _, word := range itemWords {
			k, _ := count(word)
			cells = append(cells, countLink(k, s.Link("/items", "workflow", d.Name, "task", name, "state", word)))
		}
		t.row("", slices.Concat(cells, about.waited.cells(), about.took.cells())...)
	}
	return t
}
