package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// entriesOfPage is how many entries of the journal a response has if no limit is given.
const entriesOfPage = 100

// pageOf is a page of rows that are found by the position of their entry in the journal.
type pageOf[O any] struct {
	Rows []O    `json:"rows"`
	Next int64  `json:"next,omitempty"` // the position at which to continue; 0 at the end
	Note string `json:"note,omitempty"` // what the list lacks, and how to select it; "" if it has all
}

// history writes the changes of some entries of a case's journal. It also reads the earlier entries, for the names of items and jobs that
// were created in them. next is the value of "after" for the next page or, with the newest first, that of "until".
func (a *API) history(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	q := a.params(r)
	f, newest := q.History()
	if !check(w, q) || !idOf(w, r, &id) {
		return
	}
	if f.Limit == 0 {
		f.Limit = entriesOfPage
	}
	m := a.mask(r)
	tree, err := store.TreeOf(r.Context(), a.Backend, id)
	if err != nil {
		a.caseProblem(w, r, err)
		return
	}
	history := describe.New(tree, id)
	var found [][]record.Change // of each selected entry
	more := false
	for e, err := range store.AllEntries(r.Context(), a.Backend, store.JournalFilter{Root: tree.Root, Until: f.Until}) {
		if err != nil {
			a.caseProblem(w, r, err)
			return
		}
		changes := Changes(m, history, e)
		if len(changes) == 0 || !f.Selects(e) {
			continue
		}
		found = append(found, changes)
		if more = more || len(found) > f.Limit; more && !newest {
			break
		}
		if len(found) > f.Limit {
			found = found[1:]
		}
	}
	answer(w, http.StatusOK, pageOfChanges(found, f.Limit, more, newest))
}

// pageOfChanges is the response of history; found is in the order of the journal.
func pageOfChanges(found [][]record.Change, limit int, more, newest bool) pageOf[record.Change] {
	out := pageOf[record.Change]{Rows: []record.Change{}}
	found = found[:min(len(found), limit)]
	if newest {
		slices.Reverse(found)
	}
	for _, changes := range found {
		out.Rows = append(out.Rows, changes...)
	}
	switch {
	case !more:
	case newest:
		out.Next = out.Rows[len(out.Rows)-1].Seq - 1
	default:
		out.Next = out.Rows[len(out.Rows)-1].Seq
	}
	return out
}

// audit writes the commands with an actor, newest first, with the removals of cases and the changes of settings, which have no position. next is the value of "before" for the next page.
func (a *API) audit(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of := q.Acts(), q.Case()
	if !check(w, q) {
		return
	}
	if f.Limit == 0 {
		f.Limit = entriesOfPage
	}
	out := pageOf[record.Act]{Rows: []record.Act{}}
	m := a.mask(r)
	err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
		if !of.IsZero() {
			if f.Root, err = store.ActsRoot(r.Context(), v, of); err != nil {
				return err
			}
		}
		found, next, err := store.Acts(r.Context(), v, f)
		out.Next, out.Note = next, store.NoteOfActs(found)
		for _, e := range found {
			out.Rows = append(out.Rows, record.OfAct(m.Entry(e)))
		}
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

// Changes returns the JSON forms of an entry's changes of the case that d describes.
func Changes(m mask.Mask, history *describe.Describer, e *store.Entry) (all []record.Change) {
	for _, c := range e.Changes {
		shown := m.Change(c)
		text, ours := history.Describe(shown, e.At)
		if !ours {
			continue
		}
		stored := state.AppendChanges(nil, []state.Change{shown}, history.Tree())
		all = append(all, record.Change{Seq: e.Seq, At: e.At, Command: e.Command, By: e.By, Key: e.Key, Case: state.CaseOf(c),
			Text: text, Event: json.RawMessage(stored[1 : len(stored)-1])})
	}
	return all
}

// differences lists what differs in a case between two positions of the journal.
func (a *API) differences(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	q := a.params(r)
	from, to := store.Moment{Seq: q.Number("from")}, store.Moment{Seq: q.Number("until")}
	if !check(w, q) || !idOf(w, r, &id) {
		return
	}
	out := page[store.Difference]{Rows: []store.Difference{}}
	all, err := store.Differences(r.Context(), a.Backend, id, from, to)
	if err != nil {
		a.caseProblem(w, r, err)
		return
	}
	out.Rows = append(out.Rows, all...)
	answer(w, http.StatusOK, out)
}
