package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/store"
)

// search lists what matches a word.
func (a *API) search(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	word := q.Text("q")
	if !check(w, q) {
		return
	}
	out := page[store.Match]{Rows: []store.Match{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		found, err := store.Find(r.Context(), v, word, a.mask(r).Case)
		out.Rows = append(out.Rows, found...)
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}
