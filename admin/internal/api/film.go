package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The number of frames of a response: without a limit, and at most.
const (
	framesOfPage = 1000
	maxFrames    = 10_000
)

// film writes the states of a case over time. next is the value of "after" for the next part.
func (a *API) film(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	q := a.params(r)
	after, limit := q.Number("after"), q.Number("limit")
	if !check(w, q) || !idOf(w, r, &id) {
		return
	}
	if limit <= 0 {
		limit = framesOfPage
	}
	out := pageOf[store.Frame]{Rows: []store.Frame{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		tree := state.NewTree()
		if after > 0 {
			past, err := a.Past.At(r.Context(), v, id, after)
			if err != nil {
				return err
			}
			tree = past
		}
		frames, next, err := store.Film(r.Context(), v, id, tree, int(min(limit, maxFrames)))
		out.Rows, out.Next = append(out.Rows, frames...), next
		return err
	})
	if err != nil {
		a.caseProblem(w, r, err)
		return
	}
	answer(w, http.StatusOK, out)
}

// way writes the shortest run that completes a case, and who must act in it.
func (a *API) way(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	if !idOf(w, r, &id) {
		return
	}
	m := a.mask(r)
	var way why.Way
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		root, err := v.Root(r.Context(), id)
		if err != nil {
			return err
		}
		tree, err := v.Tree(r.Context(), root)
		if err != nil {
			return err
		}
		if tree.Case(id) == nil { // it is the id of something else of the case
			return notFound("case", id.String())
		}
		reply, err := why.ReadOf(r.Context(), v, tree, id, a.Backend.Now(), m.Here(a.Backend.Here()))
		if err == nil {
			way = why.WayOf(tree, m.Answer(reply))
		}
		return err
	})
	if err != nil {
		a.caseProblem(w, r, err)
		return
	}
	answer(w, http.StatusOK, way)
}
