package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
)

// counts is the response of the counts.
type counts struct {
	page[record.Count]
	Stranded source.Examination `json:"stranded"`
}

func (a *API) counts(w http.ResponseWriter, r *http.Request) {
	var out counts
	out.Rows = []record.Count{}
	err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
		if out.Stranded, err = a.Strands.Look(r.Context(), v); err != nil {
			return err
		}
		counts, err := v.Counts(r.Context())
		for _, c := range counts {
			out.Rows = append(out.Rows, record.Count{What: c.What, Workflow: c.Workflow, Task: c.Task, State: c.State, N: c.N})
		}
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

func (a *API) definitions(w http.ResponseWriter, r *http.Request) {
	whole(a, w, r, func(v store.Reader) ([]*record.Definition, error) {
		defs, err := v.Definitions(r.Context())
		if err != nil {
			return nil, err
		}
		return record.Definitions(r.Context(), v, defs)
	})
}

func (a *API) engines(w http.ResponseWriter, r *http.Request) {
	whole(a, w, r, func(v store.Reader) ([]*record.Engine, error) {
		rows, _, err := record.Engines(r.Context(), v)
		return rows, err
	})
}

// whole answers with a list that has no pages.
func whole[O any](a *API, w http.ResponseWriter, r *http.Request, read func(store.Reader) ([]O, error)) {
	out := page[O]{Rows: []O{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		rows, err := read(v)
		out.Rows = append(out.Rows, rows...)
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}
