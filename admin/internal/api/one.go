package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/record"
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
		a.caseProblem(w, r, err)
		return
	}
	row := record.OneCase{Case: record.OfCase(a.mask(r).Case(tree.Case(id)))}
	err = a.Backend.View(r.Context(), func(v store.Reader) error {
		row.RestartedAs, err = store.SuccessorOf(r.Context(), v, tree.Case(id))
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, row)
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
		a.caseProblem(w, r, err)
		return
	}
	answer(w, http.StatusOK, a.mask(r).Answer(reply))
}
