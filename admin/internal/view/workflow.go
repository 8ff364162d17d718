package view

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// escapePath escapes a name as a path segment.
func escapePath(name string) string { return url.PathEscape(name) }

func escapeQuery(name string) string { return url.QueryEscape(name) }

// workflows lists the definitions.
func (s *Site) workflows(r *Request) (*Page, error) {
	defs, err := r.R.Definitions(r)
	if err != nil {
		return nil, err
	}
	defs = slices.Clone(defs)
	slices.SortStableFunc(defs, func(a, b *store.Definition) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), b.Created.Compare(a.Created))
	})
	live, err := readLive(r, defs)
	if err != nil {
		return nil, err
	}
	suspended, err := suspensions(r)
	if err != nil {
		return nil, err
	}
	l := s.listing(r, "/workflows", "Workflows", "workflow", "state", "version", "tasks", "code", "started", "ended", "registered", "definition")
	for i, d := range defs {
		code, ended := "no", text("")
		if d.Code {
			code = "yes"
		}
		if i == 0 || defs[i-1].Name != d.Name { // ended cases are counted by workflow, not by version
			ended = number(live.ended(d.Name))
		}
		word := "open"
		if _, found := suspended[d.Name]; found {
			word = "suspended"
		}
		l.table.row("", link(d.Name, s.definitionLink(d.Name, d.Fingerprint)), stateOf(word), text(d.Version), number(int64(len(d.Net.Tasks))), text(code),
			number(live.cases[d.Fingerprint]), ended, at(d.Created), muted(d.Fingerprint[:min(len(d.Fingerprint), 12)]))
	}
	if len(live.several) > 0 {
		l.table.Note = "Ended cases of all versions of a workflow are counted in the row of the newest version."
	}
	return l.page("There are no workflows yet. They appear when a program opens an engine with them. For an example:", "tasq demo -serve"), nil
}

// liveCounts has the numbers of live cases and items by definition.
type liveCounts struct {
	counts  []store.Count
	cases   map[string]int64            // by fingerprint
	items   map[string]map[string]int64 // by fingerprint and task
	several []string                    // workflows with more than one definition
}

// readLive counts the live cases and items of definitions. The cases of a workflow with one definition are counted by
// the database; only those of others have to be read.
func readLive(r *Request, defs []*store.Definition) (*liveCounts, error) {
	counts, err := r.R.Counts(r)
	l := &liveCounts{counts: counts, cases: make(map[string]int64), items: make(map[string]map[string]int64)}
	byName := make(map[string][]*store.Definition)
	for _, d := range defs {
		l.items[d.Fingerprint] = make(map[string]int64)
		byName[d.Name] = append(byName[d.Name], d)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if len(byName[name]) > 1 {
			l.several = append(l.several, name)
		}
	}
	for _, c := range counts {
		if of := byName[c.Workflow]; len(of) == 1 {
			l.add(of[0].Fingerprint, c.What, c.Task, c.State, c.N)
		}
	}
	if err != nil || len(l.several) == 0 {
		return l, err
	}
	exact, err := r.R.CountsByDefinition(r, true)
	for _, c := range exact {
		of := slices.IndexFunc(defs, func(d *store.Definition) bool { return d.Fingerprint == c.Fingerprint })
		if of < 0 || len(byName[defs[of].Name]) == 1 {
			continue
		}
		what := "case"
		if c.Task != "" {
			what = "item"
		}
		l.add(c.Fingerprint, what, c.Task, state.CaseStarted.String(), c.N)
	}
	return l, err
}

// add counts the live cases and items of a definition.
func (l *liveCounts) add(print, what, task, word string, n int64) {
	live := word == workitem.Initialized.String() || word == workitem.Started.String() // a started case has the same name
	switch {
	case !live:
	case what == "case":
		l.cases[print] += n
	case what == "item":
		l.items[print][task] += n
	}
}

// ended returns how many cases of a workflow have ended.
func (l *liveCounts) ended(name string) (n int64) {
	for _, c := range l.counts {
		if c.What == "case" && c.Workflow == name && c.State != state.CaseStarted.String() {
			n += c.N
		}
	}
	return n
}

func (s *Site) definitionLink(name, fingerprint string) string {
	return s.Link("/workflows/"+escapePath(name), "fingerprint", fingerprint)
}

