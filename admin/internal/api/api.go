// Package api implements the JSON API: the lists, the details and all commands, under /api/v1/. Names and fields are
// those of tasq -o json.
package api

import (
	_ "embed" // the description of the API
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/past"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/bulk"
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

// API has the state of the handlers.
type API struct {
	Backend source.Backend
	Clock   retry.Clock
	Mask    func(u *access.User) mask.Mask // what a user may see of payloads; nil shows all
	Past    *past.Memory                   // cache of past states
	Bulk    *bulk.Bulk                     // starts bulk actions; nil if the engine has none
	Strands *source.Examiner               // counts stranded cases
	Timeout time.Duration                  // of an answer without a stream or an export; 0 is DefaultTimeout
}

// Route is the handler of a pattern of the API.
type Route struct {
	Summary string   // one sentence for the description
	Params  []string // its query parameters; a request with any other is refused
	answer  http.HandlerFunc
	timeout time.Duration // of the answer
}

// ServeHTTP checks the parameters of a request before it handles it: a misspelled filter would otherwise select
// everything.
func (t Route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := query.Of(r.URL.Query(), time.Time{})
	if q.Only(t.Params...); !check(w, q) {
		return
	}
	r, cancel := within(r, t.timeout)
	defer cancel()
	t.answer(w, r)
}

// paging are the parameters of every list besides its filter.
const paging = " cursor limit newest format"

// Routes returns the handlers of the API by pattern, below the prefix.
func (a *API) Routes() map[string]Route {
	timeout := a.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	route := func(answer http.HandlerFunc, params, summary string) Route {
		return Route{Summary: summary, Params: strings.Fields(params), answer: answer, timeout: timeout}
	}
	return map[string]Route{
		"GET /api/v1/openapi.json":           route(a.describe, "", "This description."),
		"GET /api/v1/cases":                  route(a.cases, "case workflow fingerprint state suspended root-only code key label payload older newer"+paging, "Cases, newest first."),
		"POST /api/v1/cases":                 route(a.startCases, "workflow queue label dryRun", "Start a case of a workflow for each line of the body, its input in JSON, or try that. A line that is refused does not affect the others, and is in the answer. The key of a case is the Idempotency-Key and the number of its line."),
		"GET /api/v1/cases/{id}":             route(a.oneCase, "at", "A case, as it is or as it was."),
		"GET /api/v1/cases/{id}/differences": route(a.differences, "from until", "What differs in a case between two positions of the journal; without until, up to now."),
		"GET /api/v1/cases/{id}/film":        route(a.film, "after limit", "The states of a case over time: what each entry of its journal changed, oldest first."),
		"GET /api/v1/cases/{id}/way":         route(a.way, "", "The tasks of the shortest run that completes a case, in order, and who or what must act."),
		"GET /api/v1/cases/{id}/why":         route(a.why, "", "What a case waits for, and who or what moves it."),
		"GET /api/v1/cases/{id}/history":     route(a.history, "after until by command older newer newest limit", "The changes of a case, oldest first."),
		"GET /api/v1/items":                  route(a.items, "case workflow task queue state holder attempt code payload older newer"+paging, "Work items, newest first."),
		"GET /api/v1/items/{id}":             route(a.oneItem, "", "A work item."),
		"GET /api/v1/jobs":                   route(a.jobs, "case item workflow task queue state kind due"+paging, "Jobs, newest first."),
		"GET /api/v1/jobs/{id}":              route(a.oneJob, "", "A job."),
		"GET /api/v1/steps":                  route(a.steps, "case item job kind target state"+paging, "Steps of durable functions, newest first."),
		"GET /api/v1/events":                 route(a.events, "case name unread"+paging, "Events that were sent to cases, newest first."),
		"GET /api/v1/incidents":              route(a.incidents, "case workflow task kind code older newer key label"+paging, "What needs a person, oldest first."),
		"GET /api/v1/definitions":            route(a.definitions, "", "The definitions of workflows, and how many cases each has."),
		"GET /api/v1/engines":                route(a.engines, "", "The engines that have a database of a server open, in the order in which they joined; none of a file."),
		"GET /api/v1/doctor":                 route(a.doctor, "older limit format", "Cases that do not end by themselves, each with its cause and the act that repairs it."),
		"GET /api/v1/database":               route(a.database, "", "The database: its kind, size, schema, newest entry and due work."),
		"GET /api/v1/audit":                  route(a.audit, "case by command before older newer limit", "Commands with their actors, and all changes of settings of queues, limits and workflows, newest first. By command or time, a page may have few rows or none, and next name another page."),
		"GET /api/v1/failures":               route(a.failures, "workflow task code by older newer", "Work items that failed for good, grouped by workflow, task and code, or by one of these: the largest group first."),
		"GET /api/v1/counts":                 route(a.counts, "", "Cases, work items and jobs by state; and the live cases that nothing moves, without those that have an incident, with what was examined for that, and when."),
		"GET /api/v1/search":                 route(a.search, "q", "What a word names: an id, the end of one, a business key, a label, the idempotency key of a command, the name of a workflow."),
		"GET /api/v1/stats":                  route(a.stats, "workflow task older newer by hourly cases format", "What ended, how much of it failed and how long it took: work items by task or cases by workflow, and by hour."),
		"GET /api/v1/export":                 route(a.export, "format case workflow fingerprint state suspended code key label older newer", "What happened to root cases and all below them, as an event log for process mining."),
		"GET /api/v1/queues":                 route(a.queues, "", "Queues, with their work and whether they are paused. At most 1000 items and 1000 jobs of a state are counted of each; cut says that there are more."),
		"GET /api/v1/limits":                 route(a.limits, "", "Limits, with what is in use. The program that runs the functions answers."),
		"GET /api/v1/schedules":              route(a.schedules, "", "Schedules, with their last and next starts."),
		"POST /api/v1/schedules":             route(a.addSchedule, "", "Add a schedule, or change the one with its name, whose pause and runs stay."),
		"GET /api/v1/schedules/{name}":       route(a.oneSchedule, "", "A schedule."),
		"POST /api/v1/schedules/{name}":      route(a.onSchedule, "", "Pause, resume, run, backfill or remove a schedule."),
		"GET /api/v1/bulk":                   route(a.bulkList, strings.TrimSuffix(paging, " format"), "Bulk actions, newest first, without the single refusals."),
		"POST /api/v1/bulk":                  route(a.startBulk, "", "Start a bulk action on the targets that a filter selects, or count them. Targets for which the user does not have the right are left out."),
		"GET /api/v1/bulk/{id}":              route(a.oneBulk, "", "A bulk action, with its progress and what was refused so far."),
		"POST /api/v1/bulk/{id}":             route(a.onBulk, "", "Pause, resume or cancel a bulk action."),
		"GET /api/v1/stream":                 route(a.stream, "root after", "The entries of the journal as server-sent events, from a position on and without end."),
		"POST /api/v1/commands":              route(a.command, "", "Execute a command. The user of the request is its actor, whatever the body says. With dryRun in the body, answer what it would do, and do nothing."),
	}
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // the client has disconnected
}

// mask returns what the user of a request may see of payloads.
func (a *API) mask(r *http.Request) mask.Mask {
	if a.Mask == nil {
		return nil
	}
	return a.Mask(access.UserOf(r.Context()))
}

// answer writes a value as a JSON response.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		body, status = []byte(`{"title":"the answer cannot be written as JSON","status":500,"code":"error"}`), http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}

// page is the response of a list.
type page[O any] struct {
	Rows []O    `json:"rows"`
	Next string `json:"next,omitempty"` // the cursor of the next page; "" if there is none
	Cut  bool   `json:"cut,omitempty"`  // a search in payloads reached its limit and continues at Next, or a count reached its limit, so that there are more
	Note string `json:"note,omitempty"` // what the list cannot have, and why; "" if it has all
}

// list writes a page of rows, or all rows in the requested format. read gets pages with one more row than is shown.
func list[T, O any](
	a *API, w http.ResponseWriter, r *http.Request, p store.Page, read func(store.Reader, store.Page) ([]T, error), id func(T) string,
	object func(T) O,
) {
	listNoted(a, w, r, p, read, id, object, new(string))
}

// listNoted is list with a note, which read may set.
func listNoted[T, O any](
	a *API, w http.ResponseWriter, r *http.Request, p store.Page, read func(store.Reader, store.Page) ([]T, error), id func(T) string,
	object func(T) O, note *string,
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
		if cut := (*store.CutError)(nil); errors.As(err, &cut) {
			out.Next, out.Cut, err = cut.After, true, nil
		}
		if len(found) > size {
			found = found[:size]
			out.Next, out.Cut = id(found[size-1]), false
		}
		for _, t := range found {
			out.Rows = append(out.Rows, object(t))
		}
		out.Note = *note
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

// download writes all rows, page by page, each page from its own view.
func download[T, O any](
	a *API, w http.ResponseWriter, r *http.Request, f *form, p store.Page, read func(store.Reader, store.Page) ([]T, error), id func(T) string,
	object func(T) O,
) {
	p.Limit = query.MaxLimit
	var write rowWrite
	for {
		var found []T
		var cut *store.CutError
		err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
			if found, err = read(v, p); errors.As(err, &cut) {
				return nil
			}
			return err
		})
		if err != nil {
			if write != nil {
				panic(http.ErrAbortHandler) // the client detects an incomplete response
			}
			Problem(w, err)
			return
		}
		if write == nil {
			write = f.begin(w)
		}
		for _, t := range found {
			if write(object(t)) != nil {
				return // the client has disconnected
			}
		}
		switch {
		case cut != nil:
			p.After = cut.After
		case len(found) < p.Limit:
			_ = write(nil) // the client has disconnected
			return
		default:
			p.After = id(found[len(found)-1])
		}
	}
}

