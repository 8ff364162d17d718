package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/story"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// idOf parses the id in a path; if it is invalid, it writes the response and returns false.
func idOf[T any](w http.ResponseWriter, r *http.Request, id *workitem.Key[T]) bool {
	if err := id.UnmarshalText([]byte(r.PathValue("id"))); err != nil || id.IsZero() {
		Problem(w, fmt.Errorf("%q is not a valid id, %w: %w", r.PathValue("id"), errBadID, store.ErrNotFound))
		return false
	}
	return true
}

func (a *API) oneCase(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	q := a.params(r)
	at := q.Moment()
	if !check(w, q) || !idOf(w, r, &id) {
		return
	}
	tree, err := a.tree(r.Context(), id, at.Seq)
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, record.OfCase(a.mask(r).Case(tree.Case(id))))
}

// tree returns the tree of a case after the entry at a position; 0 is the current state.
func (a *API) tree(ctx context.Context, id workitem.CaseID, seq int64) (tree *state.Tree, err error) {
	if seq == 0 {
		return store.TreeOf(ctx, a.Backend, id)
	}
	err = a.Backend.View(ctx, func(v store.Reader) error {
		tree, err = a.Past.At(ctx, v, id, seq)
		return err
	})
	return tree, err
}

func (a *API) oneItem(w http.ResponseWriter, r *http.Request) {
	var id workitem.ID
	if !idOf(w, r, &id) {
		return
	}
	for it, err := range store.AllItems(r.Context(), a.Backend, store.ItemFilter{ID: id}) {
		if err != nil {
			Problem(w, err)
			return
		}
		answer(w, http.StatusOK, record.OfItem(a.mask(r).Row(it)))
		return
	}
	Problem(w, notFound("work item", id.String()))
}

func (a *API) oneJob(w http.ResponseWriter, r *http.Request) {
	var id workitem.JobID
	if !idOf(w, r, &id) {
		return
	}
	for j, err := range store.AllJobs(r.Context(), a.Backend, store.JobFilter{ID: id}) {
		if err != nil {
			Problem(w, err)
			return
		}
		answer(w, http.StatusOK, record.OfJob(a.mask(r).Job(j)))
		return
	}
	Problem(w, notFound("job", id.String()))
}

func (a *API) why(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	if !idOf(w, r, &id) {
		return
	}
	var reply *why.Answer
	here := a.mask(r).Here(a.Backend.Here())
	err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
		reply, err = why.Read(r.Context(), v, id, a.Backend.Now(), here)
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, a.mask(r).Answer(reply))
}

// history writes the changes of some entries of a case's journal, oldest first. It also reads the earlier entries, for
// the names of items and jobs that were created in them.
func (a *API) history(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	q := a.params(r)
	f := q.Journal()
	if !check(w, q) || !idOf(w, r, &id) {
		return
	}
	if f.Limit == 0 {
		f.Limit = 100
	}
	m := a.mask(r)
	out := struct {
		Rows []record.Change `json:"rows"`
		Next int64           `json:"next,omitempty"` // the position after which to continue; 0 at the end
	}{Rows: []record.Change{}}
	tree, err := store.TreeOf(r.Context(), a.Backend, id)
	if err != nil {
		Problem(w, err)
		return
	}
	history, entries := story.New(tree, id), 0
	for e, err := range store.AllEntries(r.Context(), a.Backend, store.JournalFilter{Root: tree.Root}) {
		if err != nil {
			Problem(w, err)
			return
		}
		if e.Seq > f.After {
			if entries++; entries > f.Limit {
				break
			}
			out.Next = e.Seq
		}
		for _, c := range Changes(m, history, e) {
			if e.Seq > f.After {
				out.Rows = append(out.Rows, c)
			}
		}
	}
	if entries <= f.Limit {
		out.Next = 0
	}
	answer(w, http.StatusOK, out)
}

// Changes returns the JSON forms of an entry's changes of the case of the story.
func Changes(m mask.Mask, history *story.Story, e *store.Entry) (all []record.Change) {
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
