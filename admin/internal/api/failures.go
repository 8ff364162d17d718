package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
)

// failures writes how many work items failed for good, grouped by workflow, task and code, or by one of these.
func (a *API) failures(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, by := q.Failures()
	if !check(w, q) {
		return
	}
	out := page[record.Failures]{Rows: []record.Failures{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		groups, all, err := store.Failures(r.Context(), store.ViewerOf(v), f)
		if by != nil {
			groups = store.MergeFailures(groups, by)
		}
		for _, g := range groups {
			out.Rows = append(out.Rows, record.Failures(g))
		}
		out.Cut = !all
		return orUnknown(r, v, len(groups), err, f.Workflow, f.Task)
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}
