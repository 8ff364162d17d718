package view

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// tile is a box of the overview.
type tile struct {
	Title string
	Lines []line
	None  string
	More  *Link // where else to look
	Chart template.HTML

	Examined string    // what was examined for it; "" if nothing was
	At       time.Time // since when, at most
}

// line is a count with a link to what is counted.
type line struct {
	N, Text, Href, State string
}

// glanced bounds the number of live items of a queue, and of jobs of a state, that the table of queues counts: the page
// is read again at each change, and each row costs. The page of limits counts further.
const glanced = 100

// overview is the first page: what runs, and what needs a person.
func (s *Site) overview(r *Request) (*Page, error) {
	counts, err := r.R.Counts(r)
	if err != nil {
		return nil, err
	}
	needs, err := s.needs(r, counts)
	if err != nil {
		return nil, err
	}
	needsTile, err := s.needsTile(r, needs)
	if err != nil {
		return nil, err
	}
	since := r.Now.Add(-23 * time.Hour)
	ended, err := r.R.Ended(r, store.RateFilter{Since: since, Hourly: true})
	if err != nil {
		return nil, err
	}
	flows, err := s.flowTable(r, counts, ended)
	if err != nil {
		return nil, err
	}
	queues, err := s.queueTable(r, glanced, false)
	if err != nil {
		return nil, err
	}
	recent, err := s.recent(r)
	if err != nil {
		return nil, err
	}
	tiles := struct{ Tiles []tile }{[]tile{
		needsTile,
		s.lastDay(ended, since, r.Now),
		{Title: "Cases", Lines: s.countLines(counts, "case", "/cases", caseWords), None: "There are no cases yet."},
		{Title: "Work items", Lines: s.countLines(counts, "item", "/items", itemWords), None: "There are no work items yet."},
		{Title: "Jobs", Lines: s.countLines(counts, "job", "/jobs", jobWords), None: "There are no jobs yet."},
	}}
	return &Page{Title: "Overview", Nav: "Overview", Live: true, Parts: []Part{
		{ID: "tiles", Template: "overview", Data: tiles}, {ID: "flows", Template: "tablepart", Data: flows}, {ID: "queues", Template: "tablepart", Data: queues},
		{ID: "recent", Template: "tablepart", Data: recent}}}, nil
}

// needsTile adds the stranded cases to what needs a person, and says which cases were examined, and when.
func (s *Site) needsTile(r *Request, needs []line) (tile, error) {
	doctor := s.Link("/doctor")
	t := tile{Title: "Needs a person", None: "Nothing needs a person's decision.", More: &Link{Text: "Find stranded cases", Href: doctor}}
	x, err := s.Strands.Look(r, r.R)
	if err != nil {
		return t, err
	}
	if x.Cases > 0 {
		text := "cases that nothing moves"
		if x.Cases == 1 {
			text = "case that nothing moves"
		}
		needs = append([]line{{N: atLeast(x.Cases, x.All), Text: text, Href: doctor + "#part-stranded", State: "bad"}}, needs...)
	}
	t.Lines, t.At = needs, x.Since.Truncate(time.Minute)
	if t.Examined = "examined"; !x.All {
		t.Examined = fmt.Sprintf("the oldest %s examined", thousands(int64(x.Examined)))
	}
	return t, nil
}

// lastDay counts the work items that ended since a time, a day ago.
func (s *Site) lastDay(ended []store.Ended, since, now time.Time) tile {
	chart, done, failed := spark(store.RatesOf(ended, store.ByHour), since, now)
	t := tile{Title: "Last 24 hours", None: "No work item has ended.", Chart: chart, More: &Link{Text: "By task and by hour", Href: s.Link("/stats")}}
	if done+failed > 0 {
		t.Lines = []line{{N: thousands(done), Text: "completed", Href: s.Link("/stats"), State: "completed"},
			{N: thousands(failed), Text: "failed", Href: s.Link("/stats"), State: "failed"}}
	}
	return t
}

// countLines returns the counts of one kind of thing by state, without zeros.
func (s *Site) countLines(counts []store.Count, what, path string, words []string) []line {
	var lines []line
	count := counter(counts, what, "")
	for _, word := range words {
		if n, _ := count(word); n > 0 {
			lines = append(lines, line{N: thousands(n), Text: word, Href: s.Link(path, "state", word), State: word})
		}
	}
	return lines
}