// params parses the query of a request.
func (a *API) params(r *http.Request) *query.Query {
	return query.Of(r.URL.Query(), a.Backend.Now())
}

// check writes an error response, and returns false, if a parameter is invalid.
func check(w http.ResponseWriter, q *query.Query) bool {
	if err := q.Err(); err != nil {
		Problem(w, err)
		return false
	}
	return true
}

// orUnknown returns an error for an empty list if the database has no workflow or task of the requested name.
func orUnknown(r *http.Request, v store.Reader, rows int, err error, workflow, task string) error {
	if err != nil || rows > 0 {
		return err
	}
	return query.Known(r.Context(), v, workflow, task)
}

func (a *API) cases(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of, search, p := q.Cases(), q.Case(), q.Search(), q.Page(50, true)
	if !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*state.Case, err error) {
		if f.Root, f.ID, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		rows, err := store.SearchCases(r.Context(), store.ViewerOf(v), f, search, m.Case)
		return rows, orUnknown(r, v, len(rows), err, f.Workflow, "")
	}, func(c *state.Case) string { return c.ID.String() }, func(c *state.Case) record.Case { return record.OfCase(m.Case(c)) })
}

func (a *API) items(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of, search, p := q.Items(), q.Case(), q.Search(), q.Page(50, true)
	if !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*store.ItemRow, err error) {
		if f.Root, f.Case, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		rows, err := store.SearchItems(r.Context(), store.ViewerOf(v), f, search, m.Item)
		return rows, orUnknown(r, v, len(rows), err, f.Workflow, f.Task)
	}, func(it *store.ItemRow) string { return it.ID.String() }, func(it *store.ItemRow) record.Item { return record.OfItem(m.Row(it)) })
}

func (a *API) jobs(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of, p := q.Jobs(), q.Case(), q.Page(50, true)
	if !check(w, q) {
		return
	}
	m := a.mask(r)
	list(a, w, r, p, func(v store.Reader, p store.Page) (_ []*state.Job, err error) {
		if f.Root, f.Case, err = query.Within(r.Context(), v, of); err != nil {
			return nil, err
		}
		f.Page = p
		rows, err := v.Jobs(r.Context(), f)
		return rows, orUnknown(r, v, len(rows), err, f.Workflow, f.Task)
	}, func(j *state.Job) string { return j.ID.String() }, func(j *state.Job) record.Job { return record.OfJob(m.Job(j)) })
}

func (a *API) steps(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of, p := q.Steps(), q.Case(), q.Page(50, true)
	if !check(w, q) {
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
	q := a.params(r)
	f, of, p := q.Messages(), q.Case(), q.Page(50, true)
	if !check(w, q) {
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

// notFound returns the error for an unknown id.
func notFound(what, id string) error {
	return fmt.Errorf("%s %s: %w", what, id, store.ErrNotFound)
}

// errBadID is the error of a path with an invalid id.
var errBadID = errors.New("ids have 36 characters, as in 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071")
