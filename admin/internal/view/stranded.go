package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// maxExamined is how many live root cases the doctor looks at, the oldest first: what does not go on grows old.
const maxExamined = 250

// maxStrands is how many of the cases that do not go on are listed.
const maxStrands = 50

// longWaited is how long an event without a deadline is waited for before it is offered to be looked for.
const longWaited = "1d"

// errExamined ends an examination that has looked at enough.
var errExamined = errors.New("enough cases were examined")

// examined is a viewer for an examination, which looks at each root case in a view of its own.
type examined struct {
	store.Viewer
	left int
	time context.Context // no other case is looked at once it has ended
}

// View implements store.Viewer.
func (v *examined) View(ctx context.Context, f func(store.Reader) error) error {
	if v.left == 0 || v.time.Err() != nil {
		return errExamined
	}
	v.left--
	return v.Viewer.View(ctx, f)
}

// stranded lists the live cases that do not go on by themselves, with what moves each.
func (s *Site) stranded(r *Request) (*Table, error) {
	t := &Table{ID: "stranded", Title: "Cases that do not go on", Head: []string{"case", "workflow", "cause", "since", "why", "at the command line"},
		Empty: &Empty{Text: "Every live case goes on by itself, or waits for a person or an event."}}
	q := query.Of(r.Form, r.Now)
	before := q.Before("older")
	if err := q.Err(); err != nil {
		return nil, err
	}
	search := why.Search{Here: r.Mask.Here(s.Backend.Here()), Now: r.Now}
	if before.IsZero() {
		t.Empty.Drop = []Link{{Text: "Also look for events that are waited for longer than a day", Href: s.Link("/doctor", "older", longWaited)}}
	} else {
		search.Older = r.Now.Sub(before)
	}
	half, cancel := context.WithTimeout(r, s.Timeout/2) // the rest is for the page, however large the nets are
	defer cancel()
	for found, err := range why.Stranded(r, &examined{store.ViewerOf(r.R), maxExamined, half}, search) {
		if errors.Is(err, errExamined) {
			t.Note = fmt.Sprintf("The oldest live cases were looked at, at most %d and for as long as a page may take; tasq doctor looks at all.", maxExamined)
			break
		}
		if err != nil {
			return nil, err
		}
		if len(t.Rows) == maxStrands {
			t.Note = fmt.Sprintf("The first %d are listed; /api/v1/doctor has all.", maxStrands)
			break
		}
		s.strandRow(t, &found)
	}
	return t, nil
}

// strandRow adds a case that does not go on; its page has the forms that repair it.
func (s *Site) strandRow(t *Table, found *why.Strand) {
	id := found.Case.String()
	since := text("")
	if !found.Since.IsZero() {
		since = at(found.Since.Truncate(time.Millisecond))
	}
	t.row("", idLink(id, s.Link("/cases/"+id)), text(found.Workflow+version(found.Version)), text(string(found.Cause)), since,
		text(printable.Line(found.Reason)), Cell{Kind: "code", Text: printable.Line(found.Repair)})
}
