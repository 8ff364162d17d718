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
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// maxExamined is the number of live root cases that the page examines, oldest first, since stranded cases grow old.
// Each costs less than 0.2 ms.
const maxExamined = 200

// maxStrands bounds the number of stranded cases that are listed.
const maxStrands = 50

// longWaited is the wait for an event or a topic without a deadline after which the page offers to list such cases.
const longWaited = "1d"

// inTime is a viewer for an examination that stops after a time.
type inTime struct {
	store.Viewer
	time context.Context
}

// View implements store.Viewer.
func (v *inTime) View(ctx context.Context, f func(store.Reader) error) error {
	if v.time.Err() != nil {
		return why.ErrMore
	}
	return v.Viewer.View(ctx, f)
}

// stranded lists the stranded live cases, with what repairs each.
func (s *Site) stranded(r *Request) (*Table, error) {
	t := &Table{ID: "stranded", Title: "Stranded cases", Head: []string{"case", "key", "workflow", "cause", "since", "why", "at the command line"},
		Empty: &Empty{Text: "Every live case is active, or waits for a person or an event."}}
	q := query.Of(r.Form, r.Now)
	before := q.Bound("older")
	if err := q.Err(); err != nil {
		return nil, err
	}
	search := why.Search{Here: r.Mask.Here(s.Backend.Here()), Now: r.Now, Most: maxExamined}
	if before.IsZero() {
		t.Empty.Drop = []Link{{Text: "Also show waits for events of more than a day", Href: s.Link("/doctor", "older", longWaited)}}
	} else {
		search.Older = r.Now.Sub(before)
	}
	half, cancel := context.WithTimeout(r, s.Timeout/2) // the rest of the time is for the page
	defer cancel()
	known := make(map[workitem.CaseID]*state.Case) // by more than one cause
	for found, err := range why.Stranded(r, &inTime{store.ViewerOf(r.R), half}, search) {
		if errors.Is(err, why.ErrMore) {
			t.Note = fmt.Sprintf("Only the oldest live cases were examined, at most %d and within the time limit of a page; tasq doctor --live examines all.", maxExamined)
			break
		}
		if err != nil {
			return nil, err
		}
		if len(t.Rows) == maxStrands {
			t.Note = fmt.Sprintf("The first %d are listed; /api/v1/doctor has all.", maxStrands)
			break
		}
		of, err := caseOf(r, known, found.Case)
		if err != nil {
			return nil, err
		}
		s.strandRow(t, &found, of)
	}
	return t, nil
}

// strandRow adds a stranded case; its page has the forms that repair it.
func (s *Site) strandRow(t *Table, found *why.StrandedCase, of *state.Case) {
	id := found.Case.String()
	since := text("")
	if !found.Since.IsZero() {
		since = at(found.Since.Truncate(time.Millisecond))
	}
	t.row("", idLink(id, s.Link("/cases/"+id)), text(printable.Line(of.Key)), text(found.Workflow+version(found.Version)), text(string(found.Cause)), since,
		text(printable.Line(found.Reason)), Cell{Kind: "code", Text: printable.Line(found.Repair)})
}
