// Package api answers programs: what the lists and the pages show, and all commands, as JSON under /api/v1/. Names and fields are
// those of tasq -o json.
package api

import (
	"context"
	_ "embed" // the description of the API
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

//go:embed openapi.json
var openAPI []byte

// Base is the path of the API below the prefix of the pages.
const Base = "/api/v1/"

// API is the handler's state.
type API struct {
	Backend source.Backend
	Clock   retry.Clock
	Mask    func(u *access.User) mask.Mask // what a user sees of payloads; nil is all
}

// Routes are the patterns of the API with their handlers, below the prefix.
func (a *API) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /api/v1/openapi.json":       a.describe,
		"GET /api/v1/cases":              a.cases,
		"GET /api/v1/cases/{id}":         a.oneCase,
		"GET /api/v1/cases/{id}/why":     a.why,
		"GET /api/v1/cases/{id}/history": a.history,
		"GET /api/v1/items":              a.items,
		"GET /api/v1/items/{id}":         a.oneItem,
		"GET /api/v1/jobs":               a.jobs,
		"GET /api/v1/jobs/{id}":          a.oneJob,
		"GET /api/v1/steps":              a.steps,
		"GET /api/v1/events":             a.events,
		"GET /api/v1/incidents":          a.incidents,
		"GET /api/v1/definitions":        a.definitions,
		"GET /api/v1/counts":             a.counts,
		"GET /api/v1/stats":              a.stats,
		"GET /api/v1/queues":             a.queues,
		"GET /api/v1/limits":             a.limits,
		"GET /api/v1/schedules":          a.schedules,
		"GET /api/v1/schedules/{name}":   a.oneSchedule,
		"POST /api/v1/schedules/{name}":  a.onSchedule,
		"GET /api/v1/stream":             a.stream,
		"POST /api/v1/commands":          a.command,
	}
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // a client that is gone needs nothing
}

// mask is what the user of a request sees of payloads.
func (a *API) mask(r *http.Request) mask.Mask {
	if a.Mask == nil {
		return nil
	}
	return a.Mask(access.UserOf(r.Context()))
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		body, status = []byte(`{"title":"the answer cannot be written as JSON","status":500,"code":"error"}`), http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs nothing
}

// page is the answer of a list.
type page[O any] struct {
	Rows []O    `json:"rows"`
	Next string `json:"next,omitempty"` // the cursor of the page that follows; "" if there is none
}

// list answers with a page of rows, or with all rows in the form that is asked for. read gets pages that are one row longer than what is shown.
func list[T, O any](
	a *API, w http.ResponseWriter, r *http.Request, p store.Page, read func(store.Reader, store.Page) ([]T, error), id func(T) string,
	object func(T) O,
) {
	if f := formOf[O](r); f != nil {
		download(a, w, r, f, p, read, id, object)
		return
	}
	out := page[O]{Rows: []O{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		size := p.Limit
		p.Limit++
		found, err := read(v, p)
		if len(found) > size {
			found = found[:size]
			out.Next = id(found[size-1])
		}
		for _, t := range found {
			out.Rows = append(out.Rows, object(t))
		}
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

// download writes all rows, page by page, each in a view of its own.
func download[T, O any](
	a *API, w http.ResponseWriter, r *http.Request, f *form, p store.Page, read func(store.Reader, store.Page) ([]T, error), id func(T) string,
	object func(T) O,
) {
	p.Limit = query.MaxLimit
	var write rowWrite
	for {
		var found []T
		err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
			found, err = read(v, p)
			return err
		})
		if err != nil {
			if write != nil {
				panic(http.ErrAbortHandler) // the client sees that the answer is cut off
			}
			Problem(w, err)
			return
		}
		if write == nil {
			w.Header().Set("Content-Type", f.kind)
			w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
			write = f.rows(w)
		}
		for _, t := range found {
			if write(object(t)) != nil {
				return // the client is gone
			}
		}
		if len(found) < p.Limit {
			_ = write(nil) // a client that is gone needs nothing
			return
		}
		p.After = id(found[len(found)-1])
	}
}

// begin reads the parameters of a list; false if they cannot be understood, and the request is answered.
func (a *API) begin(w http.ResponseWriter, r *http.Request, names string) (*query.Query, bool) {
	q := query.Of(r.URL.Query(), a.Backend.Now())
	q.Only(strings.Fields(names)...)
	return q, check(w, q)
}

func check(w http.ResponseWriter, q *query.Query) bool {
	if err := q.Err(); err != nil {
		Problem(w, err)
		return false
	}
	return true
}

const paging = " cursor limit newest format"

func (a *API) cases(w http.ResponseWriter, r *http.Request) {
	q, ok := a.begin(w, r, "case workflow fingerprint state root-only key label older newer"+paging)
	f, of, p := q.Cases(), q.Case(), q.Page(50, true)
	if !ok || !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*state.Case, err error) {
		if f.Root, f.ID, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		return v.Cases(r.Context(), f)
	}, func(c *state.Case) string { return c.ID.String() }, func(c *state.Case) record.Case { return record.OfCase(m.Case(c)) })
}

