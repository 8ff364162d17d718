package view

import (
	"fmt"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// bulkPage is the progress of a bulk action.
type bulkPage struct {
	Crumbs        []Link
	Title         string
	Lines         []string
	State         Cell
	Targets, Done int
	Case          string
	Buttons       []Link
	Refused       *Table
}

// bulk shows a bulk action: its progress, and what was refused so far.
func (s *Site) bulk(r *Request) (*Page, error) {
	var id workitem.CaseID
	if err := pathID(r, "action", &id); err != nil {
		return nil, err
	}
	i, err := bulk.InfoOf(r, store.ViewerOf(r.R), id)
	if err != nil {
		return nil, err
	}
	d := bulkPage{Title: fmt.Sprintf("%s %d", i.Command(), i.Targets), State: stateOf(i.State), Targets: i.Targets, Done: i.Answered(),
		Case: s.Link("/cases/" + id.String()), Crumbs: []Link{{Text: bulkTitle, Href: s.Link("/bulk")}, {Text: "Action"}},
		Buttons: s.bulkButtons(r, i), Refused: s.refusals(i)}
	text := fmt.Sprintf("%d of %d are done, and %d refused.", i.Done, i.Targets, i.Refused)
	if i.Actor != "" {
		text += " Asked for by " + i.Actor + "."
	}
	if i.Reason != "" {
		text += " Reason: " + i.Reason
	}
	d.Lines = append(d.Lines, text)
	if i.State == bulk.Paused {
		d.Lines = append(d.Lines, "It is paused: a command that has begun may still end, and no other one begins until it is resumed.")
	}
	return &Page{Title: "Action", Nav: bulkTitle, Live: true, Parts: []Part{{ID: "bulk", Template: "bulk", Data: d}}}, nil
}

// bulkTitle is the title of the list of bulk actions.
const bulkTitle = "Bulk actions"

// bulks lists the bulk actions.
func (s *Site) bulks(r *Request) (*Page, error) {
	l := s.listing(r, "/bulk", bulkTitle, "action", "command", "state", "targets", "done", "refused", "started", "ended", "by", "reason")
	l.head.About = "An action sends one command for each of its targets. The lists of cases, items and incidents start one."
	err := rows(l, query.Of(r.Form, r.Now), func(p store.Page) ([]*bulk.Info, error) { return bulk.List(r, r.R, p) },
		func(i *bulk.Info) string { return i.ID.String() }, func(i *bulk.Info) error {
			id := i.ID.String()
			l.table.row(id, idLink(id, s.Link("/bulk/"+id)), text(i.Command()), stateOf(i.State), number(int64(i.Targets)), number(int64(i.Done)), number(int64(i.Refused)),
				at(i.Started), at(i.Ended), text(printable.Line(i.Actor)), text(printable.Line(i.Reason)))
			return nil
		})
	return l.page("There are no bulk actions. The lists of cases, items and incidents start one, and so does:", "tasq incident retry --all"), err
}

// bulkButtons returns the commands on an action that is not over.
func (s *Site) bulkButtons(r *Request, i *bulk.Info) (all []Link) {
	switch {
	case !i.Ended.IsZero():
		return nil
	case i.State == bulk.Paused:
		all = s.buttons(r).button(all, "Resume…", "resume", i.ID.String())
	default:
		all = s.buttons(r).button(all, "Pause…", "suspend", i.ID.String())
	}
	all = s.buttons(r).button(all, "Cancel…", "cancel", i.ID.String())
	for n := range all {
		all[n].Href += "&back=" + backToBulk
	}
	return all
}

// backToBulk is the value of the parameter "back" of a form that returns to the page of a bulk action.
const backToBulk = "bulk"

// refusals lists what an action could not do so far.
func (s *Site) refusals(i *bulk.Info) *Table {
	t := &Table{ID: "refused", Title: counted(i.Refused, "refusal"), Head: []string{"target", "code", "error"}, Empty: &Empty{Text: "Nothing was rejected."}}
	path := "/items/"
	if bulk.OfCases(i.Kind) {
		path = "/cases/"
	}
	for n, f := range i.Refusals {
		if n == maxRows {
			t.Note = fmt.Sprintf("and %d more; tasq bulk show %s has all", len(i.Refusals)-maxRows, i.ID)
			break
		}
		t.row("", idLink(f.Target, s.Link(path+f.Target)), text(f.Code), text(f.Error))
	}
	return t
}
