package view

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// incidents is the page of the incidents by cause.
func (s *Site) incidents(r *Request) (*Page, error) {
	l := s.listing(r, "/incidents", "Incidents")
	l.head.About = "Work that needs a decision by a person: work items without further attempts, abandoned jobs, undecided or-joins, and definitions that no open program has; and cases that failed."
	q := query.Of(r.Form, r.Now)
	f, of := q.Incidents(), q.Case()
	within := filterOf(r.Form, q.Names())
	if err := q.Err(); err != nil {
		return nil, err
	}
	l.head.Ignored = q.Unread(filterForm, "done")
	names, err := workflowNames(r)
	if err != nil {
		return nil, err
	}
	l.filters("", field{Name: "workflow", Label: "workflow", Options: names}, field{Name: "task", Label: "task", Hint: "name", None: "none"},
		field{Name: "kind", Label: "kind", Options: state.IncidentKinds}, field{Name: "code", Label: "failure code", Hint: "timeout", None: "none"},
		field{Name: "older", Label: "open longer than", Hint: "2h, 3d, or a time"}, field{Name: "newer", Label: "newer than", Hint: "2h, 3d, or a time"},
		field{Name: "key", Label: "key", Hint: "C-4711"}, field{Name: "label", Label: "label", Hint: "customer=ada"}, field{Name: "case", Label: "case", Hint: "id"})
	if f.Root, err = query.RootOf(r, r.R, of); err != nil {
		return nil, err
	}
	here, err := s.Backend.Here().WithFleet(r, r.R)
	if err != nil {
		return nil, err
	}
	if here.Unknown() && why.SelectsDefinitions(f) {
		l.head.About += " " + noProgram
	}
	groups, whole, err := s.incidentGroups(r, f, here)
	if err != nil {
		return nil, err
	}
	failed, err := s.failedCases(r, f)
	if err != nil {
		return nil, err
	}
	if !whole {
		l.head.About += fmt.Sprintf(" More than %s incidents are open: only the oldest %[1]s were examined.", thousands(int64(examined(f))))
	}
	if len(groups) == 0 {
		p := l.page("There are no incidents.", "")
		if failed != nil {
			p.Parts = append(p.Parts, Part{ID: "failed", Template: "tablepart", Data: failed})
		}
		return p, nil
	}
	missing, err := selection.FindMissing(r, r.R, s.Backend.Here())
	if err != nil {
		return nil, err
	}
	most := maxOfGroup
	if len(groups) == 1 {
		most = maxOfOnly
	}
	if n := len(groups); n > maxGroups {
		groups = groups[:maxGroups]
		l.head.About += fmt.Sprintf(" Only the %d largest of %s groups are listed; filter for the others.", maxGroups, thousands(int64(n)))
	}
	if err := s.readShown(r, groups, most, missing); err != nil {
		return nil, err
	}
	var data []groupData
	for i, g := range groups {
		d, err := s.groupData(r, g, missing, i, whole, within)
		if err != nil {
			return nil, err
		}
		data = append(data, d)
	}
	p := &Page{Title: "Incidents", Nav: "Incidents", Live: true, Parts: l.parts(Part{ID: "groups", Template: "incidentgroups", Data: data})}
	if failed != nil {
		p.Parts = append(p.Parts, Part{ID: "failed", Template: "tablepart", Data: failed})
	}
	return p, nil
}

// noProgram says why definitions that no open program has are not listed.
const noProgram = "No program that has the database open has answered, so it is not known which definitions are missing."

// groupData is a group of incidents on its page.
type groupData struct {
	N                  string
	Several            bool
	Where, Kind, Cause string
	Since, Last        time.Time
	Lack               string // what is missing for commands; "" for nothing
	Buttons            []Link
	Table              *Table
	More               *Link // the page with all of them; nil if they are all here
}

// The number of groups that are listed, and of incidents of a group: beside other groups, and if it is the only one.
const (
	maxGroups  = 40
	maxOfGroup = 5
	maxOfOnly  = 200
)

