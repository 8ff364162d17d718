package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/engine/why"
)

// doctor lists the cases that do not end by themselves: the first ones, or all in the form that is asked for.
func (a *API) doctor(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	now := a.Backend.Now()
	search, most := why.Search{Here: a.mask(r).Here(a.Backend.Here()), Now: now}, q.Page(50, false).Limit
	if before := q.Before("older"); !before.IsZero() {
		search.Older = now.Sub(before)
	}
	if !check(w, q) {
		return
	}
	out := page[why.Strand]{Rows: []why.Strand{}}
	write := rowWrite(func(row any) error {
		if s, ok := row.(why.Strand); ok {
			out.Rows = append(out.Rows, s)
		}
		return nil
	})
	form := formOf[why.Strand](r)
	if form != nil {
		write = form.begin(w)
	}
	n := 0
	for s, err := range why.Stranded(r.Context(), a.Backend, search) {
		if err != nil && form != nil {
			panic(http.ErrAbortHandler) // the client sees that the answer is cut off
		}
		if err != nil {
			Problem(w, err)
			return
		}
		if write(s) != nil {
			return // the client is gone
		}
		if n++; form == nil && n == most {
			break
		}
	}
	if form != nil {
		_ = write(nil) // a client that is gone needs nothing
		return
	}
	answer(w, http.StatusOK, out)
}
