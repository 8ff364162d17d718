package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// tabNames are the parts of a case, in their order.
var tabNames = []string{"items", "steps", "jobs", "events", "history", "data", "children", "way"}

// maxRows bounds the number of rows of a tab; the lists have all.
const maxRows = 100

// tabs is the selected tab, below the links to all of them.
func (c *casePage) tabs() ([]Part, error) {
	chosen := orElse(c.r.Form.Get("tab"), "items")
	if !slices.Contains(tabNames, chosen) {
		chosen = "items"
	}
	id := c.c.ID.String()
	var links []Link
	for _, name := range tabNames {
		l := Link{Text: name, Href: c.caseLink("tab", name, "at", c.r.Form.Get("at")), Current: name == chosen}
		switch name {
		case "way":
			l.Text = "way to the end"
		case "history":
			l.Count = thousands(int64(len(c.window.entries)))
			if !c.window.whole() {
				l.Count += "+"
			}
		case "children":
			l.Count = thousands(int64(len(c.c.Children)))
		}
		links = append(links, l)
	}
	parts := []Part{{ID: "tabs", Template: "casetabs", Data: links}}
	var more []Part
	var err error
	switch chosen {
	case "items":
		more, err = c.itemTab()
	case "steps":
		more, err = c.stepTab()
	case "jobs":
		more, err = c.jobTab()
	case "events":
		more, err = c.eventTab()
	case "history":
		var data historyPart
		data, err = c.history()
		more = []Part{{ID: "tab", Template: "history", Data: data}}
	case "data":
		more = []Part{{ID: "tab", Template: "data", Data: caseData{Commands: c.commandLines(), Payloads: c.downloads(caseParts(c.c, c.r.Mask.Case(c.c)), "case", id)}}}
	case "way":
		more = []Part{{ID: "tab", Template: "way", Data: c.way()}}
	case "children":
		more = []Part{{ID: "tab", Template: "tablepart", Data: c.children()}}
	}
	return append(parts, more...), err
}

// caseData is the payloads of a case, and the commands that show the same on the command line.
type caseData struct {
	Payloads []payloadPart
	Commands string
}

// commandLines returns the commands of tasq that show the case at the shown position.
func (c *casePage) commandLines() string {
	id := c.c.ID.String()
	if c.past {
		return fmt.Sprintf("tasq show %s --at %d", id, c.window.at().Seq)
	}
	return strings.Join([]string{"tasq show " + id, "tasq why " + id, "tasq history " + id}, "\n")
}

// unfinished are the states of items that the tab shows without the completed ones.
var unfinished = []workitem.State{workitem.Initialized, workitem.Started, workitem.Failed, workitem.Canceled}

// itemTab lists the items of the case; of a past state, those of its latest activations.
func (c *casePage) itemTab() ([]Part, error) {
	t := &Table{ID: "items", Head: []string{"item", "state", "attempt", "queue", "by", "created", "took", "input, output or failure"},
		Empty: &Empty{Text: "The case has no work items."}, Views: c.itemViews()}
	f := store.ItemFilter{Case: c.c.ID, Page: store.Page{Limit: maxRows + 1, Desc: true}}
	if c.r.Form.Get("hide") == "completed" {
		f.States, t.Empty.Text = unfinished, "The case has no other work items than completed ones."
	}
	var items []*store.ItemRow
	switch {
	case c.past, !c.window.whole(): // reading all items of a long history to find the newest would take too long
		for _, it := range slices.Backward(c.c.Items.Slice()) {
			if f.States == nil || slices.Contains(f.States, it.State) {
				items = append(items, &store.ItemRow{Item: it, Root: c.c.Root, Workflow: c.c.Workflow})
			}
		}
		t.Note = "Only the latest activation of each task."
		if !c.past {
			t.Pager = &Pager{Text: thousands(int64(min(len(items), maxRows))) + " shown", Next: c.Link("/items", "case", c.c.ID.String())}
		}
	default:
		found, err := c.r.R.Items(c.r, f)
		if err != nil {
			return nil, err
		}
		items = found
	}
	if len(items) > maxRows {
		items = items[:maxRows]
		t.Pager = &Pager{Text: fmt.Sprintf("the newest %d", maxRows), Next: c.Link("/items", "case", c.c.ID.String())}
	}
	for _, it := range items {
		c.itemRow(t, c.r, c.r.Mask.Row(it), false)
	}
	parts := []Part{{ID: "tab", Template: "tablepart", Data: t}}
	if len(items) == 0 && len(f.States) == 0 && len(c.c.Children) > 0 {
		t = c.children()
		t.Note = "The case has no work items of its own. These are its child cases."
		parts = []Part{{ID: "tab", Template: "tablepart", Data: t}}
	}
	if len(items) > 0 && c.r.Form.Get("chart") != "off" {
		parts = slices.Insert(parts, 0, Part{ID: "chart", Template: "chart", Data: gantt(items, c.c.Created, c.c.Ended, c.now())})
	}
	return parts, nil
}

