package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
)

// doctor lists the cases that cannot end by themselves: the first ones, or all in the requested format.
func (a *API) doctor(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	now := a.Backend.Now()
	search, most := why.Search{Here: a.mask(r).Here(a.Backend.Here()), Now: now}, q.Page(50, false).Limit
	if before := q.Bound("older"); !before.IsZero() {
		search.Older = now.Sub(before)
	}
	if !check(w, q) {
		return
	}
	out := page[why.StrandedCase]{Rows: []why.StrandedCase{}}
	write := rowWrite(func(row any) error {
		if s, ok := row.(why.StrandedCase); ok {
			out.Rows = append(out.Rows, s)
		}
		return nil
	})
	form := formOf[why.StrandedCase](r)
	if form != nil {
		write = form.begin(w)
	}
	n := 0
	for s, err := range why.Stranded(r.Context(), a.Backend, search) {
		if err != nil && form != nil {
			panic(http.ErrAbortHandler) // the client detects an incomplete response
		}
		if err != nil {
			Problem(w, err)
			return
		}
		if write(s) != nil {
			return // the client has disconnected
		}
		if n++; form == nil && n == most {
			break
		}
	}
	if form != nil {
		_ = write(nil) // the client has disconnected
		return
	}
	answer(w, http.StatusOK, out)
}

// database describes the database.
func (a *API) database(w http.ResponseWriter, r *http.Request) {
	var d *source.Database
	err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
		d, err = source.ReadDatabase(r.Context(), v, a.Backend.Now())
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, d)
}
