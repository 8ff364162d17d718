package view

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/describe"
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
	choices, err := moments(r, id, from, to)
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
		{ID: "moments", Template: "moments", Data: choices},
		{ID: "differences", Template: "tablepart", Data: t}}}, nil
}

// choice is a list of moments to choose from.
type choice struct {
	Name, Label string
	Options     []Link // Href is the position; "" is the present
}

// maxMoments is how many of the newest entries of a history can be chosen. Others are reached by their position, and from the page of their state.
const maxMoments = 200

// moments returns the choices of both moments, of the newest entries of the history, and of the present.
func moments(r *Request, id workitem.CaseID, from, to int64) ([]choice, error) {
	root, err := r.R.Root(r, id)
	if err != nil {
		return nil, err
	}
	tree, err := r.R.Tree(r, root)
	if err != nil {
		return nil, err
	}
	entries, err := r.R.Journal(r, store.JournalFilter{Root: root, Desc: true, Limit: maxMoments})
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	st := describe.New(tree, id)
	if err := findNamed(r, st, entries); err != nil {
		return nil, err
	}
	var past []Link
	for _, e := range entries {
		for _, change := range e.Changes { // so that the items it creates are known
			_, _ = st.Describe(change, e.At)
		}
		past = append(past, Link{Href: strconv.FormatInt(e.Seq, 10), Text: fmt.Sprintf("%d: %s, %s", e.Seq, printable.Line(st.CommandText(e.Command)), printable.Time(e.At))})
	}
	return []choice{{"from", "from", picked(past, from)}, {"until", "to", picked(append([]Link{{Text: "now"}}, past...), to)}}, nil
}

// picked marks the moment at a position, which is added if it is not among the others.
func picked(all []Link, seq int64) []Link {
	at := strconv.FormatInt(seq, 10)
	if seq == 0 {
		at = ""
	}
	all = slices.Clone(all)
	i := slices.IndexFunc(all, func(l Link) bool { return l.Href == at })
	if i < 0 {
		all = append(all, Link{Href: at, Text: orElse(at, "now")})
		i = len(all) - 1
	}
	all[i].Current = true
	return all
}