// groupData shows a group, the i-th. whole says whether it has all of its incidents. within is the filter of the list.
func (s *Site) groupData(r *Request, g *group, m *selection.Missing, i int, whole bool, within url.Values) (groupData, error) {
	d := groupData{N: atLeast(g.n(), whole), Several: g.n() > 1, Where: g.Where, Kind: kindWords(g.Kind), Cause: g.cause(), Since: g.Since, Last: g.Last}
	offered, err := g.offered(r, m)
	if err != nil {
		return d, err
	}
	d.Lack, d.Buttons = offered.lack(g.n()), s.buttons(r).ofGroup(g, offered.words, within)
	d.Table = &Table{ID: fmt.Sprintf("group%d", i), Head: []string{"item", "case", "key", "message", "since", ""}, Picks: s.buttons(r).incidentPicks(offered)}
	if more := g.n() - len(g.shown); more > 0 {
		d.More = &Link{Text: "and " + atLeast(more, whole) + " more", Href: s.listLink("/incidents", g.filter(within))}
	}
	for _, in := range g.shown {
		item := text(orElse(in.Task, "case"))
		if in.item != nil {
			item = link(in.item.Label(), s.Link("/items/"+in.Item.String()))
		}
		message := text("")
		if g.differ {
			message = text(in.message())
		}
		if i := in.Definition; i != nil {
			what := "definition"
			if i.Version != "" {
				what = "version " + i.Version
			}
			list := url.Values{"fingerprint": {i.Fingerprint}, "state": {state.CaseStarted.String()}}
			d.Table.row(in.ID.String(), text(what), link(counted(int(i.Cases), "live case"), s.listLink("/cases", list)), text(""), message, at(in.Since), text(""))
			continue
		}
		act := text("")
		buttons, err := s.buttons(r).retry(in.Incident, m)
		if err != nil {
			return d, err
		}
		for _, b := range buttons {
			act = buttonCell(b.Text, b.Href)
		}
		d.Table.row(in.ID.String(), item, idLink(in.Case.String(), s.Link("/cases/"+in.Case.String())), text(printable.Line(in.of.Key)), message, at(in.Since), act)
		if offered.ticks[in.ID] {
			d.Table.tick(in.ID.String())
		}
	}
	return d, nil
}

// doctor is the page of the state of the database and the engine.
func (s *Site) doctor(r *Request) (*Page, error) {
	overdue, err := s.overdue(r)
	if err != nil {
		return nil, err
	}
	t := &Table{ID: "overdue", Title: "Overdue work", Head: []string{"job", "kind", "of", "case", "state", "due", "attempt", "queue", "worker", "failure"}}
	for _, j := range overdue {
		s.jobRow(t, r.Mask.Job(j), true)
	}
	if len(overdue) > 0 {
		t.Note = "Possible causes: no program with its workflow is running, its queue has no free worker, or the store fails."
	}
	checks := &Table{ID: "checks", Title: "Checks", Head: []string{"state", "check", "found"}}
	add := func(name, word, found, about string) {
		checks.row("", checkState(word), link(name, about), text(found))
	}
	if len(overdue) == 0 {
		add("due work", "good", "all of it has begun", s.Link("/jobs"))
	} else {
		add("due work", "warn", counted(len(overdue), "job")+" overdue", "#part-overdue")
	}
	open, err := s.openIncidents(r)
	if err != nil {
		return nil, err
	}
	if open == 0 {
		add("incidents", "good", "none", s.Link("/incidents"))
	} else {
		found, err := s.allOpen(r, open)
		if err != nil {
			return nil, err
		}
		add("incidents", "bad", found+" open", s.Link("/incidents"))
	}
	if err := s.definitions(r, add); err != nil {
		return nil, err
	}
	s.ownWork(r, add)
	if err := s.limitsInUse(r, add); err != nil {
		return nil, err
	}
	stranded, err := s.stranded(r)
	if err != nil {
		return nil, err
	}
	switch {
	case len(stranded.Rows) > 0:
		add("cases", "bad", counted(len(stranded.Rows), "cause")+" why a case does not go on", "#part-stranded")
	case stranded.Note == "":
		add("cases", "good", "each goes on", s.Link("/cases"))
	}
	word, found := s.checked.words(r.Now)
	add("integrity", word, found, "#part-database")
	facts, err := s.database(r)
	if err != nil {
		return nil, err
	}
	p := &Page{Title: "Doctor", Nav: "Doctor", Parts: []Part{{ID: "head", Template: "list", Data: head{Title: "Doctor",
		About: "The state of the database and of the program that owns it. Reload to check again."}},
		{ID: "checks", Template: "tablepart", Data: checks}, {ID: "database", Template: "database", Data: facts}, {ID: "stranded", Template: "tablepart", Data: stranded}}}
	p.Live = s.checked.runs() // its progress
	if err := s.engines(r, p); err != nil {
		return nil, err
	}
	if len(overdue) > 0 {
		p.Parts = append(p.Parts, Part{ID: "overdue", Template: "tablepart", Data: t})
	}
	return p, nil
}

// checkState is the result of a check, in words.
func checkState(class string) Cell {
	words := map[string]string{"good": "ok", "warn": "attention", "bad": "problem", "pending": "not checked"}
	return Cell{Kind: "state", Text: class, Title: words[class]}
}

// addCheck adds the result of a check: its name, its class, what it found, and the address of what it is about.
type addCheck func(name, class, text, about string)

