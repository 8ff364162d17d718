package view

import (
	"fmt"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// differences shows what differs in a case between two positions of the journal.
func (s *Site) differences(r *Request) (*Page, error) {
	var id workitem.CaseID
	if err := pathID(r, "case", &id); err != nil {
		return nil, err
	}
	q := query.Of(r.Form, r.Now)
	from, to := q.Number("from"), q.Number("until")
	if err := q.Err(); err != nil {
		return nil, err
	}
	all, err := store.Differences(r, store.ViewerOf(r.R), id, store.Moment{Seq: from}, store.Moment{Seq: to})
	if err != nil {
		return nil, err
	}
	t := &Table{ID: "differences", Head: []string{"what", "name", "then", "now"}, Empty: &Empty{Text: "Nothing differs."}}
	about := fmt.Sprintf("What differs between position %d of the journal and now.", from)
	if to > 0 {
		t.Head[3], about = "later", fmt.Sprintf("What differs between the positions %d and %d of the journal.", from, to)
	}
	for _, d := range all {
		name := text(printable.Line(d.Name))
		if d.What == "child case" {
			name = idLink(d.Name, s.Link("/cases/"+d.Name))
		}
		t.row("", text(d.What), name, text(d.From), text(d.To))
	}
	link := Link{Text: short(id.String()), Href: s.Link("/cases/" + id.String())}
	return &Page{Title: "Differences", Nav: "Cases", Parts: []Part{
		{ID: "crumbs", Template: "crumbs", Data: []Link{{Text: "Cases", Href: s.Link("/cases")}, link, {Text: "Differences"}}},
		{ID: "head", Template: "list", Data: head{Title: "Differences", About: about}},
		{ID: "differences", Template: "tablepart", Data: t}}}, nil
}
