package view

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store"
)

// escapePath makes a name a part of a path.
func escapePath(name string) string { return url.PathEscape(name) }

func escapeQuery(name string) string { return url.QueryEscape(name) }

// workflows lists the definitions.
func (s *Site) workflows(r *Request) (*Page, error) {
	defs, err := r.R.Definitions(r)
	if err != nil {
		return nil, err
	}
	rows, err := record.Definitions(r, r.R, defs)
	if err != nil {
		return nil, err
	}
	l := s.listing(r, "/workflows", "Workflows", "workflow", "version", "tasks", "code", "running", "ended", "registered", "definition")
	for _, d := range rows {
		code := "no"
		if d.Code {
			code = "yes"
		}
		l.table.row("", link(d.Workflow, s.definitionLink(d.Workflow, d.Fingerprint)), text(d.Version), number(int64(len(d.Tasks))), text(code),
			number(d.Live), number(d.Ended), at(d.Registered), muted(d.Fingerprint[:min(len(d.Fingerprint), 12)]))
	}
	return l.page("There are no workflows yet. They appear as a program opens an engine with them. To see some:", "tasq demo -serve"), nil
}

func (s *Site) definitionLink(name, fingerprint string) string {
	return s.Link("/workflows/"+escapePath(name), "fingerprint", fingerprint)
}

// workflow shows one definition: its net, with what is under way, and its tasks.
func (s *Site) workflow(r *Request) (*Page, error) {
	name, print := r.PathValue("name"), r.Form.Get("fingerprint")
	defs, err := r.R.Definitions(r)
	if err != nil {
		return nil, err
	}
	defs = slices.DeleteFunc(slices.Clone(defs), func(d *store.Definition) bool { return d.Name != name })
	slices.SortStableFunc(defs, func(a, b *store.Definition) int { return b.Created.Compare(a.Created) })
	if len(defs) == 0 {
		return nil, fmt.Errorf("workflow %q: %w", name, store.ErrNotFound)
	}
	d := defs[0]
	if i := slices.IndexFunc(defs, func(d *store.Definition) bool { return d.Fingerprint == print }); i >= 0 {
		d = defs[i]
	}
	n, err := net.Compile(d.Net)
	if err != nil {
		return nil, err
	}
	counts, err := r.R.CountsByDefinition(r, true)
	if err != nil {
		return nil, err
	}
	live := make(map[string]int64)
	var running int64
	for _, c := range counts {
		switch {
		case c.Fingerprint != d.Fingerprint:
		case c.Task != "":
			live[c.Task] += c.N
		default:
			running += c.N
		}
	}
	picture, err := s.netOf(n, d.Name, live)
	if err != nil {
		return nil, err
	}
	tasks, err := s.taskTable(r, n, d, live)
	if err != nil {
		return nil, err
	}
	p := &Page{Title: name, Nav: "Workflows", Live: true, Parts: []Part{
		{ID: "head", Template: "workflowhead", Data: s.flowHead(r, d, defs, running)},
		{ID: "net", Template: "netpart", Data: picture}, {ID: "tasks", Template: "tablepart", Data: tasks}}}
	return p, nil
}

type flowHead struct {
	Buttons []Link
	Crumbs  []Link
	Title   string
	Fields  []Cell
}

func (s *Site) flowHead(r *Request, d *store.Definition, defs []*store.Definition, running int64) flowHead {
	code := "no: any program can run it"
	if d.Code {
		code = "yes: only the program that has it can run it"
	}
	h := flowHead{Title: d.Name + version(d.Version), Crumbs: []Link{{Text: "Workflows", Href: s.Link("/workflows")}, {Text: d.Name}}, Fields: []Cell{
		labeled("running cases", link(thousands(running), s.Link("/cases", "fingerprint", d.Fingerprint, "state", "started"))),
		labeled("all cases", link("show", s.Link("/cases", "fingerprint", d.Fingerprint))),
		labeled("has code", text(code)), labeled("registered", at(d.Created)), labeled("definition", muted(d.Fingerprint[:min(16, len(d.Fingerprint))]))}}
	h.Buttons = s.button(r, nil, "Start a case…", "start", d.Name)
	for _, other := range defs {
		if other.Fingerprint != d.Fingerprint {
			h.Fields = append(h.Fields, labeled("other version", link(orElse(other.Version, other.Fingerprint[:min(8, len(other.Fingerprint))]),
				s.definitionLink(other.Name, other.Fingerprint))))
		}
	}
	return h
}

func labeled(label string, c Cell) Cell {
	c.Label = label
	return c
}

type netPart struct {
	SVG  template.HTML
	Heat string
}

// draw makes a picture for a page. It is the one place where HTML is not made by a template: net/svg escapes all texts.
func draw(n *net.Net, o svg.Options) (template.HTML, error) {
	o.Steady, o.NoStyle, o.NoLegend, o.Width = true, true, true, -1
	var b strings.Builder
	err := svg.Draw(&b, n, o)
	return template.HTML(b.String()), err // #nosec: see above
}

// netOf draws a net with the number of live items at each task.
func (s *Site) netOf(n *net.Net, name string, live map[string]int64) (netPart, error) {
	marks := make(map[string]svg.Mark)
	for _, task := range n.TaskNames() {
		m := svg.Mark{Href: s.Link("/items", "workflow", name, "task", task)}
		if k := live[task]; k > 0 {
			m.Badge, m.Class, m.Title = thousands(k), "t-open", fmt.Sprintf("%s: %d live work items", task, k)
		}
		marks[task] = m
	}
	picture, err := draw(n, svg.Options{Marks: marks})
	return netPart{SVG: picture, Heat: "The numbers are live work items of running cases. A task leads to its items."}, err
}

// taskTable has a line for each task, with numbers over all versions.
func (s *Site) taskTable(r *Request, n *net.Net, d *store.Definition, live map[string]int64) (*Table, error) {
	counts, err := r.R.Counts(r)
	t := &Table{ID: "tasks", Title: "Tasks", Head: []string{"task", "kind", "live here", "waiting", "started", "completed", "failed", "canceled"},
		Note: "The states count the items of all versions of the workflow."}
	for _, name := range n.TaskNames() {
		id, _ := n.TaskByName(name)
		kind := "task"
		switch n.Task(id).Kind {
		case net.Routing:
			kind = "routing"
		case net.Composite:
			kind = "composite"
		}
		count := itemCounter(counts, d.Name, name)
		cells := []Cell{link(name, s.Link("/items", "workflow", d.Name, "task", name)), text(kind), number(live[name])}
		for _, word := range itemWords {
			k, _ := count(word)
			cells = append(cells, countLink(k, s.Link("/items", "workflow", d.Name, "task", name, "state", word)))
		}
		t.row("", cells...)
	}
	return t, err
}