// itemViews are the switches of the tab: without completed items, without the chart.
func (c *casePage) itemViews() (all []Link) {
	for _, view := range [][4]string{{"hide", "completed", "Hide completed", "completed are hidden"}, {"chart", "off", "Hide chart", "chart is hidden"}} {
		name, value := view[0], view[1]
		l := Link{Text: view[2], Href: c.caseLink(name, value, "at", c.r.Form.Get("at"))}
		if c.r.Form.Get(name) == value {
			l = Link{Text: view[3], Href: c.caseLink(name, "", "at", c.r.Form.Get("at")), Current: true}
		}
		all = append(all, l)
	}
	return all
}

func (c *casePage) stepTab() ([]Part, error) {
	t := &Table{ID: "steps", Head: []string{"step", "kind", "state", "waits for", "due", "attempt", "result or failure"},
		Empty: &Empty{Text: "The jobs of the case have recorded no steps."}, Note: c.pastNote()}
	found, err := c.r.R.Steps(c.r, store.StepFilter{Case: c.c.ID, Page: store.Page{Limit: maxRows + 1, Desc: true}})
	for _, st := range limited(t, found, c.Link("/steps", "case", c.c.ID.String())) {
		c.stepRow(t, c.r.Mask.Step(st), false)
	}
	return []Part{{ID: "tab", Template: "tablepart", Data: t}}, err
}

func (c *casePage) jobTab() ([]Part, error) {
	t := &Table{ID: "jobs", Head: []string{"job", "kind", "of", "state", "due", "attempt", "queue", "worker", "failure"},
		Empty: &Empty{Text: "The case has no jobs."}, Note: c.pastNote()}
	found, err := c.r.R.Jobs(c.r, store.JobFilter{Case: c.c.ID, Page: store.Page{Limit: maxRows + 1, Desc: true}})
	for _, j := range limited(t, found, c.Link("/jobs", "case", c.c.ID.String())) {
		c.jobRow(t, c.r.Mask.Job(j), false)
	}
	return []Part{{ID: "tab", Template: "tablepart", Data: t}}, err
}

func (c *casePage) eventTab() ([]Part, error) {
	t := &Table{ID: "events", Head: []string{"event", "sent", "by", "taken", "value"},
		Empty: &Empty{Text: "No event was sent to the case."}, Note: c.pastNote()}
	found, err := c.r.R.Messages(c.r, store.MessageFilter{Case: c.c.ID, Page: store.Page{Limit: maxRows + 1, Desc: true}})
	for _, m := range limited(t, found, c.Link("/events", "case", c.c.ID.String())) {
		c.eventRow(t, c.r.Mask.Message(m), false)
	}
	return []Part{{ID: "tab", Template: "tablepart", Data: t}}, err
}

