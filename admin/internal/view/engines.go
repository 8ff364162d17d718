package view

import (
	"slices"
	"strconv"

	"github.com/tasq-dev/tasq/internal/record"
)

// engines adds, behind the database, the engines that have it open on a server. A file has one engine, whose state the page has anyway.
func (s *Site) engines(r *Request, p *Page) error {
	rows, ok, err := record.Engines(r, r.R)
	if err != nil || !ok {
		return err
	}
	live, dead := record.Living(rows)
	t := &Table{ID: "engines", Title: "Engines", Head: []string{"engine", "process", "state", "since", "holds", "running", "late", "seen", "clock", "definitions"},
		Note:  "What an engine holds are jobs; the earliest of those without a worker has been due for as long as it is late. The clock is ahead of that of the server.",
		Empty: &Empty{Text: "No engine has the database open."}}
	for _, e := range live {
		id := strconv.FormatInt(e.ID, 10)
		t.row("engine-"+id, text(id), text(e.Name), text(e.State), at(e.Joined), number(e.Held), number(e.Running), text(e.Lag), text(e.Silent+" ago"), text(e.Skew),
			text(e.Known(strconv.Itoa(e.Definitions))))
	}
	after := 1 + slices.IndexFunc(p.Parts, func(p Part) bool { return p.ID == "database" })
	p.Parts = slices.Insert(p.Parts, after, Part{ID: "engines", Template: "tablepart", Data: t}, Part{ID: "dead", Template: "tablepart", Data: deadEngines(dead)})
	return nil
}

// deadEngines is the table of the engines that were declared dead.
func deadEngines(all []*record.Engine) *Table {
	t := &Table{ID: "dead", Title: "Dead engines", Head: []string{"engine", "process", "since", "held", "running", "seen", "died", "declared by"},
		Note:  "Those that were declared dead within a day, since their heartbeats had stopped or their process had ended. What they held then are jobs, which other engines take.",
		Empty: &Empty{Text: "No engine was declared dead within a day."}}
	for _, e := range all {
		id := strconv.FormatInt(e.ID, 10)
		t.row("dead-"+id, text(id), text(e.Name), at(e.Joined), number(e.Held), number(e.Running), text(e.Silent+" ago"), at(e.Died), text(e.DeclaredBy))
	}
	return t
}
