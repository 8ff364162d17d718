package view

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

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
