package view

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// audit is the page of who did what, newest first: the journal without the engine's own commands.
func (s *Site) audit(r *Request) (*Page, error) {
	l := s.listing(r, "/audit", "Audit", "entry", "at", "by", "command", "case", "changes", "reason")
	l.head.About = "Commands with an actor, and all changes of settings, newest first."
	q := query.Of(r.Form, r.Now)
	f, of := q.Acts(), q.Case()
	if err := q.Err(); err != nil {
		return nil, err
	}
	l.head.Ignored = q.Unread(filterForm)
	l.filters("", field{Name: "by", Label: "by", Hint: "name"}, field{Name: "command", Label: "command", Hint: "item complete"},
		field{Name: "older", Label: "older than", Hint: "2h, 3d, or a time"}, field{Name: "newer", Label: "newer than", Hint: "2h, 3d, or a time"}, field{Name: "case", Label: "case", Hint: "id"})
	var err error
	if !of.IsZero() {
		if f.Root, err = store.ActsRoot(r, r.R, of); err != nil {
			return nil, err
		}
	}
	f.Limit = pageSize
	found, reached, err := store.Acts(r, r.R, f)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		act := record.OfAct(r.Mask.Entry(e))
		root := e.Root.String()
		entry, about := link(fmt.Sprint(e.Seq), s.Link("/cases/"+root, "tab", "history", "at", fmt.Sprint(e.Seq))), idLink(root, s.Link("/cases/"+root))
		command, changes := s.commandCell(r, e.Command), number(int64(len(e.Changes)))
		switch {
		case e.Setting != nil:
			entry, about, changes = text(""), text(""), number(int64(len(act.Values)))
			command.Text, command.Href = act.Line(), s.settingLink(act.Setting)
		case e.Seq == 0: // the removal of a case, which leaves no page to link to
			entry, about = text(""), text(root)
		}
		l.table.row("", entry, at(e.At), text(e.By), command, about, changes, text(printable.Line(act.Reason)))
	}
	l.table.Note = store.NoteOfActs(found)
	if reached > 0 {
		l.table.Pager = &Pager{Text: fmt.Sprintf("entries from %d on", reached), Next: l.with("before", fmt.Sprint(reached))}
	}
	p := l.page("No command has an actor yet.", "tasq item complete ITEM --by ann")
	if len(found) == 0 && reached > 0 {
		l.table.Empty.Text = fmt.Sprintf("Nothing matches %s in the entries from %d on; there are older ones.", l.set(), reached)
	}
	p.Live = false
	return p, nil
}

// commandCell is a command in words, with the label of its item instead of its id.
func (s *Site) commandCell(r *Request, command string) Cell {
	words := strings.Fields(command)
	c := text("")
	for i, word := range words {
		id, err := workitem.ParseID(strings.TrimSuffix(word, ","))
		if err != nil {
			continue
		}
		words[i] = short(id.String())
		if it, err := findItem(r, id); err == nil {
			words[i] = it.Label()
			c = link("", s.Link("/items/"+id.String()))
		}
	}
	c.Text = printable.Line(strings.Join(words, " "))
	return c
}

// settingLink is the address of the page that has a setting.
func (s *Site) settingLink(name string) string {
	kind, rest, _ := strings.Cut(name, "/")
	if kind+"/" == store.WorkflowSetting {
		return s.Link("/workflows/" + escapePath(rest))
	}
	return s.Link("/limits")
}
