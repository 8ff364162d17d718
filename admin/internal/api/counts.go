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
	out := page[*record.Definition]{Rows: []*record.Definition{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		defs, err := v.Definitions(r.Context())
		if err != nil {
			return err
		}
		rows, err := record.Definitions(r.Context(), v, defs)
		out.Rows = append(out.Rows, rows...)
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

func (a *API) engines(w http.ResponseWriter, r *http.Request) {
	out := page[*record.Engine]{Rows: []*record.Engine{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		rows, _, err := record.Engines(r.Context(), v)
		out.Rows = append(out.Rows, rows...)
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}