// needs lists what does not continue without a person.
func (s *Site) needs(r *Request, counts []store.Count) ([]line, error) {
	var lines []line
	groups, whole, err := s.incidentGroups(r, store.IncidentFilter{}, s.Backend.Here())
	if err != nil {
		return nil, err
	}
	for i, g := range groups {
		if i == 4 {
			lines = append(lines, line{N: "…", Text: "more incidents", Href: s.Link("/incidents"), State: "bad"})
			break
		}
		lines = append(lines, line{N: atLeast(g.n(), whole), Text: g.Where + ": " + g.cause(), State: "incident",
			Href: s.listLink("/incidents", g.filter(nil))})
	}
	if n, _ := counter(counts, "case", "")("failed"); n > 0 {
		lines = append(lines, line{N: thousands(n), Text: "failed cases", Href: s.Link("/cases", "state", "failed"), State: "failed"})
	}
	if b, ok := s.Backend.(source.Inspector); ok {
		for _, o := range b.Overdue() {
			name := "queue " + queueName(o.Queue)
			if o.Timers {
				name = "timers"
			}
			lines = append(lines, line{N: thousands(int64(o.Due)), Text: name + ": due, and not begun", Href: s.Link("/jobs", "due", "0s", "state", "pending"), State: "warn"})
		}
	}
	closed, err := s.closed(r)
	return append(lines, closed...), err
}

// atLeast is a number, with a plus sign if it is not the whole.
func atLeast(n int, whole bool) string {
	if whole {
		return thousands(int64(n))
	}
	return thousands(int64(n)) + "+"
}