func (c *casePage) pastNote() string {
	if c.past {
		return "This list shows the present: its past states are not stored."
	}
	return ""
}

func limited[T any](t *Table, all []T, more string) []T {
	if len(all) <= maxRows {
		return all
	}
	t.Pager = &Pager{Text: fmt.Sprintf("the newest %d", maxRows), Next: more}
	return all[:maxRows]
}

// historyPart is the history in words, the newest entry first.
type historyPart struct {
	Note    string
	Entries []historyEntry
	Pager   *Pager
}

type historyEntry struct {
	N           int64 // its number or, in a history that is not counted, its position
	Seq         int64
	At          time.Time
	After       string // the time from the creation of the case
	Command, By string
	Person      bool
	Href        string
	Lines       []string
}

func (c *casePage) history() (historyPart, error) {
	var p historyPart
	st := describe.New(c.tree, c.c.ID)
	entries := c.window.entries[:c.window.n]
	if err := findNamed(c.r, st, entries); err != nil {
		return p, err
	}
	for n, e := range entries {
		h := historyEntry{N: int64(n + 1), Seq: e.Seq, At: e.At, After: printable.Took(e.At.Sub(c.c.Created)), By: e.By, Person: e.By != "", Href: c.historyLink(e)}
		if !c.window.whole() {
			h.N = e.Seq
		}
		all := 0
		for _, change := range e.Changes {
			if line, ours := st.Describe(c.r.Mask.Change(change), e.At); ours {
				if len(h.Lines) < maxLines {
					h.Lines = append(h.Lines, printable.Line(line))
				}
				all++
			}
		}
		if all > maxLines {
			h.Lines = append(h.Lines, fmt.Sprintf("and %s more; tasq history %s has all", thousands(int64(all-maxLines)), c.c.ID))
		}
		h.Command = st.CommandText(e.Command)
		if len(h.Lines) > 0 {
			p.Entries = append(p.Entries, h)
		}
	}
	slices.Reverse(p.Entries)
	before := c.window.earlier
	if len(p.Entries) > maxRows {
		i := slices.IndexFunc(entries, func(e *store.Entry) bool { return e.Seq == p.Entries[maxRows].Seq })
		before, p.Entries = entries[i], p.Entries[:maxRows]
	}
	if before != nil {
		p.Pager = &Pager{Text: fmt.Sprintf("%d entries are shown", len(p.Entries)), Next: c.historyLink(before)}
	}
	return p, nil
}

// maxLines bounds the changes of an entry that are listed: a command may open 10,000 work items.
const maxLines = 100

// historyLink returns a link to the history up to an entry.
func (c *casePage) historyLink(e *store.Entry) string {
	return c.Link("/cases/"+c.c.ID.String(), "tab", "history", "at", strconv.FormatInt(e.Seq, 10))
}

// findNamed finds the items and jobs in entries that were created before these entries.
func findNamed(r *Request, st *describe.Describer, entries []*store.Entry) error {
	known := make(map[[16]byte]bool)
	for _, e := range entries {
		for _, change := range e.Changes {
			switch change := change.(type) {
			case *state.ItemOpened:
				known[change.Item.ID] = true
			case *state.JobOpened:
				known[change.Job.ID] = true
			case *state.ItemMoved:
				if known[change.Item] {
					continue
				}
				known[change.Item] = true
				found, err := r.R.Items(r, store.ItemFilter{ID: change.Item, Page: store.Page{Limit: 1}})
				if err != nil {
					return err
				}
				for _, it := range found {
					st.AddItem(it.Item)
				}
			case *state.JobMoved:
				if known[change.Job] {
					continue
				}
				known[change.Job] = true
				found, err := r.R.Jobs(r, store.JobFilter{ID: change.Job, Page: store.Page{Limit: 1}})
				if err != nil {
					return err
				}
				for _, j := range found {
					st.AddJob(j)
				}
			}
		}
	}
	return nil
}
