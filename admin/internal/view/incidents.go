package view

import (
	"fmt"
	"net/url"
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
	f, within, err := l.incidentFilter()
	if err != nil {
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
	if !whole {
		l.head.About += fmt.Sprintf(" More than %s incidents are open: only the oldest %[1]s were examined.", thousands(int64(examined(f))))
	}
	var p *Page
	if len(groups) == 0 {
		p = l.page("There are no incidents.", "")
	} else if p, err = s.incidentPage(l, groups, whole, within); err != nil {
		return nil, err
	}
	failed, err := s.failedCases(r, f)
	if failed != nil {
		p.Parts = append(p.Parts, Part{ID: "failed", Template: "tablepart", Data: failed})
	}
	return p, err
}

// incidentFilter reads the filter of the list, and shows it. within is its parameters.
func (l *listing) incidentFilter() (f store.IncidentFilter, within url.Values, err error) {
	q := query.Of(l.r.Form, l.r.Now)
	f, of := q.Incidents(), q.Case()
	within = filterOf(l.r.Form, q.Names())
	if err := q.Err(); err != nil {
		return f, nil, err
	}
	l.head.Ignored = q.Unread(filterForm, "done")
	names, err := workflowNames(l.r)
	if err != nil {
		return f, nil, err
	}
	l.filters("", field{Name: "workflow", Label: "workflow", Options: names}, field{Name: "task", Label: "task", Hint: "name", None: "none"},
		field{Name: "kind", Label: "kind", Options: state.IncidentKinds}, field{Name: "code", Label: "failure code", Hint: "timeout", None: "none"},
		field{Name: "older", Label: "open longer than", Hint: "2h, 3d, or a time"}, field{Name: "newer", Label: "newer than", Hint: "2h, 3d, or a time"},
		field{Name: "key", Label: "key", Hint: "C-4711"}, field{Name: "label", Label: "label", Hint: "customer=ada"}, field{Name: "case", Label: "case", Hint: "id"})
	f.Root, err = query.RootOf(l.r, l.r.R, of)
	return f, within, err
}

// incidentPage shows the largest groups, each with its first incidents.
func (s *Site) incidentPage(l *listing, groups []*group, whole bool, within url.Values) (*Page, error) {
	missing, err := selection.FindMissing(l.r, l.r.R, s.Backend.Here())
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
	if err := s.readShown(l.r, groups, most, missing); err != nil {
		return nil, err
	}
	data := make([]groupData, len(groups))
	for i, g := range groups {
		if data[i], err = s.groupData(l.r, g, missing, i, whole, within); err != nil {
			return nil, err
		}
	}
	return &Page{Title: "Incidents", Nav: "Incidents", Live: true, Parts: l.parts(Part{ID: "groups", Template: "incidentgroups", Data: data})}, nil
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