// closed lists the paused queues and the limits that are set to 0, with the keys of them, which block what needs them.
func (s *Site) closed(r *Request) (lines []line, err error) {
	limits, queues, err := controls(r)
	closes := func(n int, text string) {
		lines = append(lines, line{N: fmt.Sprint(n), Text: text, Href: s.Link("/limits"), State: "paused"})
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if queues[name].Paused {
			closes(1, "queue "+queueName(name)+" is paused")
		}
		if n := len(queues[name].Keys); n > 0 {
			closes(n, "queue "+queueName(name)+" is paused for "+counted(n, "key"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if limits[name].Current().N == 0 {
			closes(0, "limit "+printable.Line(name)+" is set to 0")
		}
		n := 0
		for _, k := range limits[name].Keys {
			if k.N == 0 {
				n++
			}
		}
		if n > 0 {
			closes(n, "limit "+printable.Line(name)+" is set to 0 for "+counted(n, "key"))
		}
	}
	return lines, err
}

// flowTable returns a table with a row for each workflow. ended is the work items of the last 24 hours.
func (s *Site) flowTable(r *Request, counts []store.Count, ended []store.Ended) (*Table, error) {
	defs, err := r.R.Definitions(r)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, d := range defs {
		if !strings.HasPrefix(d.Name, "tasq-") { // workflows of the engine itself: bulk actions, schedules
			names[d.Name] = true
		}
	}
	day, err := dayOf(r, "")
	if err != nil {
		return nil, err
	}
	t := &Table{ID: "flows", Title: "Workflows", Head: []string{"workflow", "started", "completed", "failed", "canceled", "oldest started", "24 h done", "24 h failed",
		"24 h took p50", "24 h took p95", "24 h waited p95"},
		Empty: &Empty{Text: "There are no workflows yet. They appear when a program opens an engine with them.", Command: "tasq demo -serve"}}
	waits := make(map[string]store.Rate)
	for _, rate := range store.RatesOf(ended, store.ByWorkflow) {
		waits[rate.Workflow] = rate
	}
	if len(day)+len(waits) > 0 {
		t.Note = "p50 and p95 are the median and the 95th percentile of the last 24 hours: how long the cases that completed took, and how long " +
			"the work items that ended had waited from when they were due to their start."
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		cells := []Cell{link(name, s.Link("/workflows/"+escapePath(name)))}
		count := counter(counts, "case", name)
		for _, word := range caseWords {
			n, _ := count(word)
			cells = append(cells, countLink(n, s.Link("/cases", "workflow", name, "state", word)))
		}
		old := text("")
		// A workflow without a running case costs no query.
		if running, _ := count(state.CaseStarted.String()); running > 0 {
			oldest, err := r.R.Cases(r, store.CaseFilter{Workflow: name, States: []state.CaseState{state.CaseStarted}, Page: store.Page{Limit: 1}})
			if err != nil {
				return nil, err
			}
			if len(oldest) > 0 {
				old = at(oldest[0].Created)
			}
		}
		t.row("", append(append(append(cells, old), s.dayCells(name, day[name])...), tookCell(waits[name].WaitedP95, waits[name].Started))...)
	}
	return t, nil
}

// dayOf counts the cases that ended in the last 24 hours, by workflow: of one workflow, or of all for "".
func dayOf(r *Request, workflow string) (map[string]store.Rate, error) {
	rates, err := store.Rates(r, store.ViewerOf(r.R), store.RateFilter{Workflow: workflow, Cases: true, Since: r.Now.Add(-23 * time.Hour)})
	day := make(map[string]store.Rate)
	for _, rate := range rates {
		day[rate.Workflow] = rate
	}
	return day, err
}

// dayCells returns how many cases of a workflow completed and failed, and how long they took.
func (s *Site) dayCells(name string, day store.Rate) []Cell {
	return []Cell{countLink(int64(day.Done), s.Link("/stats", "workflow", name, "newer", dayPeriod)),
		countLink(int64(day.Failed), s.Link("/cases", "workflow", name, "state", "failed")), tookCell(day.P50, day.Done), tookCell(day.P95, day.Done)}
}

// recent are the newest cases.
func (s *Site) recent(r *Request) (*Table, error) {
	found, err := r.R.Cases(r, store.CaseFilter{RootOnly: true, Page: store.Page{Limit: 8, Desc: true}})
	t := &Table{ID: "recent", Title: "Newest cases", Head: []string{"case", "key", "workflow", "state", "created", "ended", "failure"},
		Empty: &Empty{Text: "There are no cases yet."}}
	for _, c := range found {
		c = r.Mask.Case(c)
		id := c.ID.String()
		t.row(id, idLink(id, s.Link("/cases/"+id)), text(printable.Line(c.Key)), text(c.Workflow+version(c.Version)), stateOf(c.State.String()), at(c.Created), at(c.Ended), failure(c.Failure))
	}
	return t, err
}

// maxOpen is how many incidents are counted for the navigation.
const maxOpen = 100

func (s *Site) openIncidents(r *Request) (int, error) {
	found, err := r.R.Jobs(r, store.JobFilter{Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}, Page: store.Page{Limit: maxOpen}})
	if err != nil {
		return 0, err
	}
	missing, err := s.missing.count(r, s.Backend.Here())
	return len(found) + missing, err
}

// allOpen says how many incidents are open, of which so many were counted.
func (s *Site) allOpen(r *Request, counted int) (string, error) {
	whole := true
	if counted >= maxOpen {
		ids, all, err := r.R.OpenIncidents(r, maxGrouped)
		if err != nil {
			return "", err
		}
		missing, err := s.missing.count(r, s.Backend.Here())
		if err != nil {
			return "", err
		}
		counted, whole = len(ids)+missing, all
	}
	if counted == 1 {
		return "1 incident", nil
	}
	return atLeast(counted, whole) + " incidents", nil
}

// missing caches how many definitions are missing, since every page shows it and the count reads all definitions.
type missing struct {
	mu sync.Mutex
	at time.Time
	n  int
}

// keepMissing is how long the count is used.
const keepMissing = 10 * time.Second

func (m *missing) count(r *Request, here why.Here) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := r.Now.Sub(m.at); age >= 0 && age < keepMissing {
		return m.n, nil
	}
	n := 0
	for _, err := range why.Incidents(r, store.ViewerOf(r.R), store.IncidentFilter{Kind: state.IncidentDefinition}, here, r.Now) {
		if err != nil {
			return 0, err
		}
		n++
	}
	m.at, m.n = r.Now, n
	return n, nil
}