// workflow is the page of a definition: its net, with what is in progress, and its tasks.
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
	counts, err := readLive(r, defs)
	if err != nil {
		return nil, err
	}
	h, err := readHeat(r, n, d, counts)
	if err != nil {
		return nil, err
	}
	if err := s.readIncidents(r, h, name); err != nil {
		return nil, err
	}
	picture, err := s.netOf(r, n, d, h)
	if err != nil {
		return nil, err
	}
	day, err := dayOf(r, name)
	if err != nil {
		return nil, err
	}
	suspended, err := suspensions(r)
	if err != nil {
		return nil, err
	}
	head := s.flowHead(r, d, defs, counts.cases[d.Fingerprint], day[name])
	s.suspendable(r, &head, name, suspended)
	p := &Page{Title: name, Nav: "Workflows", Live: true, Parts: []Part{
		{ID: "head", Template: "workflowhead", Data: head},
		{ID: "net", Template: "netpart", Data: picture}, {ID: "tasks", Template: "tablepart", Data: s.taskTable(n, d, h)}}}
	return p, nil
}

type flowHead struct {
	Buttons []Link
	Crumbs  []Link
	Title   string
	Fields  []Cell
}

func (s *Site) flowHead(r *Request, d *store.Definition, defs []*store.Definition, running int64, day store.Rate) flowHead {
	code := "no: any program can run it"
	if d.Code {
		code = "yes: only the program that has it can run it"
	}
	h := flowHead{Title: d.Name + version(d.Version), Crumbs: []Link{{Text: "Workflows", Href: s.Link("/workflows")}, {Text: d.Name}}, Fields: []Cell{
		labeled("started cases", link(thousands(running), s.Link("/cases", "fingerprint", d.Fingerprint, "state", "started"))),
		labeled("all cases", link("show", s.Link("/cases", "fingerprint", d.Fingerprint))),
		labeled("has code", text(code)), labeled("registered", at(d.Created)), labeled("definition", muted(d.Fingerprint[:min(16, len(d.Fingerprint))]))}}
	for i, c := range s.dayCells(d.Name, day) { // of all versions
		h.Fields = append(h.Fields, labeled([]string{"24 h done", "24 h failed", "24 h took p50", "24 h took p95"}[i], c))
	}
	h.Fields = slices.DeleteFunc(h.Fields, func(c Cell) bool { return c.empty() })
	h.Buttons = s.buttons(r).button(nil, "Start a case…", "start", d.Name)
	for _, other := range defs {
		if other.Fingerprint != d.Fingerprint {
			h.Fields = append(h.Fields, labeled("other version", link(orElse(other.Version, other.Fingerprint[:min(8, len(other.Fingerprint))]),
				s.definitionLink(other.Name, other.Fingerprint))))
		}
	}
	return h
}

// suspensions returns the suspended workflows.
func suspensions(r *Request) (map[string]store.Decision, error) {
	all, err := r.R.Settings(r)
	if err != nil {
		return nil, err
	}
	return store.ReadSuspensions(all)
}

// suspendable adds whether the workflow is suspended, and the command that changes that.
func (s *Site) suspendable(r *Request, h *flowHead, name string, suspended map[string]store.Decision) {
	d, found := suspended[name]
	if !found {
		h.Buttons = s.buttons(r).button(h.Buttons, "Suspend…", "suspend-workflow", name)
		return
	}
	h.Buttons = s.buttons(r).button(h.Buttons, "Resume…", "resume-workflow", name)
	h.Fields = append([]Cell{labeled("new cases", stateOf("suspended")), labeled("suspended", at(d.At)), labeled("by", text(orElse(d.By, "unknown"))),
		labeled("reason", text(d.Reason))}, h.Fields...)
}

func labeled(label string, c Cell) Cell {
	c.Label = label
	return c
}

// draw renders an SVG for a page. It is the only place where HTML is not made by a template: net/svg escapes all texts.
func draw(n *net.Net, o svg.Options) (template.HTML, error) {
	o.Steady, o.NoStyle, o.NoData, o.NoLegend, o.Width = true, true, true, true, -1
	var b strings.Builder
	err := svg.Draw(&b, n, o)
	return template.HTML(b.String()), err // #nosec: see above
}
