package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// maxExamined is the number of live root cases that the page examines, oldest first, since stranded cases grow old.
// Each costs less than 0.2 ms. Of the others it examines those in which a stranded case was found before.
const maxExamined = 100

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

// stranded lists the stranded live cases, with what repairs each, and at the end those that have an incident, which the page of incidents lists, too.
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
	x, err := s.Strands.Look(r, r.R)
	if err != nil {
		return nil, err
	}
	half, cancel := context.WithTimeout(r, s.Timeout/2) // the rest of the time is for the page
	defer cancel()
	known := make(map[workitem.CaseID]*state.Case) // by more than one cause
	list := func(found *why.StrandedCase) error {
		if len(t.Rows) == maxStrands {
			t.Note = fmt.Sprintf("The first %d are listed; /api/v1/doctor has all.", maxStrands)
			return nil
		}
		of, err := caseOf(r, known, found.Case)
		if err == nil {
			s.strandRow(t, found, of)
		}
		return err
	}
	var incidents []why.StrandedCase
	for found, err := range s.strands(r, &inTime{store.ViewerOf(r.R), half}, search) {
		switch {
		case errors.Is(err, why.ErrMore):
			t.Note = examinedWords(x, r.Now)
		case err != nil:
			return nil, err
		case found.Cause == why.CauseIncident:
			incidents = append(incidents, found)
		default:
			if err := list(&found); err != nil {
				return nil, err
			}
		}
	}
	for i := range incidents[:min(len(incidents), maxStrands+1)] {
		if err := list(&incidents[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// strands yields the stranded cases of the oldest live root cases. If there are more, those of root cases in which one was found before follow, and
// then [why.ErrMore].
func (s *Site) strands(r *Request, v store.Viewer, search why.Search) iter.Seq2[why.StrandedCase, error] {
	return func(yield func(why.StrandedCase, error) bool) {
		listed := make(map[workitem.CaseID]bool)
		for found, err := range why.Stranded(r, v, search) {
			if errors.Is(err, why.ErrMore) {
				s.before(r, v, search, listed, yield)
				return
			}
			if listed[found.Root] = true; !yield(found, err) {
				return
			}
		}
	}
}

// before yields what is stranded in the root cases in which something was found before, and then [why.ErrMore].
func (s *Site) before(r *Request, v store.Viewer, search why.Search, listed map[workitem.CaseID]bool, yield func(why.StrandedCase, error) bool) {
	search.Roots = slices.DeleteFunc(s.Strands.Roots(maxStrands+len(listed)), func(root workitem.CaseID) bool { return listed[root] })
	for found, err := range why.Stranded(r, v, search) {
		if errors.Is(err, why.ErrMore) {
			break
		}
		if !yield(found, err) {
			return
		}
	}
	yield(why.StrandedCase{}, why.ErrMore)
}

// examinedWords says which cases were examined, if not all of them were for a page.
func examinedWords(x source.Examination, now time.Time) string {
	if !x.All {
		return fmt.Sprintf("The oldest %d live root cases were examined up to now, and the others follow while pages are open; tasq doctor --live examines all.", x.Examined)
	}
	return fmt.Sprintf("All %d live root cases were examined in the last %s while pages were open; tasq doctor --live examines them again.", x.Examined, printable.Duration(now.Sub(x.Since)))
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
