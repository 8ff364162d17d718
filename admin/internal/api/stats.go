package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
)

// rates is the response of stats.
type rates struct {
	Rows []record.Rate `json:"rows"`
}

// stats writes how many work items or cases have ended and how long they took, by task or workflow, and by hour.
func (a *API) stats(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f := q.Rates()
	if !check(w, q) {
		return
	}
	out := rates{Rows: []record.Rate{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		found, err := store.Rates(r.Context(), store.ViewerOf(v), f)
		for _, rate := range found {
			out.Rows = append(out.Rows, record.OfRate(rate))
		}
		return orUnknown(r, v, len(found), err, f.Workflow, f.Task)
	})
	if err != nil {
		Problem(w, err)
		return
	}
	if f := formOf[record.Rate](r); f != nil {
		write := f.begin(w)
		for _, row := range out.Rows {
			if write(row) != nil {
				return // the client has disconnected
			}
		}
		_ = write(nil) // the client has disconnected
		return
	}
	answer(w, http.StatusOK, out)
}