func (a *API) items(w http.ResponseWriter, r *http.Request) {
	q, ok := a.begin(w, r, "case workflow task queue state attempt code older newer"+paging)
	f, of, p := q.Items(), q.Case(), q.Page(50, true)
	if !ok || !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*store.ItemRow, err error) {
		if f.Root, f.Case, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		return v.Items(r.Context(), f)
	}, func(it *store.ItemRow) string { return it.ID.String() }, func(it *store.ItemRow) record.Item { return record.OfItem(m.Row(it)) })
}

func (a *API) jobs(w http.ResponseWriter, r *http.Request) {
	q, ok := a.begin(w, r, "case item workflow task queue state kind due"+paging)
	f, of, p := q.Jobs(), q.Case(), q.Page(50, true)
	if !ok || !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*state.Job, err error) {
		if f.Root, f.Case, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		return v.Jobs(r.Context(), f)
	}, func(j *state.Job) string { return j.ID.String() }, func(j *state.Job) record.Job { return record.OfJob(m.Job(j)) })
}

func (a *API) steps(w http.ResponseWriter, r *http.Request) {
	q, ok := a.begin(w, r, "case item job kind target state"+paging)
	f, of, p := q.Steps(), q.Case(), q.Page(50, true)
	if !ok || !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*workitem.Step, err error) {
		if f.Root, f.Case, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		return v.Steps(r.Context(), f)
	}, func(s *workitem.Step) string { return s.ID.String() }, func(s *workitem.Step) record.Step { return record.OfStep(m.Step(s)) })
}

func (a *API) events(w http.ResponseWriter, r *http.Request) {
	q, ok := a.begin(w, r, "case name unread"+paging)
	f, of, p := q.Messages(), q.Case(), q.Page(50, true)
	if !ok || !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*state.Message, err error) {
		if f.Root, f.Case, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		return v.Messages(r.Context(), f)
	}, func(e *state.Message) string { return e.ID.String() }, func(e *state.Message) record.Event { return record.OfEvent(m.Message(e)) })
}

func (a *API) incidents(w http.ResponseWriter, r *http.Request) {
	q, ok := a.begin(w, r, "case workflow task kind code older"+paging)
	f, of, p := q.Incidents(), q.Case(), q.Page(50, false)
	if !ok || !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) ([]*store.Incident, error) {
		f.Page = p
		return incidents(r.Context(), v, f, of)
	}, func(i *store.Incident) string { return i.ID.String() }, func(i *store.Incident) record.Incident { return record.OfIncident(m.Incident(i)) })
}

func incidents(ctx context.Context, v store.Reader, f store.IncidentFilter, of workitem.CaseID) (all []*store.Incident, err error) {
	if !of.IsZero() {
		if f.Root, err = v.Root(ctx, of); err != nil {
			return nil, err
		}
	}
	for i, err := range store.Incidents(ctx, OneView{v}, f) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// OneView has functions that page in views of their own read in one.
type OneView struct{ R store.Reader }

// View implements [store.Viewer].
func (v OneView) View(_ context.Context, f func(store.Reader) error) error { return f(v.R) }

func (a *API) counts(w http.ResponseWriter, r *http.Request) {
	out := page[record.Count]{Rows: []record.Count{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
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

// notFound is the error for an id that names nothing.
func notFound(what, id string) error {
	return fmt.Errorf("%s %s: %w", what, id, store.ErrNotFound)
}

// errBadID is for a path whose id is none.
var errBadID = errors.New("ids have 36 characters, as in 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071")