// definitions lists the live cases whose definition the engine was not opened with, so that nothing happens in them. A
// process that only reads has no definitions.
func (s *Site) definitions(r *Request, add addCheck) error {
	all := s.Link("/workflows")
	here, err := s.Backend.Here().WithFleet(r, r.R)
	if err != nil {
		return err
	}
	if here.Unknown() {
		add("definitions", "pending", "not known: no program that has the database open has answered", all)
		return nil
	}
	where, lacks, do := "this program", "this program does not have", "start a program with it too"
	if here.Definition == nil {
		where, lacks, do = "an open program", "no open program has", "open a program with it"
	}
	list, err := why.ReadUnserved(r, r.R, here)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		add("definitions", "good", "each live case has its own in "+where, all)
	}
	for _, u := range list {
		name := "workflow " + u.Workflow
		if u.Version != "" {
			name += " " + u.Version
		}
		add(name, "bad", counted(int(u.Cases), "live case")+" of a definition that "+lacks+"; "+do,
			s.listLink("/cases", url.Values{"fingerprint": {u.Fingerprint}, "state": {state.CaseStarted.String()}}))
	}
	return nil
}

// search redirects to the one thing that a word identifies, or lists what it may mean.
func (s *Site) search(r *Request) (*Page, error) {
	word := r.Form.Get("q")
	l := s.listing(r, "/search", "Search", "kind", "what", "state", "created")
	l.head.Title = "Search"
	if strings.ContainsRune(word, 0) {
		return nil, &query.Error{Param: "q", Text: "must not contain a zero byte"}
	}
	found, err := store.Find(r, r.R, word, r.Mask.Case)
	if err != nil {
		return nil, err
	}
	for i := range found {
		s.foundRow(l, &found[i], word)
	}
	if len(found) == 1 {
		return redirect(l.table.Rows[0].Cells[1].Href), nil
	}
	p := l.page("Enter the id of a case, a work item or a job, its last characters, a business key, a label as in customer=ada, the idempotency key of a command, or the name of a workflow.", "")
	p.Search, p.Live = word, false
	if len(found) == 0 && strings.TrimSpace(word) != "" {
		l.table.Empty = &Empty{Text: fmt.Sprintf("Nothing found for %q: it is no id, no suffix of an id of the newest %d cases and items, no business key, no label (as in customer=ada), no idempotency key and no workflow.", word, store.MaxSuffixes)}
		p.Parts[1].Data = l.table
	}
	return p, nil
}

// foundRow is the row of a search result.
func (s *Site) foundRow(l *listing, m *store.Match, word string) {
	switch m.Kind {
	case "workflow":
		l.table.row("", text("workflow"), link(m.Workflow, s.Link("/workflows/"+escapePath(m.Workflow))), text(""), text(""))
	case "command":
		root := m.Case.String()
		l.table.row("", text("command with the key "+word+": "+printable.Line(m.Command)), link(fmt.Sprintf("entry %d of case %s", m.Seq, short(root)),
			s.Link("/cases/"+root, "tab", "history", "at", fmt.Sprint(m.Seq))), text("done"), at(m.At))
	case "case":
		by := map[string]string{"key": ", key " + word, "label": ", " + word}[m.By]
		l.table.row("", text("case of "+m.Workflow+by), link(m.ID, s.Link("/cases/"+m.ID)), stateOf(m.State), at(m.At))
	case "item":
		l.table.row("", text("item "+m.Label), link(m.ID, s.Link("/items/"+m.ID)), stateOf(m.State), at(m.At))
	default:
		l.table.row("", text(m.Kind), link(m.ID, s.Link("/"+m.Kind+"s/"+m.ID)), stateOf(m.State), at(m.At))
	}
}

// help lists the keyboard shortcuts and the signs.
func (s *Site) help(*Request) (*Page, error) {
	data := struct{ Keys, Signs []Link }{
		Keys: []Link{{Text: "/", Href: "search"}, {Text: "g o", Href: "overview"}, {Text: "g w", Href: "workflows"}, {Text: "g c", Href: "cases"},
			{Text: "g i", Href: "items"}, {Text: "g j", Href: "jobs"}, {Text: "g e", Href: "events"}, {Text: "g x", Href: "incidents"}, {Text: "g s", Href: "schedules"}, {Text: "g l", Href: "limits"}, {Text: "g t", Href: "statistics"}, {Text: "g d", Href: "doctor"},
			{Text: "g a", Href: "audit"}, {Text: "j k", Href: "next and previous row"}, {Text: "Enter", Href: "open the row"}, {Text: "x", Href: "tick the row, for the actions below the list"},
			{Text: "[ ]", Href: "one entry back and on in the history of a case"}, {Text: ", .", Href: "to the failure before and the next one"}, {Text: "p", Href: "pause and go on with live changes"},
			{Text: "t", Href: "light or dark"}, {Text: "?", Href: "this page"}, {Text: "Esc", Href: "close"}},
		Signs: []Link{{Text: "initialized", Href: "waits to be started"}, {Text: "started", Href: "is under way"}, {Text: "completed", Href: "has ended well"},
			{Text: "failed", Href: "has ended with a failure"}, {Text: "canceled", Href: "was ended before"}, {Text: "retry", Href: "another attempt follows"},
			{Text: "incident", Href: "waits for a person's decision"}, {Text: "join", Href: "has some of its tokens, and waits for others"}}}
	return &Page{Title: "Help", Nav: "Help", Parts: []Part{{ID: "help", Template: "helppage", Data: data}}}, nil
}
